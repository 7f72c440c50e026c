"""Makes random graphs that TensorFlow has quantized, or that were trained with fake quantization."""

import numpy as np
from hypothesis import strategies as st

from litebnn.graph import Array, Tensor
from tests.convert.random_graphs import ACTIVATIONS, Case, Draw, after, finish, sign_of
from tests.support.float_models import SIGN_FORMS, dyadic, sign_weights
from tests.support.quantized_models import (
    EXACT_GRID,
    INT8_SIGNS,
    NO_MINUS_GRID,
    USUAL_GRID,
    Grid,
    Int8Model,
    Int16Model,
    TrainedModel,
)

# A quantization scale with which sums of binary fractions never lie halfway between two int8 values. Runtimes round
# such sums in different ways.
_NO_TIES = float(np.float32(np.pi / 10))


@st.composite
def int8_graphs(draw: Draw) -> Case:
    """Draws models with signs of int8 values, and int8 layers that read these signs. Some weights are not binary.

    If the scale and zero point of a sign represent 1 and -1 exactly, source and result compute equal int8 values. A
    model may then have several layers in sequence. With other scales, the two models may round a value to different
    int8 values, which may flip a later sign.
    """
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    model = Int8Model()
    grid = draw(st.sampled_from([EXACT_GRID, EXACT_GRID, USUAL_GRID, NO_MINUS_GRID]))
    exact = grid == EXACT_GRID
    step = 1 / 8 if exact else float(rng.uniform(0.02, 0.2))
    batch = draw(st.sampled_from([1, 4, -1]))
    sizes = (draw(st.integers(4, 6)), draw(st.integers(4, 6)), draw(st.sampled_from([32, 40])))
    of_floats = draw(st.booleans())
    x = _input8(model, of_floats, batch, sizes, (1 / 16, int(rng.integers(-128, 20))))
    if draw(st.integers(0, 3)) == 0:
        x = model.add8(x, _input8(model, of_floats, batch, sizes, (1 / 8, 5)), (1 / 16, -3))
    outputs = []
    for _ in range(draw(st.integers(1, 3)) if exact else 1):
        form = draw(st.sampled_from(INT8_SIGNS if exact else INT8_SIGNS[:-1]))
        x = model.sign8(x, form, grid)
        for between in draw(st.lists(st.sampled_from(["pool", "zeros", "ones"]), max_size=2)):
            amounts = draw(st.sampled_from([((1, 1), (1, 1)), ((0, 1), (0, 1)), ((2, 0), (0, 0))]))
            x = (
                model.pool8(x)
                if between == "pool" and min(x.dims[1:3]) > 1
                else model.pad8(x, None if between == "zeros" else 1.0, amounts)
            )
        if draw(st.integers(0, 7)) == 0:
            filters, bias = sign_weights(rng, 1, 3, 3, x.channels), dyadic(rng, x.channels)
            outputs.append(model.depthwise_conv8(x, filters, bias, (step, 0), stride=draw(st.sampled_from([1, 2]))))
        weights = sign_weights(rng, draw(st.sampled_from([8, 33])), 3, 3, x.dims[3])
        if draw(st.integers(0, 5)) == 0:
            weights *= rng.integers(0, 3, weights.shape)
        activation = draw(st.sampled_from(["none", "relu"]))
        results = (step, -128 if activation == "relu" else int(rng.integers(-20, 20)))
        x = _conv8(draw, model, rng, x, weights, results, activation)
        outputs.append(x)
    low_bit = draw(st.sampled_from([None, "int4", "int2"])) if exact else None
    if exact and draw(st.booleans()):
        columns = int(np.prod(x.dims[1:]))
        levels = rng.integers(-1 if low_bit else 1, 2, (10, columns))
        x = x if low_bit else model.sign8(x, "where", grid)
        weights = sign_weights(rng, 10, columns, alpha=False) * levels
        outputs.append(model.dense8(model.reshape8(x, batch, columns), weights, dyadic(rng, 10), (1.0, 3)))
        if not low_bit and draw(st.booleans()):
            outputs.append(model.softmax8(outputs[-1]))
    tolerance = 1.0 if low_bit else 0.0
    if not exact:
        tolerance = 1.01 * step if of_floats else 1.0
    results = [model.dequantize8(x) if of_floats else x for x in outputs[-2:]]
    return Case(finish(model, rng, *results), seed, tolerance, low_bit_weights=low_bit)


def _input8(model: Int8Model, of_floats: bool, batch: int, sizes: tuple[int, ...], grid: Grid) -> Tensor:
    """An int8 input, or a float input that the model quantizes."""
    signature = (batch, *sizes) if batch < 0 else None
    if of_floats:
        return model.quantize8(model.input(abs(batch), *sizes, signature=signature), grid)
    return model.input8(grid, abs(batch), *sizes, signature=signature)


def _conv8(
    draw: Draw,
    model: Int8Model,
    rng: np.random.Generator,
    x: Tensor,
    weights: Array,
    grid: Grid,
    activation: str = "none",
) -> Tensor:
    """Appends an int8 convolution: with strides, transposed, along one axis, or with its dilation written as
    SPACE_TO_BATCH_ND."""
    bias = dyadic(rng, len(weights))
    kinds = ["conv", "conv", "conv", "dilated", "dilated", "transposed"]
    producer = model.graph.producer(x)
    if producer is None or not producer.name.startswith("PAD"):  # reshaped rows have no padding between them
        kinds.append("causal")
    kind = draw(st.sampled_from(kinds))
    if kind == "transposed":
        return model.transposed_conv8(x, weights, bias, grid)
    if kind == "conv":
        same = draw(st.booleans()) or min(x.dims[1:3]) < 3
        stride = draw(st.sampled_from([1, 1, 2]))
        return model.conv8(x, weights, bias, grid, same=same, activation=activation, stride=stride)
    if kind == "causal":
        batch, height, width, channels = x.dims
        x = model.pad8(model.reshape8(x, batch, height * width, channels), None, [(2, 0)])
        x = model.reshape8(x, batch, 1, *x.dims[1:])
        return model.conv8(x, weights[:, :1], bias, grid, same=False, activation=activation)
    x = model.as_(x, model.space_to_batch(x, [2, 2], [(2 + size % 2, 2) for size in x.dims[1:3]]), 2)
    x = model.conv8(x, weights, bias, grid, same=False, activation=activation)
    return model.as_(x, model.batch_to_space(x, [2, 2], [(0, 0), (0, 0)]), 2)


@st.composite
def int16_graphs(draw: Draw) -> Case:
    """Draws models with int16 layers. Their signs have any form, and TensorFlow leaves the signs in float."""
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    model = Int16Model()
    batch = draw(st.sampled_from([1, 4, -1]))
    sizes = (draw(st.integers(4, 6)), draw(st.integers(4, 6)), draw(st.sampled_from([3, 8])))
    signature = (batch, *sizes) if batch < 0 else None
    x = model.input(abs(batch), *sizes, signature=signature)
    if draw(st.integers(0, 3)) == 0:
        x = model.elementwise("ADD", x, model.input(abs(batch), *sizes, signature=signature))
    x = model.quantize8(x, (1 / 256, 0))
    weights = rng.standard_normal((draw(st.sampled_from([32, 40])), 3, 3, sizes[2]))
    x = model.conv8(x, weights, dyadic(rng, len(weights)), (1 / 32, 0), same=True, activation=draw(ACTIVATIONS))
    outputs = []
    for _ in range(draw(st.integers(1, 3))):
        x = model.quantize8(sign_of(draw, model, model.dequantize8(x)), (1 / 32767, 0))
        if draw(st.integers(0, 2)) == 0:
            x = model.pool8(x) if min(x.dims[1:3]) > 1 else model.pad8(x, None)
        x = _conv8(draw, model, rng, x, sign_weights(rng, draw(st.sampled_from([8, 32])), 3, 3, x.dims[3]), (1 / 32, 0))
        outputs.append(model.dequantize8(x))
    if draw(st.booleans()):
        x = model.quantize8(sign_of(draw, model, model.dequantize8(x)), (1 / 32767, 0))
        rows = model.reshape8(x, batch, int(np.prod(x.dims[1:])))
        weights = sign_weights(rng, 10, rows.dims[1], alpha=False)
        outputs.append(model.dequantize8(model.dense8(rows, weights, dyadic(rng, 10), (1 / 8, 0))))
    return Case(finish(model, rng, *outputs[-2:]), seed)


@st.composite
def trained_graphs(draw: Draw) -> Case:
    """Draws models in which layers that read signs lie between fake-quantized activations. The weights are quantized by
    channel.

    All scales are powers of two, and no scale is coarser than an earlier one. Therefore int8 gives the same values as
    float, except for softmax.
    """
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    model = TrainedModel()
    batch = draw(st.sampled_from([1, 4, -1]))
    sizes = (draw(st.integers(4, 6)), draw(st.integers(4, 6)), draw(st.sampled_from([3, 8])))
    signature = (batch, *sizes) if batch < 0 else None
    x = model.fake(model.input(abs(batch), *sizes, signature=signature), (1 / 16, int(rng.integers(-20, 20))))
    if draw(st.integers(0, 3)) == 0:
        y = model.fake(model.input(abs(batch), *sizes, signature=signature), (1 / 8, 5))
        x = model.fake(model.elementwise("ADD", x, y), (1 / 16, -3))
    channels = draw(st.sampled_from([32, 40]))
    kernel = model.fake_weights(rng.integers(-3, 4, (channels, 3, 3, sizes[2])), rng.choice([0.5, 1.0], channels))
    bias = dyadic(rng, channels, step=1 / 16)
    grid = (1 / 32, int(rng.integers(-20, 20)))
    x = model.fake(model.conv(x, kernel, bias, same=True, activation=draw(ACTIVATIONS)), grid)
    for _ in range(draw(st.integers(1, 2))):
        before, before_grid = x, grid
        if draw(st.integers(0, 2)) == 0 and min(x.dims[1:3]) > 1:
            x = model.fake(model.max_pool(x, 2, 1), grid)
        # A straight-through estimator adds x and subtracts it again. The result is exact only if all values are binary
        # fractions.
        x = sign_of(draw, model, x, draw(st.sampled_from(SIGN_FORMS)) if grid[0] == _NO_TIES else "")
        x = model.conv(x, sign_weights(rng, channels, 3, 3, channels), dyadic(rng, channels), same=True)
        is_sum = before_grid[0] != _NO_TIES and draw(st.booleans())
        grid = (1 / 8 if is_sum else _NO_TIES, int(rng.integers(-20, 20)))
        x = model.fake(x if is_sum else after(draw, model, rng, x), grid)
        if is_sum and x.dims == before.dims:
            grid = (1 / 32, 0)
            x = model.fake(model.elementwise("ADD", x, before), grid)
    outputs = [x]
    tolerance = 0.0
    if draw(st.booleans()):
        columns = int(np.prod(x.dims[1:]))
        x = model.fake(model.reshape(x, batch, columns), grid)
        levels = rng.integers(-1, 2, (10, columns))
        x = model.fake(model.dense(x, model.fake_weights(levels, np.full(1, 0.5))), (grid[0] / 2, 0))
        outputs.append(x)
        if draw(st.booleans()):
            tolerance = 1 / 256
            outputs.append(model.fake(model.op("SOFTMAX", [x], x.dims, beta=1.0), (1 / 256, -128)))
    kinds = st.sampled_from(["float32", "int8"])
    options = {"inference_input_type": draw(kinds), "inference_output_type": draw(kinds)}
    return Case(finish(model, rng, *outputs[-2:]), seed, tolerance, **options)
