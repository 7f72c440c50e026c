import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import litebnn
from litebnn.analysis.quantization import parameters
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Model, Tensor
from litebnn.rules.build.notes import Notes
from litebnn.rules.int8.set_interface_types import set_interface_types
from tests.support.float_models import FloatModel, op_names, sign_weights


def quantize(model: FloatModel, x: Tensor, scale: float = 0.5) -> Tensor:
    levels = model.op("QUANTIZE", [x], x.dims, type="INT8")
    levels.quantization = parameters(scale)
    return levels


def dequantize(model: FloatModel, levels: Tensor) -> Tensor:
    return model.op("DEQUANTIZE", [levels], levels.dims, version=2)


def quantized_relu() -> Model:
    """Makes a model with an int8 RELU between float tensors."""
    model = FloatModel()
    levels = quantize(model, model.input(1, 4))
    relu = model.op("RELU", [levels], (1, 4), type="INT8")
    relu.quantization = parameters(0.5)
    return model.model(dequantize(model, relu))


def set_types(model: Model, input_type: str, output_type: str) -> None:
    notes = Notes(model, {"inference_input_type": input_type, "inference_output_type": output_type})
    set_interface_types(model.graphs[0], notes)
    assert not set_interface_types(model.graphs[0], notes)


def test_inputs_and_outputs_become_int8_under_their_own_names() -> None:
    model = quantized_relu()
    graph = model.graphs[0]
    names = graph.inputs[0].name, graph.outputs[0].name
    set_types(model, "float32", "float32")
    assert op_names(model) == ["QUANTIZE", "RELU", "DEQUANTIZE"]
    set_types(model, "int8", "int8")
    assert op_names(model) == ["RELU"]
    assert (graph.inputs[0].name, graph.outputs[0].name) == names
    assert graph.inputs[0].type == graph.outputs[0].type == "INT8"
    assert model.signatures is not None
    assert model.signatures[0].inputs == [(names[0], graph.inputs[0])]
    assert model.signatures[0].outputs == [(names[1], graph.outputs[0])]
    assert graph.pinned == {graph.inputs[0], graph.outputs[0]}


def test_a_uint8_input_has_the_levels_plus_128() -> None:
    model = quantized_relu()
    graph = model.graphs[0]
    name = graph.inputs[0].name
    set_types(model, "uint8", "int8")
    assert op_names(model) == ["QUANTIZE", "RELU"]
    [pixels] = graph.inputs
    assert (pixels.name, pixels.type, pixels.per_tensor_quantization) == (name, "UINT8", (0.5, 128))
    assert graph.ops[0].input(0) is pixels
    assert graph.ops[0].output.per_tensor_quantization == (0.5, 0)
    assert model.signatures is not None
    assert model.signatures[0].inputs == [(name, pixels)]
    assert pixels in graph.pinned


def test_a_uint8_output_has_the_levels_plus_128() -> None:
    model = quantized_relu()
    graph = model.graphs[0]
    name = graph.outputs[0].name
    set_types(model, "int8", "uint8")
    assert op_names(model) == ["RELU", "QUANTIZE"]
    [levels] = graph.outputs
    assert (levels.name, levels.type, levels.per_tensor_quantization) == (name, "UINT8", (0.5, 128))
    assert graph.ops[1].input(0).per_tensor_quantization == (0.5, 0)
    assert model.signatures is not None
    assert model.signatures[0].outputs == [(name, levels)]
    assert graph.pinned == {graph.inputs[0], levels}


def test_an_int8_output_stays_beside_a_uint8_one() -> None:
    model = FloatModel()
    relu = model.op("RELU", [quantize(model, model.input(1, 4))], (1, 4), type="INT8")
    relu.quantization = parameters(0.5)
    built = model.model(relu, dequantize(model, relu))
    set_types(built, "int8", "uint8")
    assert [tensor.type for tensor in built.graphs[0].outputs] == ["INT8", "UINT8"]


@given(scale=st.sampled_from([0.5, 0.1, 1 / 255, 3.7]), zero_point=st.integers(-128, 127), seed=st.integers(0, 9))
def test_uint8_outputs_are_the_int8_ones_in_other_bytes(scale: float, zero_point: int, seed: int) -> None:
    def predicted(kind: str) -> np.ndarray:
        model = FloatModel()
        levels = quantize(model, model.input(1, 64), scale)
        levels.quantization = parameters(scale, zero_point)
        built = model.model(dequantize(model, levels))
        set_types(built, "float32", kind)
        return litebnn.Interpreter(write_model(built)).predict(x)

    x = np.random.default_rng(seed).normal(0, 100 * scale, (1, 64)).astype(np.float32)
    unsigned = predicted("uint8")
    assert unsigned.dtype == np.uint8
    np.testing.assert_array_equal(unsigned.astype(int) - 128, predicted("int8"))


def test_several_readers_of_one_grid_are_one_input() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    both = [model.op("RELU", [quantize(model, x)], (1, 4), type="INT8") for _ in range(2)]
    built = model.model(*both)
    set_types(built, "int8", "float32")
    assert op_names(built) == ["RELU", "RELU"]
    assert {op.input(0) for op in built.ops()} == set(built.graphs[0].inputs)


@pytest.mark.parametrize("input_type", ["int8", "uint8"])
def test_equal_signs_of_the_input_are_packed_once(input_type: str) -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    weights = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)
    layers = [model.conv(model.sign(dequantize(model, quantize(model, x))), weights) for _ in range(2)]
    names = op_names(read_model(litebnn.convert_tflite(model.finish(*layers), inference_input_type=input_type)))
    assert names == [*["QUANTIZE"] * (input_type == "uint8"), "LceQuantize", "LceBconv2d", "LceBconv2d"]


@pytest.mark.parametrize("kind", ["itself", "levels", "more levels", "signature"])
def test_an_input_that_is_an_output_too_is_named(kind: str) -> None:
    model = FloatModel()
    x = model.input(1, 4)
    levels, more = quantize(model, x), quantize(model, x)
    relu = model.op("RELU", [levels], x.dims, type="INT8")
    built = model.model({"itself": x, "levels": levels, "more levels": more, "signature": relu}[kind])
    if kind == "signature":
        assert built.signatures is not None
        built.signatures[0].outputs = [("y", x)]
    with pytest.raises(ConversionError, match=f'input "{x.name}" is an output too and cannot become int8'):
        set_types(built, "int8", "float32")


@pytest.mark.parametrize("kind", ["float reader", "two grids", "no reader"])
def test_an_input_that_is_not_quantized_is_named(kind: str) -> None:
    model = FloatModel()
    x = model.input(1, 4)
    result = model.op("RELU", [quantize(model, x)], x.dims, type="INT8")
    if kind == "no reader":
        x = model.input(1, 4)
    elif kind == "two grids":
        quantize(model, x, 0.25)
    else:
        model.op("RELU", [x], x.dims)
    with pytest.raises(ConversionError, match=f'input "{x.name}" is not quantized'):
        set_types(model.model(result), "int8", "float32")


def test_an_output_that_is_read_inside_stays_float() -> None:
    model = FloatModel()
    x = dequantize(model, quantize(model, model.input(1, 4)))
    model.op("RELU", [x], x.dims)
    with pytest.raises(ConversionError, match=f'"{x.name}" is read inside the model too and cannot become uint8'):
        set_types(model.model(x), "float32", "uint8")
    other = FloatModel()
    y = other.elementwise("ADD", other.input(1, 4), other.const(np.ones(4)))
    with pytest.raises(ConversionError, match=f'output "{y.name}" is not quantized'):
        set_types(other.model(y), "float32", "int8")
