"""Times of a model's ops for Google's Model Explorer, which shows them on the nodes of its graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litebnn.errors import ConversionError
from litebnn.report.inspection import Inspection

# The background and text colour of each precision, which are the same as on the report's page.
COLOURS = {"binary": ("#0b63c5", "#ffffff"), "int8": ("#b9500a", "#ffffff"), "float": ("#7a8594", "#000000")}


def node_data(inspection: Inspection, name: str, milliseconds: Mapping[int, float]) -> dict[str, Any]:
    """The times of ops, coloured by precision, in Model Explorer's form GraphNodeData.

    Model Explorer's adapters for `.tflite` files name a node by the op's index.

    Args:
        inspection: the ops of the model.
        name: the label of the times.
        milliseconds: the known times, by the op's index.

    Example:
        >>> from litebnn.report.inspection import inspect_model
        >>> node_data(inspect_model("binary.tflite"), "measured", {1: 0.25})
        {'name': 'ms measured (binary blue, int8 orange, float grey)', 'results':
         {'1': {'value': 0.25, 'bgColor': '#0b63c5', 'textColor': '#ffffff'}}}
    """
    results = {}
    for row in inspection.ops:
        if row.index in milliseconds:
            background, text = COLOURS.get(row.precision, ("", ""))
            colours = {"bgColor": background, "textColor": text} if background else {}
            results[str(row.index)] = {"value": round(milliseconds[row.index], 6), **colours}
    return {"name": f"ms {name} (binary blue, int8 orange, float grey)", "results": results}


def estimated_node_data(inspection: Inspection, board: str) -> dict[str, Any]:
    """The `node_data` with the times that are estimated for one board.

    Raises:
        ConversionError: no times are estimated for this board.
    """
    known = [each.name for each in inspection.boards]
    if board not in known:
        raise ConversionError(f"nothing is estimated for {board}: expected one of {', '.join(known)}")
    milliseconds = {row.index: row.seconds[board] * 1e3 for row in inspection.ops if board in row.seconds}
    return node_data(inspection, f"on {board}, estimated", milliseconds)
