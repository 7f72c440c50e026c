"""Reads the inputs and outputs of a signature from a file, without reading the rest of the file."""

from typing import Any, NamedTuple

from litebnn.flatbuffer.schema import TYPE_NAMES, listed, schema


class SignatureTensor(NamedTuple):
    """An input or output of a signature.

    `tensor` is the tensor's index in the graph, and `position` is its index among the graph's inputs or
    outputs. `quantization` is (scale, zero_point), or (0.0, 0) if the tensor does not have exactly one of each.
    `shape_signature` has -1 for an unknown dimension, for which `shape` has 1.
    """

    tensor: int
    name: str
    type: str
    quantization: tuple[float, int]
    position: int
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...]


def read_signature(content: bytes, key: str, role: str, names: list[str]) -> list[SignatureTensor]:
    """The tensors that a runtime's signature names.

    `content` is a file that a runtime has accepted, so it is valid. `key` is the signature's name; a name that the file
    lacks means the first graph. `role` is "Inputs" or "Outputs". `names` are the signature's names of the tensors, in
    the order of the result.
    """
    model = schema.Model.GetRootAs(content, 0)
    definition = next((each for each in listed(model, "SignatureDefs") if each.SignatureKey() == key.encode()), None)
    graph = model.Subgraphs(definition.SubgraphIndex() if definition else 0)
    indices = order = listed(graph, role)
    if definition:
        index_of = {each.Name().decode(): each.TensorIndex() for each in listed(definition, role)}
        indices = [index_of[name] for name in names]
    return [_describe(graph.Tensors(index), index, order.index(index)) for index in indices]


def find_signature(content: bytes) -> int:
    """The index of the first signature for the model's first graph.

    If a file has no signatures, a runtime makes up one with the index 0.

    Raises:
        ValueError: the file has signatures, but none for its first graph.
    """
    definitions = listed(schema.Model.GetRootAs(content, 0), "SignatureDefs")
    if not definitions:
        return 0
    graphs = [definition.SubgraphIndex() for definition in definitions]
    if 0 not in graphs:
        raise ValueError("no signature is of the model's first graph")
    return graphs.index(0)


def _describe(tensor: Any, index: int, position: int) -> SignatureTensor:
    quantization = tensor.Quantization()
    one = quantization and quantization.ScaleLength() == 1 and quantization.ZeroPointLength() == 1
    values = (quantization.Scale(0), quantization.ZeroPoint(0)) if one else (0.0, 0)
    shape = tuple(map(int, listed(tensor, "Shape")))
    signature = tuple(map(int, listed(tensor, "ShapeSignature"))) or shape
    return SignatureTensor(index, tensor.Name().decode(), TYPE_NAMES[tensor.Type()], values, position, shape, signature)
