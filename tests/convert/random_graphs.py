"""Makes random float graphs with the patterns of ops that exporters write."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Array, Tensor
from tests.support.float_models import SIGN_FORMS, FloatModel, dyadic, sign_weights
from tests.support.level_spellings import LEVELS
from tests.support.sign_spellings import SPELLINGS

Draw = Any

FORMS = st.sampled_from([*SIGN_FORMS, *SPELLINGS])
_KEYS = ("image", "a/b", "Mask:0", "ψ", "outputs", "0", "x y", "serving_default_image", "scores")
ACTIVATIONS = st.sampled_from(["none", "none", "relu", "relu6", "relu1"])


def _scale(draw: Draw, rng: np.random.Generator, channels: int) -> Array:
    size = draw(st.sampled_from([1, channels]))
    values = rng.choice([0.25, 0.5, 1.0, 2.0], size) * np.where(
        rng.random(size) < draw(st.sampled_from([0, 0.3])), -1, 1
    )
    if draw(st.integers(0, 9)) == 0:
        values[0] = 0.0
    return values.astype(np.float32)


def after(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    """Appends batch norms and activations to a layer, in a random order."""
    channels = x.dims[-1]
    for kind in draw(
        st.lists(st.sampled_from(["MUL", "ADD", "SUB", "DIV", "NEG", "RSUB", "RELU", "RELU6"]), max_size=4)
    ):
        if kind in ("RELU", "RELU6", "NEG"):
            x = model.elementwise(kind, x)
            continue
        activation = draw(ACTIVATIONS) if draw(st.integers(0, 5)) == 0 else "none"
        if kind == "MUL":
            x = model.elementwise("MUL", x, model.const(_scale(draw, rng, channels)), activation=activation)
        elif kind == "DIV":
            divisor = rng.choice([-2.0, 0.5, 1.0, 4.0], channels)
            x = model.elementwise("DIV", x, model.const(divisor), activation=activation)
        else:
            offset = model.const(dyadic(rng, draw(st.sampled_from([1, channels]))))
            sides = (offset, x) if kind == "RSUB" else (x, offset)
            x = model.elementwise("SUB" if kind == "RSUB" else kind, *sides, activation=activation)
    return x


def sign_of(draw: Draw, model: FloatModel, x: Tensor, form: str = "", threshold: float = 0.0) -> Tensor:
    """Appends a sign of ±1, in a form of `FloatModel.sign` or in one that users write by hand."""
    form = form or draw(FORMS)
    return SPELLINGS[form](model, x) if form in SPELLINGS else model.sign(x, form, threshold)


def _signs(draw: Draw, model: FloatModel, x: Tensor) -> Tensor:
    """Appends a sign in any form, a quantizer with few levels, or an op in which a boolean selects between two other
    values.
    """
    form = draw(st.sampled_from(["two values", "broadcast", "levels", "levels", *SIGN_FORMS, *SPELLINGS]))
    if form == "levels":
        return LEVELS[draw(st.sampled_from(list(LEVELS)))](model, x)
    if form == "two values":
        values = draw(st.sampled_from([(0.0, 1.0), (1.0, 0.0), (-0.5, 0.5), (-1.0, 3.0)]))
        return model.two_values(x, *values, draw(st.sampled_from(["GREATER_EQUAL", "GREATER", "LESS"])))
    if form == "broadcast" and len(x.dims) == 4:
        axes = draw(st.sampled_from([(1, 2), (1,), (3,), (1, 3)]))
        shape = [1 if axis in axes else size for axis, size in enumerate(x.dims)]
        largest = model.op("REDUCE_MAX", [x, model.const(axes, np.int32)], shape, keep_dims=True)
        condition = model.elementwise("GREATER", largest, model.const(2.5), type="BOOL")
        minus = model.const(-np.ones((1, *x.shape[1:])))
        return model.op("SELECT_V2", [condition, model.const(1), minus], x.dims)
    form = draw(FORMS) if form == "broadcast" else form
    return sign_of(draw, model, x, form, draw(st.sampled_from([0.0, 0.0, 0.25, -1.5])))


def _weights(draw: Draw, model: FloatModel, rng: np.random.Generator, *shape: int) -> Tensor | Array:
    """Draws weights of ±alpha for a layer. In some draws one weight or one output channel is zero, or ops of the model
    compute the weights."""
    weights = sign_weights(rng, *shape)
    oddity = draw(st.integers(0, 19))
    if oddity == 0:
        weights.reshape(-1)[rng.integers(weights.size)] = 0.0
    elif oddity == 1:
        weights[0] = 0.0
    elif oddity <= 4:
        clipped = model.elementwise("RELU_N1_TO_1", model.const(weights * rng.integers(1, 9, weights.shape)))
        alpha = model.elementwise("ABS", model.const(-np.exp2(rng.integers(-2, 2, (shape[0], 1, 1, 1)))))
        return model.elementwise("MUL", model.sign(clipped), alpha)
    return weights


def _pad_values(draw: Draw, model: FloatModel, x: Tensor, axes: int) -> Tensor:
    amounts = [draw(st.sampled_from([(0, 0), (1, 1), (0, 1), (1, 0), (2, 1), (4, 0)])) for _ in range(axes)]
    return model.pad(x, amounts, draw(st.sampled_from([None, 0.0, 1.0, -1.0])))


def _conv(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    """Appends a sign and its convolution, with random ops between them."""
    x = _signs(draw, model, x)
    kinds = [_conv_2d, _conv_2d, _conv_2d, _conv_1d, _split_conv, _two_convs, _depthwise_conv, _transposed_conv]
    return draw(st.sampled_from(kinds))(draw, model, rng, x)


def _in_channels_first(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    """Appends ops on channel-first images between two transposes, as exporters write them."""
    x = model.transpose(x, 0, 3, 1, 2)
    for kind in draw(st.lists(st.sampled_from(["MUL", "ADD", "SUB", "NEG", "RELU", "sign", "pad"]), max_size=3)):
        if kind == "sign":
            x = sign_of(draw, model, x, draw(FORMS.filter(lambda form: form != "where_channels")))
        elif kind == "pad":
            pads = [(0, 0), (0, 0), *(draw(st.sampled_from([(1, 1), (0, 1)])) for _ in range(2))]
            dims = [size if size < 0 else size + sum(pad) for size, pad in zip(x.dims, pads, strict=True)]
            x = model.op("PAD", [x, model.const(pads, np.int32)], dims)
        elif kind in ("NEG", "RELU"):
            x = model.elementwise(kind, x)
        else:
            values = rng.choice([-1.0, 0.5, 2.0], x.dims[1]) if kind == "MUL" else dyadic(rng, x.dims[1])
            x = model.elementwise(kind, x, model.const(values.reshape(-1, 1, 1)))
    return model.transpose(x, 0, 2, 3, 1)


def _conv_2d(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    taps = draw(st.sampled_from([(1, 1), (3, 3), (2, 3), (1, 2)]))
    stride, dilation = draw(st.sampled_from([(1, 1), (2, 2), (2, 1)])), (1, 1)
    if stride == (1, 1):
        dilation = draw(st.sampled_from([(1, 1), (2, 2), (1, 2)]))
    same, padding = False, draw(st.sampled_from(["valid", "same", "padded", "padded_same", "ones_like_same"]))
    if padding == "same":
        same = True
    elif padding == "ones_like_same":
        amounts = []
        for size, k, s, d in zip(x.dims[1:3], taps, stride, dilation, strict=True):
            total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
            amounts.append((total // 2, total - total // 2))
        x = model.pad(x, amounts, 1.0)
    elif padding != "valid":
        x = _pad_values(draw, model, x, 2)
        same = padding == "padded_same"
    if any(size < (k - 1) * d + 1 for size, k, d in zip(x.dims[1:3], taps, dilation, strict=True)):
        same = True
    channels = x.dims[3]
    groups = draw(st.sampled_from([1, channels // 32])) if channels % 64 == 0 else 1
    channels_out = draw(st.sampled_from([2, 8, 32, 33, 64]))
    channels_out += -channels_out % groups
    weights = _weights(draw, model, rng, channels_out, *taps, channels // groups)
    bias = dyadic(rng, channels_out) if draw(st.booleans()) else None
    return model.conv(x, weights, bias, same=same, stride=stride, dilation=dilation, activation=draw(ACTIVATIONS))


def _transposed_conv(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    taps, stride = draw(st.sampled_from([((2, 2), 2), ((3, 3), 2), ((4, 4), 2), ((5, 2), 2), ((2, 3), 1), ((3, 4), 3)]))
    same, odd = draw(st.booleans()), draw(st.integers(0, stride - 1))
    weights = sign_weights(rng, draw(st.sampled_from([8, 32, 33])), *taps, x.dims[3])
    bias = dyadic(rng, len(weights)) if draw(st.booleans()) else None
    return model.transposed_conv(
        x, weights, bias, same=same, stride=(stride, stride), activation=draw(ACTIVATIONS), odd=odd
    )


def _two_convs(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    """Appends two layers that read the same sign and sometimes have the same weights. Their outputs are added or
    concatenated.
    """
    weights = model.const(sign_weights(rng, draw(st.sampled_from([8, 32])), 3, 3, x.dims[3]))
    other = weights if draw(st.booleans()) else model.const(sign_weights(rng, *weights.shape))
    a, b = (model.conv(x, w, same=True, activation=draw(ACTIVATIONS)) for w in (weights, other))
    if draw(st.booleans()):
        return model.elementwise("ADD", a, b)
    dims = (*a.dims[:3], 2 * a.channels)
    return model.op("CONCATENATION", [a, b], dims, axis=3, fused_activation_function=0)


def _dense_block(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    """Appends layers whose outputs are concatenated with their inputs, or are added to the last channels of their
    inputs.
    """
    for _ in range(draw(st.integers(1, 3))):
        channels = draw(st.sampled_from([32, 32, 64, 8]))
        y = sign_of(draw, model, after(draw, model, rng, x))
        y = model.conv(y, sign_weights(rng, channels, 3, 3, x.channels), same=True)
        y = after(draw, model, rng, y)
        front = x.channels - channels
        if front > 0 and draw(st.booleans()):
            pads = model.const([(0, 0), (0, 0), (0, 0), (front, 0)], np.int32)
            x = model.elementwise("ADD", x, model.op("PAD", [y, pads], x.dims))
        else:
            dims = (*x.dims[:3], x.channels + channels)
            x = model.op("CONCATENATION", [x, y], dims, axis=3, fused_activation_function=0)
    return x


def _depthwise_conv(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    weights = sign_weights(rng, 1, 3, 3, x.channels * draw(st.sampled_from([1, 1, 2])))
    same = draw(st.booleans()) or min(x.dims[1:3]) < 3
    stride = draw(st.sampled_from([1, 1, 2]))
    bias = dyadic(rng, weights.shape[3])
    return model.depthwise_conv(x, weights, bias, same=same, stride=stride, activation=draw(ACTIVATIONS))


def _dense(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    """Appends a dense layer that reads signs or other numbers. The weights are ±alpha and sometimes zeros."""
    batch, columns = x.dims[0], int(np.prod(x.dims[1:]))
    x = model.transpose(x, 0, 3, 1, 2) if draw(st.integers(0, 3)) == 0 else x
    kind = draw(st.sampled_from(["numbers", "numbers", *["signs of an image", "signs of rows"] * 2]))
    x = _signs(draw, model, x) if kind == "signs of an image" else x
    x = model.reshape(x, batch, columns)
    x = _signs(draw, model, x) if kind == "signs of rows" else x
    # Some weights are zero, as ternary training leaves them. If the layer reads signs, only some graphs have zeros.
    smallest = -1 if kind == "numbers" or draw(st.integers(0, 5)) == 0 else 1
    weights = sign_weights(rng, 24, columns) * rng.integers(smallest, 2, (24, columns))
    if draw(st.integers(0, 3)) == 0:
        matrix = model.const(np.ascontiguousarray(weights.T))
        x = model.op("BATCH_MATMUL", [x, matrix], (batch, 24), adj_x=False, adj_y=False)
    else:
        x = model.dense(x, weights, dyadic(rng, 24), activation=draw(ACTIVATIONS))
    x = after(draw, model, rng, x)
    return model.dense(model.sign(x), sign_weights(rng, 5, 24)) if draw(st.booleans()) else x


def _conv_1d(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    """Appends a convolution along one axis. It may be causal, or have its dilation written as SPACE_TO_BATCH_ND."""
    batch, height, width, channels = x.dims
    x = _pad_values(draw, model, model.reshape(x, batch, height * width, channels), 1)
    x = model.pad(x, [(4, 2)]) if x.dims[1] < 6 else x
    split = x.dims[1] % 2 == 0 and draw(st.booleans())
    if split:
        x = model.space_to_batch(x, [2], [draw(st.sampled_from([(0, 0), (2, 2), (3, 1)]))])
    y = model.conv(model.expand(x, 1), _weights(draw, model, rng, 32, 1, 3, channels), activation=draw(ACTIVATIONS))
    y = model.reshape(y, y.dims[0], y.dims[2], 32)
    if split:
        y = model.batch_to_space(y, [2], [draw(st.sampled_from([(0, 0), (0, 1)]))])
    return model.reshape(y, batch, 1, y.dims[1], 32)


def _split_conv(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    """Appends a dilated convolution written with SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""
    pads = [(2 + size % 2, 2) for size in x.dims[1:3]]
    x = model.space_to_batch(x, [2, 2], pads)
    y = model.conv(x, _weights(draw, model, rng, 32, 3, 3, x.dims[3]), activation=draw(ACTIVATIONS))
    crops = [draw(st.sampled_from([(0, 0), (1, 0), (0, 2), (1, 1)])) if size > 1 else (0, 0) for size in y.dims[1:3]]
    return model.batch_to_space(y, [2, 2], crops)


def _pool(draw: Draw, model: FloatModel, x: Tensor) -> Tensor:
    taps, stride = draw(st.sampled_from([(2, 2), (3, 2), (2, 1)]))
    same = draw(st.booleans()) or min(x.dims[1:3]) < taps
    return model.max_pool(x, taps, stride, same=same, activation=draw(ACTIVATIONS))


class Case:
    """A test case: a model, the seed of its random input, the tolerance of its outputs (in levels for int8), and
    options of the conversion.
    """

    def __init__(self, source: bytes, seed: int, tolerance: float = 0.0, **options: Any) -> None:
        self.source, self.seed, self.tolerance, self.options = source, seed, tolerance, options

    def __repr__(self) -> str:
        ops = (f"{op.name}{[t.dims for t in op.inputs if t is not None]}" for op in read_model(self.source).ops())
        return f"seed {self.seed}, {self.options}: " + ", ".join(ops)


def finish(model: FloatModel, rng: np.random.Generator, *outputs: Tensor) -> bytes:
    """The file of a model, with a signature that renames and reorders its inputs and outputs, as dictionaries in Keras
    do."""
    whole = model.model(*outputs)
    assert whole.signatures is not None
    for signature in whole.signatures:
        signature.inputs, signature.outputs = (
            [(str(name), named[place][1]) for name, place in zip(names, rng.permutation(len(named)), strict=False)]
            for named in (signature.inputs, signature.outputs)
            for names in [rng.permutation(_KEYS)]
        )
    return write_model(whole)


def _inputs(draw: Draw, model: FloatModel, batch: int, sizes: tuple[int, int, int]) -> Tensor:
    """Adds a tensor that is computed from a vector and one or more images. Some images are channel-first, and the
    vector is added to all pixels.
    """

    def given(*shape: int) -> Tensor:
        return model.input(abs(batch), *shape, signature=(batch, *shape) if batch < 0 else None)

    height, width, channels = sizes
    is_turned = draw(st.integers(0, 3)) == 0
    x = model.transpose(given(channels, height, width), 0, 2, 3, 1) if is_turned else given(*sizes)
    if draw(st.integers(0, 4)) == 0:
        x = model.elementwise("SUB", x, given(*sizes))
    if draw(st.integers(0, 4)) == 0:
        x = model.elementwise("ADD", x, model.reshape(given(channels), batch, 1, 1, channels))
    return x


@st.composite
def graphs(draw: Draw, most_stages: int = 3) -> Case:
    """Draws float models with layers that read signs, and with the ops that exporters write between the layers."""
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    model = FloatModel()
    channels = draw(st.sampled_from([32, 64, 40, 3]))
    batch = draw(st.sampled_from([1, 4, -1]))
    sizes = (draw(st.integers(4, 7)), draw(st.integers(4, 7)), channels)
    x = _inputs(draw, model, batch, sizes)
    outputs: list[Tensor] = []
    for _ in range(draw(st.integers(1, most_stages))):
        before = x
        if draw(st.booleans()):
            x = after(draw, model, rng, x)
        x = _in_channels_first(draw, model, rng, x) if draw(st.integers(0, 5)) == 0 else x
        x = _conv(draw, model, rng, x)
        x = _dense_block(draw, model, rng, x) if draw(st.integers(0, 5)) == 0 else x
        x = _in_channels_first(draw, model, rng, x) if draw(st.integers(0, 5)) == 0 else x
        if draw(st.booleans()):
            x = after(draw, model, rng, x)
        if draw(st.integers(0, 2)) == 0:
            x = _pool(draw, model, x)
        x = after(draw, model, rng, x)
        if before.dims == x.dims and draw(st.booleans()):
            x = model.elementwise("ADD", x, before)
        if draw(st.integers(0, 4)) == 0:
            outputs.append(x)
    if most_stages > 1 and draw(st.booleans()):
        x = _dense(draw, model, rng, x)
    elif draw(st.integers(0, 3)) == 0:
        x = model.transpose(x, 0, 3, 1, 2)
    if x in outputs:
        outputs.remove(x)
    return Case(finish(model, rng, x, *outputs), seed)
