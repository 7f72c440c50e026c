"""What a signature's inputs and outputs are, read from a file without the rest of it."""

from typing import Any, NamedTuple

from litebnn.flatbuffer.schema import TYPE_NAMES, schema


class SignatureTensor(NamedTuple):
    """An input or output of a signature.

    `place` is its place among those of the graph, `quantization` (scale, zero_point), and (0.0, 0) where it has not one
    of each.
    """

    name: str
    type: str
    quantization: tuple[float, int]
    place: int


def read_signature(content: bytes, key: str, role: str, names: list[str]) -> list[SignatureTensor]:
    """The tensors that a runtime's signature names.

    Args:
        content: a file that a runtime has taken, so it is whole.
        key: the signature's name. Where the file has none of that name, it stands for the first graph.
        role: "Inputs" or "Outputs".
        names: the signature's names for them, which decide the order.
    """
    model = schema.Model.GetRootAs(content, 0)
    definition = next((each for each in _listed(model, "SignatureDefs") if each.SignatureKey() == key.encode()), None)
    graph = model.Subgraphs(definition.SubgraphIndex() if definition else 0)
    indices = order = _listed(graph, role)
    if definition:
        index_of = {each.Name().decode(): each.TensorIndex() for each in _listed(definition, role)}
        indices = [index_of[name] for name in names]
    return [_describe(graph.Tensors(index), order.index(index)) for index in indices]


def _describe(tensor: Any, place: int) -> SignatureTensor:
    quantization = tensor.Quantization()
    one = quantization and quantization.ScaleLength() == 1 and quantization.ZeroPointLength() == 1
    values = (quantization.Scale(0), quantization.ZeroPoint(0)) if one else (0.0, 0)
    return SignatureTensor(tensor.Name().decode(), TYPE_NAMES[tensor.Type()], values, place)


def _listed(table: Any, field: str) -> list[Any]:
    """A list of a table of the schema."""
    return [getattr(table, field)(i) for i in range(getattr(table, f"{field}Length")())]
