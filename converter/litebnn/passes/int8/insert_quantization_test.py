import numpy as np
import pytest

from litebnn.passes.int8.insert_quantization import activations, insert_quantization
from litebnn.rewriting.int8 import parameters
from tests.support.float_models import FloatModel, op_names, sign_weights


def test_known_ranges_are_quantized_and_others_stay_float() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    y = model.elementwise("ADD", x, model.const(np.ones(4)))
    z = model.elementwise("RELU", y)
    assert activations(model.graph) == [x, y, z]
    inserted = model.model(z)
    insert_quantization(inserted, {y: (-1.0, 3.0)}, "float32")
    assert op_names(inserted) == ["ADD", "QUANTIZE", "DEQUANTIZE", "RELU"]
    levels = inserted.graphs[0].ops[1].output
    scale, zero_point = levels.per_tensor_quantization or (0.0, 0)
    assert scale == pytest.approx(4 / 255)
    assert scale * (-128 - zero_point) == pytest.approx(-1, abs=scale)
    assert inserted.graphs[0].outputs == [z]


def test_an_output_keeps_its_name() -> None:
    model = FloatModel()
    y = model.elementwise("RELU", model.input(1, 4))
    name, inserted = y.name, model.model(y)
    insert_quantization(inserted, {y: (0.0, 1.0)}, "float32")
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
    insert_quantization(inserted, {x: (-1.0, 1.0), moved: (-9.0, 9.0)}, "float32")
    grids = {op.input(0).name: op.output for op in inserted.graphs[0].ops if op.name == "QUANTIZE"}
    grid = grids[x.name].per_tensor_quantization
    assert [tensor.per_tensor_quantization for tensor in grids.values()].count(grid) == 2
    assert (1 / 256, -128) in [tensor.per_tensor_quantization for tensor in grids.values()]


@pytest.mark.parametrize(("input_type", "quantized"), [("float32", 0), ("int8", 1)])
def test_an_input_that_only_signs_read_is_quantized_where_it_is_to_be_int8(input_type: str, quantized: int) -> None:
    from litebnn.passes import BINARY_PHASES, run_phases
    from litebnn.rewriting.notes import Notes

    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    y = model.conv(model.sign(x), sign_weights(np.random.default_rng(0), 8, 3, 3, 32))
    binary = model.model(y)
    run_phases(binary, BINARY_PHASES, Notes(binary))
    insert_quantization(binary, {x: (-1.0, 1.0)}, input_type)
    assert op_names(binary).count("QUANTIZE") == quantized


def test_what_is_quantized_already_is_left() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    levels = model.op("QUANTIZE", [x], x.dims, type="INT8")
    levels.quantization = parameters(0.5)
    inserted = model.model(levels)
    insert_quantization(inserted, {x: (-1.0, 1.0)}, "int8")
    assert op_names(inserted) == ["QUANTIZE"]
