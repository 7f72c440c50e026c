import pytest

from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model, write_model
from litebnn.frontends.interface import set_interface, sort_interface
from litebnn.graph import Signature
from tests.support.float_models import FloatModel

INPUTS, OUTPUTS = {"input_0": "z", "input_1": "a"}, {"output_0": "right", "output_1": "left", "output_2": "again"}


def unordered(signature: bool) -> bytes:
    """A file of TensorFlow's converter. Without a signature, its inputs and outputs are in the order of their keys."""
    model = FloatModel()
    second, first = model.input(1, 2), model.input(1, 1)
    if not signature:
        model.graph.inputs.reverse()
    first.name, second.name = "serving_default_input_0:0", "serving_default_input_1:0"
    left, right = model.elementwise("RELU", first), model.elementwise("RELU", second)
    finished = model.model(*((left, left, right) if signature else (right, left, left)))
    taken = [("input_1", second), ("input_0", first)]
    given = [("output_1", left), ("output_0", right), ("output_2", left)]
    finished.signatures = [Signature("serving_default", finished.graphs[0], taken, given)] if signature else None
    return write_model(finished)


@pytest.mark.parametrize("signature", [True, False])
def test_inputs_and_outputs_are_ordered_and_named(signature: bool) -> None:
    model = read_model(set_interface(unordered(signature), INPUTS, OUTPUTS))
    graph = model.graphs[0]
    assert [tensor.shape for tensor in graph.inputs] == [(1, 1), (1, 2)]
    assert [tensor.shape for tensor in graph.outputs] == [(1, 2), (1, 1), (1, 1)]
    assert [tensor.name for tensor in graph.inputs] == ["serving_default_z:0", "serving_default_a:0"]
    assert model.signatures is not None
    [written] = model.signatures
    assert (written.key, written.graph) == ("serving_default", graph)
    assert written.inputs == list(zip(["z", "a"], graph.inputs, strict=True))
    assert written.outputs == list(zip(["right", "left", "again"], graph.outputs, strict=True))


@pytest.mark.parametrize("signature", [True, False])
@pytest.mark.parametrize("outputs", [{}, {"output_0": "a"}, {**OUTPUTS, "output_3": "b"}])
def test_other_outputs_are_named(signature: bool, outputs: dict[str, str]) -> None:
    with pytest.raises(ConversionError, match="the exporter wrote .* expected"):
        set_interface(unordered(signature), INPUTS, outputs)


def test_names_sort_by_their_numbers() -> None:
    names = ["output_10", "b", "output_2", "B", "output_", "7", "output_2_10", "output_2_9"]
    model = FloatModel()
    x = model.input(1, 2)
    finished = model.model(*(model.elementwise("RELU", x) for _ in names))
    graph = finished.graphs[0]
    given = list(zip(names, graph.outputs, strict=True))
    finished.signatures = [Signature("serving_default", graph, [("x", x)], given)]
    [signature] = read_model(sort_interface(write_model(finished))).signatures or []
    ordered = ["7", "B", "b", "output_", "output_2", "output_2_9", "output_2_10", "output_10"]
    assert [name for name, _ in signature.outputs] == ordered
    assert [tensor.name for _, tensor in signature.outputs] == [dict(given)[name].name for name in ordered]
    assert [tensor for _, tensor in signature.outputs] == signature.graph.outputs
    finished.signatures = None
    assert sort_interface(write_model(finished)) == write_model(finished)
