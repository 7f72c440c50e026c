"""Random networks of every op that an export can hold, in float and in int8 around binary layers."""

from collections.abc import Callable
from functools import partial

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from litebnn.graph import Tensor
from litebnn.rules.build.int8 import int8_constant
from tests.micro.blocks import Rng, activation, elementwise8, gated, grid, joined, split, stacked
from tests.support.float_models import FloatModel, sign_weights
from tests.support.lce_models import Graph
from tests.support.quantized_models import Int8Model

_UNARY = ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ABS", "NEG", "SIGN", "SQUARE", "HARD_SWISH")
_INEXACT = ("LOGISTIC", "TANH", "ELU")


def float_network(seed: int, *, exact: bool = False) -> bytes:
    """A network of float and binary ops. If `exact` is true, ops whose last bits may differ from TFLite's are left
    out.
    """
    rng, model = np.random.default_rng(seed), FloatModel()
    batch = int(rng.choice([1, 1, 1, 3]))
    x = model.input(batch, *(int(size) for size in rng.integers(5, 12, 2)), int(rng.choice([1, 3, 8, 32, 40])))
    images = [x]
    ops = [op for name, op in _FLOAT.items() if not exact or "inexact" not in name]
    for _ in range(int(rng.integers(3, 10))):
        x = images[-1] if rng.random() < 0.8 else images[int(rng.integers(len(images)))]
        images.append(ops[int(rng.integers(len(ops)))](model, rng, x, images))
    return _with_classifier(model, rng, images, exact)


def _with_classifier(model: FloatModel, rng: Rng, images: list[Tensor], exact: bool) -> bytes:
    x = images[-1]
    if rng.random() < 0.7:
        features = int(np.prod(x.dims[1:]))
        x = model.reshape(x, x.dims[0], features)
        x = model.dense(x, model.const(rng.standard_normal((10, features)) / features))
        if not exact and rng.random() < 0.7:
            x = model.op("SOFTMAX", [x], x.dims, beta=float(rng.choice([1.0, 0.5])))
    return model.finish(*_outputs(rng, images, x))


def _outputs(rng: Rng, images: list[Tensor], last: Tensor) -> list[Tensor]:
    """The outputs of the network: its last tensor, and some of its images, which other ops may read too."""
    others = rng.permutation(np.arange(1, len(images)))[: int(rng.choice([0, 0, 1, 2]))]
    return [*dict.fromkeys([last, *(images[index] for index in others)])]


def _conv(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    taps = [int(rng.integers(1, min(4, size + 1))) for size in x.dims[1:3]]
    weights = rng.standard_normal((int(rng.choice([4, 8, 33])), *taps, x.channels)) / x.channels
    bias = rng.standard_normal(len(weights)) if rng.random() < 0.7 else None
    return model.conv(
        *(x, weights, bias), stride=_strides(rng), same=bool(rng.random() < 0.5), activation=activation(rng)
    )


def _binary_conv(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    taps = [int(rng.integers(1, min(4, size + 1))) for size in x.dims[1:3]]
    weights = sign_weights(rng, int(rng.choice([8, 32, 40, 70])), *taps, x.channels)
    bias = rng.standard_normal(len(weights)) if rng.random() < 0.5 else None
    return model.conv(model.sign(x), weights, bias, stride=_strides(rng), same=bool(rng.random() < 0.5))


def _depthwise(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    weights = rng.standard_normal((1, 3, 3, x.channels))
    return model.depthwise_conv(x, weights, rng.standard_normal(x.channels), stride=int(rng.choice([1, 2])))


def _strides(rng: Rng) -> tuple[int, int]:
    return int(rng.choice([1, 2])), int(rng.choice([1, 2]))


def _operand(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    """Makes an operand for an elementwise op: another image of the same shape, or constants that are broadcast."""
    alike = [image for image in images if image.dims == x.dims]
    if rng.random() < 0.4:
        return alike[int(rng.integers(len(alike)))]
    shapes = [(x.channels,), (1,), (), (1, 1, x.dims[2], 1), (1, x.dims[1], 1, x.channels), x.dims]
    return model.const(rng.uniform(0.5, 2.0, shapes[int(rng.integers(len(shapes)))]))


def _binary(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    name = str(rng.choice(["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"]))
    pair = [x, _operand(model, rng, x, images)]
    if rng.random() < 0.3:
        pair.reverse()
    return model.elementwise(name, *pair, activation=activation(rng))


def _divided(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    return model.elementwise("DIV", x, model.const(rng.uniform(0.5, 2.0, x.channels)))


def _prelu(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    return model.op("PRELU", [x, model.const(rng.uniform(-1, 1, (1, 1, x.channels)))], x.dims)


def _unary(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    if rng.random() < 0.1:
        return model.op("LEAKY_RELU", [x], x.dims, alpha=0.3)
    return model.op(str(rng.choice(_UNARY)), [x], x.dims)


def _inexact(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    return model.op(str(rng.choice(_INEXACT)), [x], x.dims)


def _pool(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    size, stride, same = int(rng.integers(1, 4)), int(rng.integers(1, 4)), bool(rng.random() < 0.5)
    if min(x.dims[1:3]) < size:
        return x
    pooled = model.max_pool(x, size, stride, same=same)
    if rng.random() < 0.5:
        pooling = model.graph.ops[-1]
        pooling.code = type(pooling.code)("AVERAGE_POOL_2D", "", 1)
    return pooled


def _reduced(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    name = str(rng.choice(["MEAN", "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"]))
    axes = [[1, 2], [2], [1], [3], [1, 3]][int(rng.integers(5))]
    shape = [1 if axis in axes else size for axis, size in enumerate(x.dims)]
    return model.op(name, [x, model.const(axes, np.int32)], shape, keep_dims=True)


def _padded(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    amounts = [[int(amount) for amount in rng.integers(0, 3, 2)] for _ in range(2)]
    return model.pad(x, amounts, float(rng.choice([0.0, 1.0, -0.5])) if rng.random() < 0.5 else None)


def _moved(model: FloatModel, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    kind = str(rng.choice(["TRANSPOSE", "SLICE", "CONCATENATION", "STRIDED_SLICE"]))
    if kind == "TRANSPOSE":
        order = [0, *(int(axis) for axis in 1 + rng.permutation(3))]
        return model.op(kind, [x, model.const(order, np.int32)], [x.dims[axis] for axis in order])
    if kind == "CONCATENATION":
        alike = [image for image in images if image.dims == x.dims]
        other = alike[int(rng.integers(len(alike)))]
        axis = int(rng.integers(1, 4))
        shape = [size * (2 if index == axis else 1) for index, size in enumerate(x.dims)]
        return model.op(kind, [x, other], shape, axis=axis)
    begin = [0, *(int(rng.integers(0, size)) for size in x.dims[1:])]
    if kind == "SLICE":
        sizes = [size - start for size, start in zip(x.dims, begin, strict=True)]
        return model.op(kind, [x, model.const(begin, np.int32), model.const(sizes, np.int32)], sizes)
    steps = [1, 2, 1, 1]
    sizes = [len(range(start, size, step)) for start, size, step in zip(begin, x.dims, steps, strict=True)]
    bounds = [model.const(values, np.int32) for values in (begin, list(x.dims), steps)]
    return model.op(kind, [x, *bounds], sizes)


_Op = Callable[[FloatModel, Rng, Tensor, list[Tensor]], Tensor]
_FLOAT: dict[str, _Op] = {
    "conv": _conv,
    "binary conv": _binary_conv,
    "binary conv again": _binary_conv,
    "depthwise": _depthwise,
    "binary": _binary,
    "divided": _divided,
    "prelu": _prelu,
    "unary": _unary,
    "inexact": _inexact,
    "pool": _pool,
    "reduced": _reduced,
    "padded": _padded,
    "moved": _moved,
    "joined": joined,
    "joined again": joined,
    "joined once more": joined,
    "split": split,
    "stacked": stacked,
    "gated": gated,
    "inexact gate": partial(gated, exact=False),
}


def int8_network(seed: int) -> bytes:
    """A network of int8 ops with arbitrary scales, and of binary layers between them."""
    rng, model = np.random.default_rng(seed), Int8Model()
    x = model.input8(grid(rng), 1, *(int(size) for size in rng.integers(4, 9, 2)), int(rng.choice([1, 3, 8, 16])))
    if rng.random() < 0.3:
        x = model.quantize8(model.input(*x.dims), grid(rng))
        del model.graph.inputs[0]
    images = [x]
    for _ in range(int(rng.integers(3, 9))):
        x = images[-1] if rng.random() < 0.8 else images[int(rng.integers(len(images)))]
        images.append(_INT8[int(rng.integers(len(_INT8)))](model, rng, x, images))
    x = images[-1]
    if rng.random() < 0.7:
        features = int(np.prod(x.dims[1:]))
        x = model.dense8(
            model.reshape8(x, 1, features),
            rng.standard_normal((10, features)),
            rng.standard_normal(10),
            grid(rng, 8.0),
        )
        x = model.softmax8(x) if rng.random() < 0.7 else x
    return model.finish(*_outputs(rng, images, model.dequantize8(x) if rng.random() < 0.3 else x))


def _conv8(model: Int8Model, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    same = min(x.dims[1:3]) < 3 or bool(rng.random() < 0.5)
    weights = rng.standard_normal((int(rng.choice([4, 8, 12])), 3, 3, x.channels))
    bias, stride = rng.standard_normal(len(weights)), int(rng.choice([1, 2]))
    return model.conv8(x, weights, bias, grid(rng, 20.0), same=same, activation=activation(rng), stride=stride)


def _depthwise8(model: Int8Model, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    if min(x.dims[1:3]) < 3:
        return x
    weights, bias = rng.standard_normal((1, 3, 3, x.channels)), rng.standard_normal(x.channels)
    return model.depthwise_conv8(x, weights, bias, grid(rng, 10.0), stride=int(rng.choice([1, 2])))


def _binary8(model: Int8Model, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    name = str(rng.choice(["ADD", "SUB", "MUL"]))
    alike = [image for image in images if image.dims == x.dims]
    shapes = [(x.channels,), (1,), (1, 1, x.dims[2], 1)]
    if rng.random() < 0.5:
        other = alike[int(rng.integers(len(alike)))]
    else:
        values = rng.standard_normal(shapes[int(rng.integers(len(shapes)))])
        other = int8_constant("operand", values, *grid(rng))
    return elementwise8(model, rng, name, [x, other], grid(rng, 8.0))


def _prelu8(model: Int8Model, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    slopes = int8_constant("slopes", rng.uniform(-1, 1, (1, 1, x.channels)), *grid(rng))
    return model._on(grid(rng), model.op("PRELU", [x, slopes], x.dims, type="INT8"))


def _unary8(model: Int8Model, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    name = str(rng.choice(["RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "QUANTIZE"]))
    grids = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}
    options = {"alpha": 0.3} if name == "LEAKY_RELU" else {}
    made = model.op(
        name, [x], x.dims, type="INT8", version=2 if name not in ("HARD_SWISH", "QUANTIZE") else 1, **options
    )
    return model._on(grids.get(name, grid(rng)), made)


def _pool8(model: Int8Model, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    if min(x.dims[1:3]) < 2:
        return x
    pooled = model.max_pool(x, 2, int(rng.integers(1, 3)))
    pooling = model.graph.ops[-1]
    result = model.as_(x, pooled, 2)
    if rng.random() < 0.5:
        pooling.code = type(pooling.code)("AVERAGE_POOL_2D", "", 2)
    return result


def _mean8(model: Int8Model, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    axes = [[1, 2], [2], [3]][int(rng.integers(3))]
    shape = [1 if axis in axes else size for axis, size in enumerate(x.dims)]
    made = model.op("MEAN", [x, model.const(axes, np.int32)], shape, type="INT8", version=2, keep_dims=True)
    return model._on(x.per_tensor_quantization if rng.random() < 0.5 else grid(rng), made)


def _pad8(model: Int8Model, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    return model.pad8(x, None)


def _joined8(model: Int8Model, rng: Rng, x: Tensor, images: list[Tensor]) -> Tensor:
    shape = (*x.dims[:3], 2 * x.channels)
    return model.as_(x, model.op("CONCATENATION", [x, x], shape, type="INT8", axis=3), 2)


_INT8 = [
    *(_conv8, _conv8, _depthwise8, _binary8, _prelu8, _unary8, _pool8, _mean8, _pad8, _joined8),
    *(joined, joined, joined, split, stacked, gated),
]


def rare_networks(height: int, channels: int) -> list[bytes]:
    """Networks of ops that random networks seldom contain, on images of `height` by 8 pixels."""
    shape = (1, height, 8, channels)
    floats = FloatModel()
    x = floats.input(*shape)
    for name in ("ABS", "NEG", "ELU", "HARD_SWISH", "SIGN"):
        x = floats.op(name, [x], shape)
    x = floats.op("LEAKY_RELU", [x], shape, alpha=0.3)

    levels, sixteenths = Int8Model(), (1 / 16, 3)
    y = levels.input8(sixteenths, *shape)
    for name in ("MAXIMUM", "MINIMUM"):
        operand = int8_constant("operand", np.linspace(-1, 1, channels), *sixteenths)
        y = levels.as_(y, levels.elementwise(name, y, operand, type="INT8"), 2)
    return [floats.finish(x), levels.finish(levels.dequantize8(levels.softmax8(y))), _network_of_signs(shape)]


def _network_of_signs(shape: tuple[int, int, int, int]) -> bytes:
    """A network that packs, concatenates and unpacks signs of int8 values and of booleans."""
    graph = Graph()
    packed = (*shape[:3], -(-shape[3] // 32))
    sources = [graph.tensor(shape, "int8", name="levels", scale=0.1, zero_point=3), graph.tensor(shape, "bool")]
    words = [graph.tensor(packed) for _ in sources]
    for source, word in zip(sources, words, strict=True):
        graph.custom("LceQuantize", [source], [word])
    joined = graph.tensor((2, *packed[1:]))
    options = schema.ConcatenationOptionsT()
    options.axis = 0
    graph.builtin("CONCATENATION", words, [joined], options)
    outputs = [graph.tensor(shape, "float32"), graph.tensor(shape, "int8", scale=0.5, zero_point=1)]
    outputs.append(graph.tensor(shape, "bool"))
    for word, output in zip([*words, words[0]], outputs, strict=True):
        graph.custom("LceDequantize", [word], [output])
    return graph.build(sources, [joined, *outputs])
