import numpy as np
import pytest

import litebnn
from litebnn.analysis.quantization import computed_on_grid, numbers_of_grid, parameters
from litebnn.graph import Array
from tests.support.float_models import FloatModel
from tests.support.quantized_models import NO_MINUS_GRID, USUAL_GRID, Grid

ALL = 256
TWICE_USUAL, HALVES = (float(np.float32(4 / 255)), 20), (1 / 2, 0)


def random_grids(count: int) -> list[Grid]:
    rng = np.random.default_rng(0)
    return [(float(np.exp(rng.uniform(-6, -1))), int(rng.integers(-128, 128))) for _ in range(count)]


GRIDS: list[Grid] = [USUAL_GRID, NO_MINUS_GRID, TWICE_USUAL, HALVES, *random_grids(2)]


def check(name: str, of: list[Grid], result: Grid) -> None:
    """Compares litebnn's results of an op with the installed runtime's, for all int8 values of one input or all pairs
    of values of two inputs."""
    model, shape = FloatModel(), (1, 1, ALL ** len(of))
    inputs = [model.input(*shape, type="INT8") for _ in of]
    for tensor, grid in zip(inputs, of, strict=True):
        tensor.quantization = parameters(*grid)
    options = {"fused_activation_function": 0} if len(of) == 2 else {}
    output = model.op(name, inputs, shape, type="INT8", version=2, **options)
    output.quantization = parameters(*result)
    levels = np.stack(np.meshgrid(*[np.arange(ALL)] * len(of), indexing="ij")).reshape(len(of), -1)
    numbers = [known(numbers_of_grid(tensor))[row] for tensor, row in zip(inputs, levels, strict=True)]
    computed = known(computed_on_grid(model.graph.ops[-1], numbers))
    expected = litebnn.Interpreter(model.finish(output)).predict(
        [(row - 128).astype(np.int8).reshape(shape) for row in levels]
    )
    np.testing.assert_array_equal(computed, known(numbers_of_grid(output))[expected.reshape(-1).astype(int) + 128])


def known(array: Array | None) -> Array:
    assert array is not None
    return array


@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
@pytest.mark.parametrize("result", GRIDS)
def test_pairs_of_levels_are_computed_as_the_runtime_does(name: str, result: Grid) -> None:
    for left in GRIDS:
        check(name, [left, GRIDS[GRIDS.index(left) - 1]], result)


@pytest.mark.parametrize("result", GRIDS)
def test_levels_are_moved_to_another_grid_as_the_runtime_does(result: Grid) -> None:
    for grid in GRIDS:
        check("QUANTIZE", [grid], result)


def test_what_is_not_known_of_an_op_is_said() -> None:
    model = FloatModel()
    x = model.input(1, 4, type="INT8")
    x.quantization = parameters(*USUAL_GRID)
    for name, kind in (("MAXIMUM", "INT8"), ("ADD", "FLOAT32")):
        output = model.op(name, [x, x], x.dims, type=kind)
        output.quantization = parameters(*USUAL_GRID) if kind == "INT8" else None
        assert computed_on_grid(model.graph.ops[-1], [np.zeros(1), np.zeros(1)]) is None


@pytest.mark.parametrize(("name", "count"), [("ADD", 2), ("SUB", 2), ("QUANTIZE", 1)])
@pytest.mark.parametrize(("scale", "result"), [(1.0, 1e-9), (3e38, 1e-38)])
def test_grids_that_differ_too_much_are_not_known(name: str, count: int, scale: float, result: float) -> None:
    model = FloatModel()
    x = model.input(1, 4, type="INT8")
    x.quantization = parameters(scale)
    model.op(name, [x] * count, x.dims, type="INT8").quantization = parameters(result)
    with np.errstate(all="ignore"):
        assert computed_on_grid(model.graph.ops[-1], [np.zeros(1)] * count) is None
