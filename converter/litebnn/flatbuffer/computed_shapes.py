"""Where a model computes the shape of a tensor as it runs, read from a file without the rest of it."""

from typing import Any

from litebnn.flatbuffer.schema import OPERATOR_NAMES, listed, schema

# Ops whose output has a shape that the values of some operands decide about, with the places of these.
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


def find_computed_shape(content: bytes) -> str | None:
    """The first op whose output has a shape that only a run tells, such as "RESHAPE scores"; None where there is none.

    Args:
        content: a file that a runtime has taken, so it is whole.
    """
    model = schema.Model.GetRootAs(content, 0)
    codes = listed(model, "OperatorCodes")
    names = [OPERATOR_NAMES[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())] for code in codes]
    for graph in listed(model, "Subgraphs"):
        for op in listed(graph, "Operators"):
            operands = [index for place, index in enumerate(listed(op, "Inputs")) if place in _places(names, op)]
            if any(index >= 0 and not _is_constant(model, graph.Tensors(index)) for index in operands):
                return f"{names[op.OpcodeIndex()]} {graph.Tensors(op.Outputs(0)).Name().decode()}"
    return None


def _places(names: list[str], op: Any) -> tuple[int, ...]:
    return SHAPE_OPERANDS.get(names[op.OpcodeIndex()], ())


def _is_constant(model: Any, tensor: Any) -> bool:
    # Large models have their data behind the file's tables, with an offset in the buffer.
    buffer = model.Buffers(tensor.Buffer())
    return bool(buffer.DataLength() or buffer.Size())
