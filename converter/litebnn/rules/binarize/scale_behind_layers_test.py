from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.binarize.scale_behind_layers import scale_behind_layers
from tests.support.float_models import FloatModel, dyadic, op_names, run_pass, sign_weights

RNG = np.random.default_rng(0)
Layer = Callable[[FloatModel, Tensor], Tensor]


def mean(model: FloatModel, x: Tensor, *axes: int) -> Tensor:
    """Appends the mean magnitude of x over axes, which keep the size 1."""
    shape = [1 if axis in axes else size for axis, size in enumerate(x.dims)]
    return model.op("MEAN", [model.elementwise("ABS", x), model.const(axes, np.int32)], shape, keep_dims=True)


def conv(taps: int = 1, **options) -> Layer:
    def build(model: FloatModel, x: Tensor) -> Tensor:
        return model.conv(x, sign_weights(RNG, 8, taps, taps, x.channels), dyadic(RNG, 8), **options)

    return build


def dense(model: FloatModel, x: Tensor, *, rows: Sequence[int] = (), **options: int) -> Tensor:
    rows = rows or x.dims[:-1]
    inputs = [x, model.const(sign_weights(RNG, 8, x.channels)), model.const(dyadic(RNG, 8))]
    return model.op("FULLY_CONNECTED", inputs, (*rows, 8), keep_num_dims=len(rows) == len(x.dims) - 1, **options)


def clamped_dense(model: FloatModel, x: Tensor) -> Tensor:
    return dense(model, x, fused_activation_function=3)


def dense_of_rows(model: FloatModel, x: Tensor) -> Tensor:
    return dense(model, x, rows=[int(np.prod(x.dims[:-1]))])


def matmul(model: FloatModel, x: Tensor) -> Tensor:
    matrix = model.const(sign_weights(RNG, 8, x.channels, alpha=False).T)
    return model.op("BATCH_MATMUL", [x, matrix], (*x.dims[:-1], 8), adj_x=False, adj_y=False)


def transposed(model: FloatModel, x: Tensor) -> Tensor:
    return model.transposed_conv(x, sign_weights(RNG, 8, 3, 3, x.channels), dyadic(RNG, 8))


def padded(model: FloatModel, x: Tensor) -> Tensor:
    return conv(3, stride=(2, 2))(model, model.pad(x, [(1, 1), (1, 1)]))


def flattened(model: FloatModel, x: Tensor) -> Tensor:
    return dense(model, model.reshape(x, x.dims[0], int(np.prod(x.dims[1:]))))


def from_channel_first(model: FloatModel, x: Tensor) -> Tensor:
    return conv()(model, model.transpose(x, 0, 2, 3, 1))


def halved(model: FloatModel, x: Tensor) -> Tensor:
    return dense(model, model.elementwise("MUL", x, model.const(0.5)))


IMAGE, ROWS = (2, 5, 6, 32), (2, 5, 32)
# The shape of the signs, the axes over which their scale is the mean, and the layer.
LAYERS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Layer]] = {
    "1x1": (IMAGE, (3,), conv()),
    "1x1, strides": (IMAGE, (3,), conv(stride=(2, 3))),
    "1x1, SAME strides": (IMAGE, (3,), conv(same=True, stride=(2, 2))),
    "1x1, columns": (IMAGE, (1, 3), conv(activation="relu")),
    "3x3, samples": (IMAGE, (1, 2, 3), conv(3, same=True, activation="relu6")),
    "3x3, padded samples": (IMAGE, (1, 2, 3), padded),
    "3x3, all": (IMAGE, (0, 1, 2, 3), conv(3)),
    "transposed": (IMAGE, (1, 2, 3), transposed),
    "rows": (ROWS, (2,), dense),
    "clamped rows": (ROWS, (2,), clamped_dense),
    "merged rows": (ROWS, (2,), dense_of_rows),
    "rows of all samples": (ROWS, (0, 1, 2), dense_of_rows),
    "halved rows": (ROWS, (2,), halved),
    "product of rows": (ROWS, (1, 2), matmul),
    "flattened": (IMAGE, (1, 2, 3), flattened),
    "channel-first": ((2, 32, 5, 6), (1,), from_channel_first),
}


def times(model: FloatModel, x: Tensor, k: Tensor) -> Tensor:
    return model.elementwise("MUL", model.sign(x, "where_ge"), k)


def divided(model: FloatModel, x: Tensor, k: Tensor) -> Tensor:
    return model.elementwise("DIV", model.sign(x), model.elementwise("ADD", k, model.const(1)))


def scaled_twice(model: FloatModel, x: Tensor, k: Tensor) -> Tensor:
    return model.elementwise("MUL", k, model.elementwise("MUL", model.elementwise("EXP", k), model.sign(x)))


def selected(model: FloatModel, x: Tensor, k: Tensor) -> Tensor:
    condition = model.elementwise("GREATER", x, model.const(0.25), type="BOOL")
    return model.op("SELECT_V2", [condition, k, model.elementwise("NEG", k)], x.dims)


def straight_through(model: FloatModel, x: Tensor, k: Tensor) -> Tensor:
    clip = model.elementwise("RELU_N1_TO_1", x)
    return model.elementwise("ADD", model.elementwise("SUB", times(model, x, k), clip), clip)


def zero_or_scale(model: FloatModel, x: Tensor, k: Tensor) -> Tensor:
    return model.elementwise("MUL", model.two_values(x), k)


def levels(model: FloatModel, x: Tensor, k: Tensor) -> Tensor:
    clipped = model.elementwise("RELU_0_TO_1", x)
    return model.elementwise("MUL", model.elementwise("ROUND", model.elementwise("MUL", clipped, model.const(3))), k)


FORMS = (times, divided, scaled_twice, selected, straight_through, zero_or_scale, levels)


@settings(max_examples=30)
@given(st.sampled_from(list(LAYERS)), st.sampled_from(FORMS), st.integers(0, 1 << 16))
def test_a_shared_scale_moves_behind_the_layer(name: str, form, seed: int) -> None:
    shape, axes, layer = LAYERS[name]
    model = FloatModel()
    x = model.input(*shape)
    source = model.finish(layer(model, form(model, x, mean(model, x, *axes))))
    result, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary, report.layers[0].reasons
    assert {"CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL", "TRANSPOSE_CONV"}.isdisjoint(op_names(result))
    sample = dyadic(np.random.default_rng(seed), *shape, largest=16)
    expected, actual = (litebnn.Interpreter(each).predict(sample) for each in (source, result))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_layers_share_the_signs_of_one_scaled_tensor() -> None:
    model = FloatModel()
    x = model.input(*ROWS)
    rows = times(model, x, mean(model, x, 2))
    result = litebnn.convert_tflite(model.finish(dense(model, rows), dense(model, rows)))
    names = op_names(result)
    assert (names.count("LceQuantize"), names.count("LceBconv2d"), names.count("MUL")) == (1, 2, 2)


def of_channels(model: FloatModel) -> Tensor:
    x = model.input(*IMAGE)
    return conv()(model, times(model, x, mean(model, x, 1, 2)))


def of_windows(model: FloatModel) -> Tensor:
    x = model.input(*IMAGE)
    return conv(3)(model, times(model, x, mean(model, x, 3)))


def padded_with_ones(model: FloatModel) -> Tensor:
    x = model.input(*IMAGE)
    return conv(3)(model, model.pad(times(model, x, mean(model, x, 1, 2, 3)), [(1, 1), (1, 1)], 1))


def of_many_values(model: FloatModel) -> Tensor:
    x = model.input(*IMAGE)
    return conv()(model, model.elementwise("MUL", x, mean(model, x, 3)))


def with_float_weights(model: FloatModel) -> Tensor:
    x = model.input(*IMAGE)
    return model.conv(times(model, x, mean(model, x, 3)), RNG.standard_normal((8, 1, 1, 32)))


def mixed_rows(model: FloatModel) -> Tensor:
    x = model.input(*ROWS)
    return dense(model, model.reshape(times(model, x, mean(model, x, 2)), 2, 160))


@pytest.mark.parametrize(
    "build", [of_channels, of_windows, padded_with_ones, of_many_values, with_float_weights, mixed_rows]
)
def test_a_scale_that_differs_within_a_sum_stays(build: Callable[[FloatModel], Tensor]) -> None:
    model = FloatModel()
    assert not run_pass(scale_behind_layers, read_model(model.finish(build(model))))[0]
