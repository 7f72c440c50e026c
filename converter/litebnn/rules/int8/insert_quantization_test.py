import re

import numpy as np
import pytest

from litebnn.analysis.quantizable import activations
from litebnn.analysis.quantization import Ranges, parameters
from litebnn.graph import Model, Tensor
from litebnn.rules.build.notes import Notes
from litebnn.rules.int8.insert_quantization import insert_quantization
from tests.support.float_models import FloatModel, binarized, op_names, sign_weights


def inserted_into(model: Model, ranges: Ranges, input_type: str = "float32") -> Notes:
    """Quantizes a model in place and returns the notes. Checks that a second call changes nothing."""
    notes = Notes(model, {"inference_input_type": input_type}, ranges)
    insert_quantization(model.graphs[0], notes)
    assert not insert_quantization(model.graphs[0], notes)
    return notes


def test_known_ranges_are_quantized_and_others_stay_float() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    y = model.elementwise("ADD", x, model.const(np.ones(4)))
    z = model.elementwise("RELU", y)
    assert activations(model.graph) == [x, y, z]
    inserted = model.model(z)
    inserted_into(inserted, {y: (-1.0, 3.0)})
    assert op_names(inserted) == ["ADD", "QUANTIZE", "DEQUANTIZE", "RELU"]
    levels = inserted.graphs[0].ops[1].output
    scale, zero_point = levels.per_tensor_quantization or (0.0, 0)
    assert scale == pytest.approx(4 / 255)
    assert scale * (-128 - zero_point) == pytest.approx(-1, abs=scale)
    assert inserted.graphs[0].outputs == [z]


def grids(model: Model, tensor: Tensor) -> list[tuple[float, int] | None]:
    """Returns the scales and zero points of the QUANTIZE ops that read a tensor."""
    ops = model.graphs[0].consumers(tensor)
    return [op.output.per_tensor_quantization for op in ops if op.name == "QUANTIZE"]


@pytest.mark.parametrize("limits", [(0.0, 0.0), (0.0, 1e-38), (-1e-45, 0.0)])
def test_what_is_always_zero_has_the_scale_of_what_it_is_computed_of(limits: tuple[float, float]) -> None:
    model = FloatModel()
    x = model.input(1, 3, 3, 2)
    dead = model.conv(x, np.full((4, 1, 1, 2), 12.7), np.full(4, -1e4), activation="relu")
    dead_again = model.elementwise("RELU", dead)
    inserted = model.model(dead_again)
    notes = inserted_into(inserted, {x: (-12.8, 12.7), dead: limits, dead_again: limits})
    [[x_grid], [first], [second]] = (grids(inserted, tensor) for tensor in (x, dead, inserted.graphs[0].ops[-3].output))
    assert x_grid == (pytest.approx(0.1), 0)
    assert first == second == (pytest.approx(0.1), 0)
    assert len(notes.warnings) == 2
    assert re.search(f"{dead.name}: it is zero on all samples.* scale of 0.1 ", next(iter(notes.warnings)))


def test_an_input_that_is_always_zero_has_a_harmless_scale() -> None:
    model = FloatModel()
    x = model.input(1, 2)
    inserted = model.model(model.elementwise("RELU", x))
    notes = inserted_into(inserted, {x: (0.0, 0.0)}, "int8")
    assert grids(inserted, x) == [(1 / 128, 0)]
    assert len(notes.warnings) == 1


@pytest.mark.parametrize(
    ("name", "step"),
    [("SUB", 0.1), ("ADD", 0.1), ("MUL", 0.005), ("CONV_2D", 0.02), ("FULLY_CONNECTED", 0.02)],
)
def test_no_output_is_much_finer_than_what_it_is_computed_of(name: str, step: float) -> None:
    """If the scale of an output is far below the scale of its sums (input scale times weight scale), runtimes refuse
    the model or abort."""
    model = FloatModel()
    x, y = model.input(1, 1, 1, 2), model.input(1, 1, 1, 2)
    if name == "CONV_2D":
        z = model.conv(x, np.full((4, 1, 1, 2), 0.2 * 127))
    elif name == "FULLY_CONNECTED":
        z = model.dense(x, np.full((4, 2), -0.2 * 127))
    else:
        z = model.elementwise(name, x, y)
    inserted = model.model(z)
    notes = inserted_into(inserted, {x: (-12.8, 12.7), y: (-6.4, 6.35), z: (-1e-9, 2e-9)})
    [grid] = grids(inserted, inserted.graphs[0].ops[-3].output)
    assert grid == (pytest.approx(step / 128), -128)
    assert not notes.warnings


@pytest.mark.parametrize(("name", "is_sum"), [("ADD", True), ("SUB", True), ("MUL", False)])
def test_no_sum_of_tensors_has_a_scale_in_a_simple_ratio_to_theirs(name: str, is_sum: bool) -> None:
    """If the ranges of the two addends were whole numbers, many sums would lie halfway between two int8 values."""
    model = FloatModel()
    x, y = (model.elementwise("RELU", model.input(1, 4)) for _ in range(2))
    z = model.elementwise(name, x, y)
    shifted = model.elementwise(name, z, model.const(np.ones(4)))
    inserted = model.model(shifted)
    inserted_into(inserted, {x: (0.0, 255.0), y: (0.0, 510.0), z: (0.0, 765.0), shifted: (0.0, 765.0)})
    scales = [(op.output.per_tensor_quantization or (0.0, 0))[0] for op in inserted.ops() if op.name == "QUANTIZE"]
    assert scales[:2] == [1.0, 2.0]
    assert scales[2] == (pytest.approx(3.00095, abs=1e-5) if is_sum else scales[3])
    assert scales[3] == 3.0 or name == "MUL"


def test_an_output_keeps_its_name() -> None:
    model = FloatModel()
    y = model.elementwise("RELU", model.input(1, 4))
    name, inserted = y.name, model.model(y)
    inserted_into(inserted, {y: (0.0, 1.0)})
    [result] = inserted.graphs[0].outputs
    assert result.name == name
    assert inserted.graphs[0].producer(result).name == "DEQUANTIZE"
    assert inserted.signatures[0].outputs == [(name, result)]


def test_what_moves_values_keeps_their_grid_and_a_softmax_has_its_own() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    moved = model.reshape(x, 4, 1)
    soft = model.op("SOFTMAX", [x], (1, 4))
    inserted = model.model(moved, soft)
    inserted_into(inserted, {x: (-1.0, 1.0), moved: (-9.0, 9.0), soft: (0.0, 1.0)})
    grids = {op.input(0).name: op.output for op in inserted.graphs[0].ops if op.name == "QUANTIZE"}
    grid = grids[x.name].per_tensor_quantization
    assert [tensor.per_tensor_quantization for tensor in grids.values()].count(grid) == 2
    assert (1 / 256, -128) in [tensor.per_tensor_quantization for tensor in grids.values()]


@pytest.mark.parametrize(("input_type", "quantized"), [("float32", 0), ("int8", 1)])
def test_an_input_that_only_signs_read_is_quantized_where_it_is_to_be_int8(input_type: str, quantized: int) -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    y = model.conv(model.sign(x), sign_weights(np.random.default_rng(0), 8, 3, 3, 32))
    binary, _ = binarized(model, y)
    inserted_into(binary, {x: (-1.0, 1.0)}, input_type)
    assert op_names(binary).count("QUANTIZE") == quantized


def test_what_is_quantized_already_is_left() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    levels = model.op("QUANTIZE", [x], x.dims, type="INT8")
    levels.quantization = parameters(0.5)
    inserted = model.model(levels)
    inserted_into(inserted, {x: (-1.0, 1.0)}, "int8")
    assert op_names(inserted) == ["QUANTIZE"]


def test_what_is_always_zero_takes_no_scale_of_a_constant_next_to_zero() -> None:
    model = FloatModel()
    x = model.elementwise("NEG", model.input(1, 4))
    y = model.elementwise("MAXIMUM", x, x)
    y = model.elementwise("MUL", y, model.const(1e-38))
    built = model.model(y)
    inserted_into(built, {y: (-1e-38, 0.0)})
    [(scale, _)] = [op.output.per_tensor_quantization or (0.0, 0) for op in built.ops() if op.name == "QUANTIZE"]
    assert scale == 1 / 128


@pytest.mark.parametrize("name", ["ADD", "SUB"])
def test_what_makes_a_comparison_strict_stays_float(name: str) -> None:
    model = FloatModel()
    x = model.elementwise("RELU", model.input(1, 4))
    y = model.elementwise(name, x, model.const(np.finfo(np.float32).tiny))
    built = model.model(y)
    inserted_into(built, {x: (0.0, 1.0), y: (0.0, 1.0)})
    assert op_names(built) == ["RELU", "QUANTIZE", "DEQUANTIZE", name]


def test_what_only_signs_read_is_finer_near_zero() -> None:
    model = FloatModel()
    x = model.elementwise("HARD_SWISH", model.input(1, 4, 4, 32))
    y = model.conv(model.sign(x), sign_weights(np.random.default_rng(0), 8, 3, 3, 32))
    binary, _ = binarized(model, y)
    inserted_into(binary, {x: (-32.0, 16.0)})
    [grid] = [op.output.per_tensor_quantization for op in binary.graphs[0].ops if op.name == "QUANTIZE"]
    scale, zero_point = grid or (0.0, 0)
    assert scale == pytest.approx(3 / 255)
    assert scale * (-128 - zero_point) == pytest.approx(-2, abs=scale)


def test_what_is_always_zero_takes_no_scale_of_indices() -> None:
    model = FloatModel()
    x = model.input(1, 3, 3, 2)
    mean = model.op("MEAN", [x, model.const([1, 2], np.int32)], (1, 2), keep_dims=False)
    inserted = model.model(mean)
    # For these samples the output of MEAN is zero, although its input is not.
    inserted_into(inserted, {x: (-1e-3, 1e-3), mean: (0.0, 0.0)})
    [grid] = grids(inserted, x)
    [of_mean] = grids(inserted, inserted.graphs[0].ops[-3].output)
    assert grid is not None
    assert of_mean == (pytest.approx(grid[0]), 0)
