from collections.abc import Callable

import numpy as np
import pytest

from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.fuse.average_first import average_first
from tests.support.float_models import FloatModel, assert_same_values, dyadic, run_pass

RNG = np.random.default_rng(0)


def batch_norm(model: FloatModel, x: Tensor, activation: str = "none") -> Tensor:
    scaled = model.elementwise("MUL", x, model.const(dyadic(RNG, 8)))
    return model.elementwise("ADD", scaled, model.const(dyadic(RNG, 8)), activation=activation)


def average(model: FloatModel, x: Tensor, **options: int) -> Tensor:
    """Adds an average of each 4x4 pixels."""
    sizes = {"filter_width": 4, "filter_height": 4, "stride_w": 4, "stride_h": 4, "padding": 1}
    shape = (x.dims[0], x.dims[1] // 4, x.dims[2] // 4, x.dims[3])
    return model.op("AVERAGE_POOL_2D", [x], shape, **{**sizes, "fused_activation_function": 0, **options})


def mean(model: FloatModel, x: Tensor, axes: tuple[int, ...] = (1, 2)) -> Tensor:
    shape = [size for axis, size in enumerate(x.dims) if axis not in [each % 4 for each in axes]]
    return model.op("MEAN", [x, model.const(axes, np.int32)], shape, keep_dims=False)


def dense(model: FloatModel, x: Tensor, columns: int = 8, bias: bool = False) -> Tensor:
    constants = [model.const(dyadic(RNG, 4, columns)), model.const(dyadic(RNG, 4)) if bias else None]
    rows = int(np.prod(x.dims)) // columns
    options = {"fused_activation_function": 0, "weights_format": 0, "keep_num_dims": False}
    return model.op("FULLY_CONNECTED", [x, *constants], (rows, 4), **options)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("pool", [average, mean])
@pytest.mark.parametrize("signs", [True, False])
def test_a_dense_layer_applies_the_batch_norm_to_averages(
    pool: Callable[[FloatModel, Tensor], Tensor], bias: bool, signs: bool
) -> None:
    model = FloatModel()
    x = model.input(1, 8, 4, 8) if pool is average else model.input(2, 4, 4, 8)
    y = batch_norm(model, x)
    outputs = [dense(model, pool(model, y), bias=bias), *([model.packed(y)] if signs else [])]
    source = model.finish(*outputs)
    result = read_model(source)
    assert run_pass(average_first, result)[0]
    pools = [op for op in result.graphs[0].ops if op.name in ("AVERAGE_POOL_2D", "MEAN")]
    assert [op.input(0) for op in pools] == result.graphs[0].inputs
    assert_same_values(source, result)


def is_left(model: FloatModel, *outputs: Tensor) -> bool:
    return not run_pass(average_first, read_model(model.finish(*outputs)))[0]


def test_an_activation_after_the_batch_norm_stays_before_the_average() -> None:
    model = FloatModel()
    assert is_left(model, dense(model, average(model, batch_norm(model, model.input(1, 4, 4, 8), activation="relu"))))


def test_a_batch_norm_whose_result_is_read_otherwise_stays() -> None:
    model = FloatModel()
    y = batch_norm(model, model.input(1, 4, 4, 8))
    assert is_left(model, dense(model, average(model, y)), model.elementwise("ABS", y))


def test_a_batch_norm_whose_result_is_an_output_stays() -> None:
    model = FloatModel()
    y = batch_norm(model, model.input(1, 4, 4, 8))
    assert is_left(model, dense(model, average(model, y)), y)


def test_an_average_with_an_activation_or_over_channels_stays() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 8)
    clamped = average(model, batch_norm(model, x), fused_activation_function=1)
    across = mean(model, batch_norm(model, x), axes=(1, -1))
    assert is_left(model, dense(model, clamped), dense(model, across, columns=4))


def test_averages_that_a_dense_layer_does_not_read_in_rows_of_channels_stay() -> None:
    model = FloatModel()
    x = model.input(1, 8, 4, 8)
    flat = dense(model, average(model, batch_norm(model, x)), columns=16)
    assert is_left(model, flat, average(model, batch_norm(model, x)))


def test_weights_that_would_be_infinite_stay() -> None:
    model = FloatModel()
    y = model.elementwise("MUL", model.input(1, 4, 4, 8), model.const(np.full(8, 1e30)))
    weights = model.const(np.full((4, 8), 1e30))
    options = {"fused_activation_function": 0, "weights_format": 0, "keep_num_dims": False}
    assert is_left(model, model.op("FULLY_CONNECTED", [average(model, y), weights, None], (1, 4), **options))
