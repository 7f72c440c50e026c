"""The graph of a model for the page's drawing: the text of each node, and the tensors between nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from litebnn.errors import printable
from litebnn.report.inspection import Inspection, OpRow, TensorRow
from litebnn.report.units import shape_text

PRECISIONS = ("binary", "int8", "float")
OTHER = "other"

# The number of letters that fit into a drawn node. Its tooltip has the whole name.
_LONGEST_LABEL = 28


def precision_of(row: OpRow) -> str:
    """The precision of an op: one of `PRECISIONS`, or `OTHER` for an op that only moves data."""
    return row.precision if row.precision in PRECISIONS else OTHER


def drawing(inspection: Inspection) -> dict[str, list[dict[str, Any]]]:
    """The nodes and edges of the main subgraph, as plain data.

    A node is an input of the model, an op, or an output of the model. Its `row` is the op's index, or None. Nodes are
    in order of execution: an input before its first consumer, an output after its producer. An edge is a tensor between
    two nodes, which are named by their indices in the list of nodes.
    """
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    source: dict[int, int] = {}
    waiting, outputs = dict.fromkeys(inspection.inputs), set(inspection.outputs)

    def add(node: dict[str, Any], reads: Iterable[int], writes: Iterable[int]) -> None:
        edges.extend(_edge(inspection.tensors[index], source[index], len(nodes)) for index in reads if index in source)
        source.update((index, len(nodes)) for index in writes)
        nodes.append(node)
        for index in outputs.intersection(writes):
            add(_end("output", inspection.tensors[index]), [index], [])

    def add_inputs(read: Iterable[int]) -> None:
        for index in [index for index in dict.fromkeys(read) if index in waiting]:
            del waiting[index]
            add(_end("input", inspection.tensors[index]), [], [index])

    for row in inspection.ops:
        add_inputs(row.inputs)
        add(_op(row, inspection), row.inputs, row.outputs)
    add_inputs(tuple(waiting))
    return {"nodes": nodes, "edges": edges}


def _op(row: OpRow, inspection: Inspection) -> dict[str, Any]:
    window = f"{shape_text(row.filter_shape[:2])} → " if row.filter_shape else ""
    written = [printable(inspection.tensors[index].name) for index in row.outputs]
    return {
        "row": row.index,
        "label": _short(row.op),
        "detail": f"{window}{shape_text(row.output_shape)} {row.output}".strip(),
        "title": "\n".join([f"{row.index}: {printable(row.op)}", *written]),
        "precision": precision_of(row),
    }


def _end(kind: str, tensor: TensorRow) -> dict[str, Any]:
    return {
        "row": None,
        "label": kind,
        "detail": f"{shape_text(tensor.shape)} {tensor.type}".strip(),
        "title": printable(tensor.name),
        "precision": "",
    }


def _edge(tensor: TensorRow, source: int, reader: int) -> dict[str, Any]:
    title = f"{printable(tensor.name)}: {shape_text(tensor.shape)} {tensor.type}"
    return {"from": source, "to": reader, "carries": tensor.type, "title": title}


def _short(name: str) -> str:
    name = printable(name)
    return name if len(name) <= _LONGEST_LABEL else name[: _LONGEST_LABEL - 1] + "…"
