"""Questions about a file that a runtime has accepted, answered without reading the rest of the file: its signatures,
variables, and shapes that are computed at run time."""

from typing import Any, NamedTuple

from litebnn.flatbuffer.schema import OPERATOR_NAMES, TYPE_NAMES, listed, schema

# The ops whose output shape depends on the values of operands. Each op has the indices of these operands.
SHAPE_OPERANDS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(["ARG_MAX", "ARG_MIN", "BROADCAST_TO", "EXPAND_DIMS", "MULTINOMIAL", "ONE_HOT"], (1,)),
    **dict.fromkeys(["MIRROR_PAD", "PAD", "PADV2", "RESHAPE", "TILE", "TOPK_V2", "TRANSPOSE"], (1,)),
    **dict.fromkeys(["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SEGMENT_SUM", "SPARSE_TO_DENSE"], (1,)),
    **dict.fromkeys(["MEAN", "SUM"], (1,)),
    **dict.fromkeys(["REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"], (1,)),
    **dict.fromkeys(["BATCH_TO_SPACE_ND", "SLICE", "SPACE_TO_BATCH_ND", "SPLIT_V"], (1, 2)),
    "STRIDED_SLICE": (1, 2, 3),
    **dict.fromkeys(["NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "SCATTER_ND"], (2,)),
    **dict.fromkeys([f"UNSORTED_SEGMENT_{name}" for name in ("MAX", "MIN", "PROD", "SUM")], (2,)),
    **dict.fromkeys(["CONV_3D_TRANSPOSE", "FILL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "SPLIT"], (0,)),
    **dict.fromkeys(["TRANSPOSE_CONV", "UNIQUE", "WHERE"], (0,)),
    "RANGE": (0, 1, 2),
}


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


def find_variable_tensor(content: bytes) -> str | None:
    """The name of the first tensor that is a variable, such as the state of an LSTM; None if there is none.

    Args:
        content: a file that a runtime has accepted, so it is valid.
    """
    graphs = listed(schema.Model.GetRootAs(content, 0), "Subgraphs")
    variables = (tensor for graph in graphs for tensor in listed(graph, "Tensors") if tensor.IsVariable())
    return next((tensor.Name().decode() for tensor in variables), None)


def assigns_variables(content: bytes) -> bool:
    """True if ops assign variables, which are resources and no tensors.

    Args:
        content: a file that a runtime has accepted, so it is valid.
    """
    codes = listed(schema.Model.GetRootAs(content, 0), "OperatorCodes")
    return any(OPERATOR_NAMES.get(code.BuiltinCode()) == "ASSIGN_VARIABLE" for code in codes)


def find_computed_shape(content: bytes) -> str | None:
    """The first op whose output shape is known only at run time, such as "RESHAPE scores"; None if there is none.

    Args:
        content: a file that a runtime has accepted, so it is valid.
    """
    model = schema.Model.GetRootAs(content, 0)
    codes = listed(model, "OperatorCodes")
    names = [OPERATOR_NAMES[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())] for code in codes]
    for graph in listed(model, "Subgraphs"):
        for op in listed(graph, "Operators"):
            operands = [
                index for position, index in enumerate(listed(op, "Inputs")) if position in _shape_operands(names, op)
            ]
            if any(index >= 0 and not _is_constant(model, graph.Tensors(index)) for index in operands):
                return f"{names[op.OpcodeIndex()]} {graph.Tensors(op.Outputs(0)).Name().decode()}"
    return None


def _shape_operands(names: list[str], op: Any) -> tuple[int, ...]:
    return SHAPE_OPERANDS.get(names[op.OpcodeIndex()], ())


def _is_constant(model: Any, tensor: Any) -> bool:
    # In files over 2 GB, the data of a buffer comes after the flatbuffer. The buffer then contains only an offset.
    buffer = model.Buffers(tensor.Buffer())
    return bool(buffer.DataLength() or buffer.Size())
