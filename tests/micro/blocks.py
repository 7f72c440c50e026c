"""Random blocks of several ops for random networks: branches that are joined, and gates. They are float or int8.

A branch is a convolution, a binary convolution, a pool or another op. Therefore the blocks include residual blocks
whose shortcut is a convolution, sums of two convolutions, and concatenations of convolutions with different kernels.
"""

from collections.abc import Callable

import numpy as np

from litebnn.graph import Op, OpCode, Options, Tensor
from tests.support.float_models import FloatModel, sign_weights
from tests.support.quantized_models import EXACT_GRID, Grid, Int8Model

Rng = np.random.Generator
_ACTIVATIONS = ("none", "none", "relu", "relu6", "relu1")


def activation(rng: Rng) -> str:
    return str(rng.choice(_ACTIVATIONS))


def grid(rng: Rng, largest: float = 4.0) -> Grid:
    return float(np.float32(rng.uniform(0.2, largest) / 127)), int(rng.integers(-60, 60))


def elementwise8(model: Int8Model, rng: Rng, name: str, pair: list[Tensor], out: Grid) -> Tensor:
    made = model.elementwise(name, *pair, activation=activation(rng), type="INT8")
    model.graph.ops[-1].code = type(model.graph.ops[-1].code)(name, "", 2)
    return model._on(out, made)


def _on(model: FloatModel, out: Grid, made: Tensor, version: int = 2) -> Tensor:
    """If the model is an Int8Model, gives `made`, the output of the last op, an int8 type with the scale and zero point
    `out`."""
    if isinstance(model, Int8Model):
        model.graph.ops[-1].code = type(model.graph.ops[-1].code)(model.graph.ops[-1].name, "", version)
        made.type = model.level_type
        model._on(out, made)
    return made


def _like(model: FloatModel, x: Tensor, made: Tensor) -> Tensor:
    return model.as_(x, made, 2) if isinstance(model, Int8Model) else made


def _conv(model: FloatModel, rng: Rng, x: Tensor, channels: int, stride: int, out: Grid) -> Tensor:
    taps = int(rng.choice([1, 1, 2, 3, 3, 5]))
    weights, bias = rng.standard_normal((channels, taps, taps, x.channels)) / x.channels, rng.standard_normal(channels)
    if isinstance(model, Int8Model):
        return model.conv8(x, weights, bias, out, same=True, activation=activation(rng), stride=stride)
    return model.conv(x, weights, bias, stride=(stride, stride), same=True, activation=activation(rng))


def _binary_conv(model: FloatModel, rng: Rng, x: Tensor, channels: int, stride: int, out: Grid) -> Tensor:
    taps = int(rng.choice([1, 3]))
    weights = sign_weights(rng, channels, taps, taps, x.channels)
    if isinstance(model, Int8Model):
        # If the converter leaves the convolution int8, the ops that compute the signs stay in the model. An export to C
        # supports all ops of the form "ste_sign": SIGN, ADD, and conversions between int8 and float.
        signs = model.sign8(x, "ste_sign", EXACT_GRID)
        bias = rng.standard_normal(channels)
        return model.conv8(signs, weights, bias, out, same=True, activation="none", stride=stride)
    bias = rng.standard_normal(channels) if rng.random() < 0.5 else None
    return model.conv(model.sign(x), weights, bias, stride=(stride, stride), same=True)


def _depthwise(model: FloatModel, rng: Rng, x: Tensor, channels: int, stride: int, out: Grid) -> Tensor:
    weights, bias = rng.standard_normal((1, 3, 3, x.channels)), rng.standard_normal(x.channels)
    if isinstance(model, Int8Model):
        return model.depthwise_conv8(x, weights, bias, out, stride=stride)
    return model.depthwise_conv(x, weights, bias, stride=stride)


def _pool(model: FloatModel, rng: Rng, x: Tensor, channels: int, stride: int, out: Grid) -> Tensor:
    pooled = _like(model, x, model.max_pool(x, int(rng.choice([1, 2, 3])), stride, same=True))
    if rng.random() < 0.5:
        pooling = model.graph.ops[-1]
        pooling.code = type(pooling.code)("AVERAGE_POOL_2D", "", pooling.code.version)
    return pooled


def _relu(model: FloatModel, rng: Rng, x: Tensor, channels: int, stride: int, out: Grid) -> Tensor:
    return _on(model, out, model.op("RELU", [x], x.dims))


def _itself(model: FloatModel, rng: Rng, x: Tensor, channels: int, stride: int, out: Grid) -> Tensor:
    return x


_Branch = Callable[[FloatModel, Rng, Tensor, int, int, Grid], Tensor]
# Three kinds of branches. The branches in _ANY compute any number of channels, and the branches in _KEEPING as many as
# their input has. The branches in _SAME keep the whole shape of their input.
_ANY: list[_Branch] = [_conv, _conv, _binary_conv, _binary_conv]
_KEEPING: list[_Branch] = [_depthwise, _pool]
_SAME: list[_Branch] = [_relu, _itself]


def joined(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    """Adds two or three branches that read `x`, and joins them by sums, products or a concatenation.

    Later ops may also read the branches, and the network may return them.
    """
    stride = int(rng.choice([1, 1, 2]))
    keeps = x.channels <= 40 and bool(rng.random() < 0.4)
    channels = x.channels if keeps else int(rng.choice([4, 8, 32, 40]))
    kinds = _ANY + _KEEPING * keeps + _SAME * (keeps and stride == 1)
    is_concatenated = bool(rng.random() < 0.25)
    branches = []
    for _ in range(int(rng.choice([2, 2, 3]))):
        out = x.per_tensor_quantization or (1.0, 0) if is_concatenated else grid(rng, 20.0)
        branch = kinds[int(rng.integers(len(kinds)))](model, rng, x, channels, stride, out)
        if rng.random() < 0.2:
            branch = _ANY[int(rng.integers(len(_ANY)))](model, rng, branch, channels, 1, out)
        branches.append(branch)
    order = [branches[index] for index in rng.permutation(len(branches))]
    images += [branch for branch in order if rng.random() < 0.3]
    if is_concatenated:
        shape = (*order[0].dims[:3], sum(branch.channels for branch in order))
        return _like(model, order[0], model.op("CONCATENATION", order, shape, axis=3))
    result = order[0]
    for branch in order[1:]:
        pair = [result, branch] if rng.random() < 0.5 else [branch, result]
        name = str(rng.choice(["ADD", "ADD", "ADD", "SUB", "MUL"]))
        result = _elementwise(model, rng, name, pair)
    return _shrunk(model, rng, result)


def _elementwise(model: FloatModel, rng: Rng, name: str, pair: list[Tensor]) -> Tensor:
    if isinstance(model, Int8Model):
        return elementwise8(model, rng, name, pair, grid(rng, 20.0))
    return model.elementwise(name, *pair, activation=activation(rng))


def _shrunk(model: FloatModel, rng: Rng, x: Tensor) -> Tensor:
    """Appends a max pool to some of the branches' sums. The exported code then computes the sum a few rows at a time,
    if this saves memory."""
    if rng.random() < 0.4 and min(x.dims[1:3]) > 1:
        return _like(model, x, model.max_pool(x, 2, 2))
    return x


def gated(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor], *, exact: bool = True) -> Tensor:
    """Adds a gate: an image whose channels are multiplied by numbers between 0 and 1. Dense layers compute these
    numbers from the channels' means.
    """
    batch, channels = x.dims[0], x.channels
    source = _conv(model, rng, x, channels, 1, grid(rng, 20.0)) if rng.random() < 0.5 else x
    means = model.op("MEAN", [source, model.const([1, 2], np.int32)], (batch, 1, 1, channels), keep_dims=True)
    means = _on(model, grid(rng), means)
    flat = _reshaped(model, means, batch, channels)
    weights, bias = rng.standard_normal((channels, channels)) / channels, rng.standard_normal(channels)
    if isinstance(model, Int8Model):
        dense = model.dense8(flat, weights, bias, grid(rng, 8.0))
    else:
        dense = model.dense(flat, model.const(weights), bias)
    name = "RELU_0_TO_1" if exact and not isinstance(model, Int8Model) else "LOGISTIC"
    gate = _on(model, (1 / 256, -128), model.op(name, [dense], dense.dims))
    pair = [source, _reshaped(model, gate, batch, 1, 1, channels)]
    if rng.random() < 0.3:
        pair.reverse()
    return _shrunk(model, rng, _elementwise(model, rng, "MUL", pair))


def _reshaped(model: FloatModel, x: Tensor, *shape: int) -> Tensor:
    return model.reshape8(x, *shape) if isinstance(model, Int8Model) else model.reshape(x, *shape)


def split(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    """Adds an op that splits an image along an axis. Nothing reads some of the parts."""
    axis = int(rng.integers(1, 4))
    size = x.dims[axis]
    where = model.const(axis, np.int32)
    if size > 1 and rng.random() < 0.5:
        first = int(rng.integers(1, size))
        name, sizes = "SPLIT_V", [first, size - first]
        inputs = [x, model.const(sizes, np.int32), where]
    else:
        count = int(rng.choice([count for count in (1, 2, 3, 5) if size % count == 0]))
        name, sizes = "SPLIT", [size // count] * count
        inputs = [where, x]
    parts = [_part(model, x, (*x.dims[:axis], part, *x.dims[axis + 1 :])) for part in sizes]
    table = {"SPLIT": "SplitOptions", "SPLIT_V": "SplitVOptions"}[name]
    model.graph.insert(Op(OpCode(name, "", 2), inputs, parts, Options(table, num_splits=len(parts))))
    order = [parts[index] for index in rng.permutation(len(parts))]
    images += order[1 : 1 + int(rng.integers(2))]
    return order[0]


def _part(model: FloatModel, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return Tensor(model._name("part"), x.type, shape, quantization=x.quantization)


def stacked(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    """Adds a PACK of two images, and merges the new axis with the next one."""
    axis = int(rng.integers(1, 4))
    grids = x.per_tensor_quantization
    alike = [image for image in images if image.dims == x.dims and image.per_tensor_quantization == grids]
    pair = [x, alike[int(rng.integers(len(alike)))]]
    packed = model.op("PACK", pair, (*x.dims[:axis], 2, *x.dims[axis:]), axis=axis, values_count=2)
    return _reshaped(model, _like(model, x, packed), *x.dims[:axis], 2 * x.dims[axis], *x.dims[axis + 1 :])
