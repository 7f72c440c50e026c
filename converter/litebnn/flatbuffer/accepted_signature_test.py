import numpy as np
import pytest

from litebnn.flatbuffer import write_model
from litebnn.flatbuffer.accepted import SignatureTensor, find_signature, read_signature
from litebnn.graph import Graph, Model, Op, OpCode, Options, Quantization, Signature, Tensor

GRID = Quantization(np.array([0.5], np.float32), np.array([3]))


def model(with_signature: bool) -> bytes:
    """A model of a - b, whose signature lists the inputs in the opposite order."""
    a, b, result = (Tensor(name, "INT8", (2, 3), quantization=GRID) for name in ("a", "b", "result"))
    a.shape_signature = (-1, 3)
    code = OpCode("SUB")
    graph = Graph("main", [a, b, result], [a, b], [result], [Op(code, [a, b], [result], Options("SubOptions"))])
    signatures = [Signature("serving", graph, [("first", b), ("second", a)], [("result", result)])]
    return write_model(Model([graph], [], [code], [], None, signatures if with_signature else None, 3, None))


def test_a_signature_s_names_are_found_in_any_order() -> None:
    content = model(with_signature=True)
    a = SignatureTensor(0, "a", "INT8", (0.5, 3), 0, (2, 3), (-1, 3))
    b = SignatureTensor(1, "b", "INT8", (0.5, 3), 1, (2, 3), (2, 3))
    assert read_signature(content, "serving", "Inputs", ["first", "second"]) == [b, a]
    assert read_signature(content, "serving", "Inputs", ["second", "first"]) == [a, b]
    assert [tensor.name for tensor in read_signature(content, "serving", "Outputs", ["result"])] == ["result"]


def test_a_model_without_a_signature_stands_for_itself() -> None:
    tensors = read_signature(model(with_signature=False), "<placeholder signature>", "Inputs", ["a", "b"])
    assert [(tensor.name, tensor.position) for tensor in tensors] == [("a", 0), ("b", 1)]


def test_a_tensor_without_one_scale_has_none() -> None:
    many = Quantization(np.array([0.5, 0.25], np.float32), np.array([0, 0]), 1)
    for quantization in (None, many):
        x = Tensor("x", "FLOAT32", (1, 2), quantization=quantization)
        content = write_model(Model([Graph("main", [x], [x], [x], [])], [], [], [], None, None, 3, None))
        [found] = read_signature(content, "<placeholder signature>", "Inputs", ["x"])
        assert found == SignatureTensor(0, "x", "FLOAT32", (0.0, 0), 0, (1, 2), (1, 2))


@pytest.mark.parametrize(("graphs", "position"), [([], 0), ([0], 0), ([1, 0, 0], 1)])
def test_the_first_signature_of_the_first_graph_is_found(graphs: list[int], position: int) -> None:
    assert find_signature(with_signatures(graphs)) == position


def test_signatures_of_other_graphs_alone_are_none_of_the_first() -> None:
    with pytest.raises(ValueError, match="no signature is of the model's first graph"):
        find_signature(with_signatures([1]))


def with_signatures(graphs: list[int]) -> bytes:
    """A model of two graphs, with a signature for each of the given graphs."""
    tensors = [Tensor(f"x{i}", "FLOAT32", (1,)) for i in range(2)]
    both = [Graph(f"graph{i}", [x], [x], [x], []) for i, x in enumerate(tensors)]
    signatures = [Signature(f"s{i}", both[i], [("x", tensors[i])], []) for i in graphs]
    return write_model(Model(both, [], [], [], None, signatures or None, 3, None))
