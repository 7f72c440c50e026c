"""Checks a file when it is read: the properties of ops, tensors and their order on which rewrites rely."""

from __future__ import annotations

from itertools import chain

from litebnn.contract import Padding, is_outdated
from litebnn.errors import ConversionError
from litebnn.graph.graph import NUMPY_TYPES, Graph, Model, Op, Tensor
from litebnn.graph.op_facts import MANY, facts
from litebnn.safety.constants import check_constant, check_external
from litebnn.safety.fields import FIELDS
from litebnn.safety.kernel_needs import kernel_mistakes
from litebnn.safety.option_counts import option_mistakes
from litebnn.safety.references import check_details, check_operands, check_subgraphs
from litebnn.safety.shapes import check_outputs


def check_read(model: Model) -> None:
    """Checks a model that was read: its constants, ops, and references to tensors and subgraphs.

    Raises:
        ConversionError: a rewrite or a runtime would read what is not there; the message names the op or tensor.
    """
    tensors = [tensor for graph in model.graphs for tensor in graph.tensors]
    for graph in model.graphs:
        for index, tensor in enumerate(graph.tensors):
            check_constant(f'tensor {index} "{tensor.name}"', tensor)
    check_external(model.carried, tensors)
    for graph in model.graphs:
        check_graph(graph)
    check_subgraphs(model.graphs)


def check_graph(graph: Graph) -> None:
    """Checks every op against the facts about its kind.

    Raises:
        ConversionError: an op's inputs, outputs or options do not fit its kind, or it precedes a producer. The same
            error is raised if an input of the graph is computed or constant, or an outdated converter wrote an op.
    """
    written_by = {tensor: i for i, op in enumerate(graph.ops) for tensor in op.outputs}
    for tensor in graph.inputs:
        if tensor in written_by:
            raise ConversionError(f'op {written_by[tensor]} writes "{tensor.name}", an input of the graph')
        # An input of the graph gets its value at run time. If the file had a value for it, a rewrite might use the
        # wrong value.
        if tensor.is_constant:
            raise ConversionError(f'"{tensor.name}", an input of the graph, is a constant')
    known = {*graph.inputs, *written_by}
    for tensor in graph.outputs:
        if tensor.type == "STRING" and tensor not in known and not tensor.is_constant:
            raise ConversionError(f'"{tensor.name}", an output of the graph, is of strings that nothing computes')
    check_details(graph)
    for index, op in enumerate(graph.ops):
        what = f"op {index} ({op.name})"
        if is_outdated(op.name, op.custom_options):
            raise ConversionError(
                f"{what}: of a converter before Larq Compute Engine 0.4, whose ops no runtime has any more: convert "
                "the model that it was made from again"
            )
        _check_order(what, index, op, written_by, known)
        _check_variables(what, graph, op)
        if facts(op).most:
            _check_arity(what, op)
            _check_options(what, op)
            _check_tensors(what, op)
        _check_ranges(what, op)
        check_operands(what, op)
        for mistake in chain(option_mistakes(op), kernel_mistakes(op)):
            raise ConversionError(f"{what}: {mistake}")
    check_outputs(graph, is_fixed=True)


def _check_order(what: str, index: int, op: Op, written_by: dict[Tensor, int], known: set[Tensor]) -> None:
    for tensor in op.inputs:
        if tensor is not None and tensor.type == "STRING" and tensor not in known and not tensor.is_constant:
            raise ConversionError(f'{what} reads "{tensor.name}", strings that are nowhere')
        if tensor is not None and written_by.get(tensor, -1) >= index:
            raise ConversionError(f'{what} reads "{tensor.name}" before it is computed')
    for tensor in op.outputs:
        if tensor.is_constant:
            raise ConversionError(f'{what} writes "{tensor.name}", a constant')


def _check_variables(what: str, graph: Graph, op: Op) -> None:
    for tensor in op.inputs:
        producer = None if tensor is None else graph.producer(tensor)
        # If an op reads the value of a variable twice, XNNPACK aborts the process.
        if tensor is not None and producer and producer.name == "READ_VARIABLE" and op.inputs.count(tensor) > 1:
            raise ConversionError(f'{what} reads "{tensor.name}", the value of a variable, twice')


def _check_arity(what: str, op: Op) -> None:
    least, most = facts(op).least, facts(op).most
    present = [tensor is not None for tensor in op.inputs]
    if not least <= len(present) <= most or not all(present[:least]):
        wanted = f"{least}" if least == most else f"{least} to {most}" if most < MANY else f"at least {least}"
        raise ConversionError(f"{what}: {sum(present)} inputs, expected {wanted}")
    if not 1 <= len(op.outputs) <= facts(op).most_outputs:
        wanted = "1" if facts(op).most_outputs == 1 else "at least 1"
        raise ConversionError(f"{what}: {len(op.outputs)} outputs, expected {wanted}")


def _check_ranges(what: str, op: Op) -> None:
    """Refuses options with numbers outside of the ranges in `fields.py`."""
    for key, field in FIELDS.get(op.options.table, {}).items():
        mistake = field.mistake(getattr(op.options, key, None))
        if mistake:
            raise ConversionError(f"{what}: {key} {mistake}")


def _check_options(what: str, op: Op) -> None:
    known = facts(op)
    if known.needs_options and op.options.table != known.options:
        raise ConversionError(f"{what}: options {op.options.table or 'are missing'}, expected {known.options}")
    padding = getattr(op.options, "padding", Padding.SAME)
    if padding not in tuple(Padding):
        raise ConversionError(f"{what}: padding is {padding}, expected 0 (SAME) or 1 (VALID)")


def _check_tensors(what: str, op: Op) -> None:
    """Checks element types and ranks. A tensor whose shape has no dimensions may have any rank at run time, so its
    rank is not checked.
    """
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
