"""What the rewrites take for granted of ops, tensors and their order, checked when a file is read."""

from __future__ import annotations

from litebnn.contract import Padding
from litebnn.errors import ConversionError
from litebnn.graph.graph import NUMPY_TYPES, Graph, Op, Tensor
from litebnn.graph.op_facts import MANY, POSITIVE_OPTIONS, facts


def check_graph(graph: Graph) -> None:
    """Holds every op against the facts about its kind.

    Raises:
        ConversionError: an op has not the inputs, outputs or options of its kind, or comes too early; or an input of
            the graph is computed, or is a constant.
    """
    written_by = {tensor: i for i, op in enumerate(graph.ops) for tensor in op.outputs}
    for tensor in graph.inputs:
        if tensor in written_by:
            raise ConversionError(f'op {written_by[tensor]} writes "{tensor.name}", an input of the graph')
        # What it holds when the model runs is whatever its caller writes, so no rewrite may read the value in the file.
        if tensor.is_constant:
            raise ConversionError(f'"{tensor.name}", an input of the graph, is a constant')
    for index, op in enumerate(graph.ops):
        what = f"op {index} ({op.name})"
        _check_order(what, index, op, written_by)
        if facts(op).most:
            _check_arity(what, op)
            _check_options(what, op)
            _check_tensors(what, op)


def _check_order(what: str, index: int, op: Op, written_by: dict[Tensor, int]) -> None:
    for tensor in op.inputs:
        if tensor is not None and written_by.get(tensor, -1) >= index:
            raise ConversionError(f'{what} reads "{tensor.name}" before it is computed')
    for tensor in op.outputs:
        if tensor.is_constant:
            raise ConversionError(f'{what} writes "{tensor.name}", a constant')


def _check_arity(what: str, op: Op) -> None:
    least, most = facts(op).least, facts(op).most
    present = [tensor is not None for tensor in op.inputs]
    if not least <= len(present) <= most or not all(present[:least]):
        wanted = f"{least}" if least == most else f"{least} to {most}" if most < MANY else f"at least {least}"
        raise ConversionError(f"{what}: {sum(present)} inputs, expected {wanted}")
    if not 1 <= len(op.outputs) <= facts(op).most_outputs:
        wanted = "1" if facts(op).most_outputs == 1 else "at least 1"
        raise ConversionError(f"{what}: {len(op.outputs)} outputs, expected {wanted}")


def _check_options(what: str, op: Op) -> None:
    known = facts(op)
    if known.needs_options and op.options.table != known.options:
        raise ConversionError(f"{what}: options {op.options.table or 'are missing'}, expected {known.options}")
    for key in POSITIVE_OPTIONS:
        if getattr(op.options, key, 1) < 1:
            raise ConversionError(f"{what}: {key} is {getattr(op.options, key)}, expected at least 1")
    padding = getattr(op.options, "padding", Padding.SAME)
    if padding not in tuple(Padding):
        raise ConversionError(f"{what}: padding is {padding}, expected 0 (SAME) or 1 (VALID)")


def _check_tensors(what: str, op: Op) -> None:
    """Element types and numbers of dimensions; a tensor without dimensions may have any number when the model runs."""
    known = facts(op)
    for tensor, kinds in zip(op.inputs, known.kinds, strict=False):
        if tensor is not None and kinds and _kind(tensor) not in kinds:
            raise ConversionError(f'{what}: input "{tensor.name}" is {tensor.type}, which the op does not take')
    ranked = [*zip(op.inputs, known.ranks, strict=False), (op.outputs[0], known.rank)]
    for tensor, rank in ranked:
        if tensor is None or not rank or not (tensor.shape or tensor.is_constant):
            continue
        if len(tensor.shape) != rank:
            raise ConversionError(f'{what}: "{tensor.name}" has {len(tensor.shape)} dimensions, expected {rank}')


def _kind(tensor: Tensor) -> str:
    return NUMPY_TYPES[tensor.type].kind if tensor.type in NUMPY_TYPES else "?"
