import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.analysis.numbers.ranges import UNBOUNDED, range_of
from litebnn.analysis.quantization import Range, parameters
from litebnn.graph import Tensor
from tests.support.float_models import FloatModel, dyadic
from tests.zeros.chains import CHAIN, JOINS, SHIFTS, chained, chains

INF = float("inf")
CHAINS = chains(*CHAIN, *SHIFTS)


@settings(max_examples=60)
@given(first=CHAINS, second=CHAINS, join=st.sampled_from(["", *JOINS]), seed=st.integers(0, 99))
def test_no_value_is_out_of_bounds(first: list[str], second: list[str], join: str, seed: int) -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 3)
    tensor = chained(model, x, first)
    if join:
        other = chained(model, tensor, [name for name in second if name in {**SHIFTS, "RELU": 0, "TANH": 0, "ABS": 0}])
        tensor = model.elementwise(join, tensor, other)
    low, high = range_of(model.graph, tensor)
    sample = dyadic(np.random.default_rng(seed), 1, 4, 4, 3)
    values = litebnn.Interpreter(model.finish(tensor)).predict(sample)
    assert np.all((values >= low) & (values <= high))


def softmax(model: FloatModel, x: Tensor) -> Tensor:
    """Adds a softmax as litert-torch writes it."""
    axes = model.const([3], np.int32)
    powers = model.elementwise("EXP", model.elementwise("SUB", x, model.op("REDUCE_MAX", [x, axes], x.dims)))
    return model.elementwise("DIV", powers, model.op("SUM", [powers, axes], x.dims))


def test_bounds_of_single_ops() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 8)
    positive = model.elementwise("RELU", x)
    ring = [(1, 1), (1, 1)]
    wide = np.random.default_rng(0).standard_normal((8, 1, 1, 8))
    flag = model.elementwise("GREATER", x, model.const(0), type="BOOL")
    cases: list[tuple[Tensor, Range]] = [
        (x, UNBOUNDED),
        (model.conv(x, wide), UNBOUNDED),
        (model.conv(x, wide, activation="relu"), (0, INF)),
        (model.conv(positive, abs(wide)), (0, INF)),
        (model.conv(positive, -abs(wide)), (-INF, 0)),
        (model.conv(positive, abs(wide), np.full(8, -1)), UNBOUNDED),
        (model.concatenated(positive, model.elementwise("ABS", x)), (0, INF)),
        (model.concatenated(positive, x), UNBOUNDED),
        (model.op("SELECT_V2", [flag, positive, model.const(2)], x.dims), (0, INF)),
        (model.elementwise("MUL", x, x), (0, INF)),
        (softmax(model, x), (0, INF)),
        (model.op("POW", [x, model.const(2)], x.dims), (0, INF)),
        (model.op("POW", [x, model.const(3)], x.dims), UNBOUNDED),
        (model.op("PRELU", [x, model.const(np.full((1, 1, 8), -1))], x.dims), (0, INF)),
        (model.op("PRELU", [x, model.const(np.full((1, 1, 8), 0.5))], x.dims), UNBOUNDED),
        (model.max_pool(model.pad(positive, ring, -np.inf), 3, 2), (0, INF)),
        (model.max_pool(model.pad(positive, ring, -np.inf), 1, 1), (-INF, INF)),
        (model.elementwise("DIV", positive, model.elementwise("EXP", x)), (0, INF)),
        (model.elementwise("DIV", model.const(1), model.elementwise("NEG", positive)), (-INF, 0)),
        (model.elementwise("ADD", positive, model.const(1)), (1, INF)),
        (model.op("CAST", [flag], x.dims), (0, 1)),
        (model.sign(x, "where_ge"), (-1, 1)),
    ]
    for tensor, bounds in cases:
        assert range_of(model.graph, tensor) == bounds, tensor.name


def test_bounds_of_a_grid() -> None:
    model = FloatModel()
    x = model.input(1, 4, type="INT8")
    x.quantization = parameters(0.5, -28)
    clamped = model.op("RELU", [x], x.dims, type="INT8")
    clamped.quantization = x.quantization
    rounded = model.op("QUANTIZE", [clamped], x.dims, type="INT8")
    rounded.quantization = parameters(1.0, 0)
    for tensor, bounds in ((x, (-50, 77.5)), (clamped, (0, 77.5)), (rounded, (0, 78.5))):
        assert range_of(model.graph, model.op("DEQUANTIZE", [tensor], x.dims)) == bounds


def test_an_activation_that_litebnn_does_not_know_has_no_bounds() -> None:
    model = FloatModel()
    x = model.elementwise("ABS", model.input(1, 4))
    total = model.elementwise("ADD", x, x)
    model.graph.ops[-1].options.fused_activation_function = 5  # sign bit
    assert range_of(model.graph, total) == UNBOUNDED
