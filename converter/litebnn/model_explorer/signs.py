"""Replaces packed words in a Model Explorer graph by the signs that they hold."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from litebnn.analysis.bits import channels_of_bits
from litebnn.contract import (
    LCE_BCONV_2D,
    LCE_BMAXPOOL_2D,
    Activation,
    Padding,
    PadValues,
    unpack_bits,
)
from litebnn.graph import Array, Graph, Tensor
from litebnn.rules.build.bconv import channels_per_group

_NAMES: dict[str, type[IntEnum]] = {
    "padding": Padding,
    "pad_values": PadValues,
    "fused_activation_function": Activation,
}


def show_signs(graph: Graph, shown: dict[str, Any], limit: int) -> None:
    """Rewrites the JSON graph that Model Explorer's TFLite adapter made.

    A packed filter is shown as its first `limit` signs (all if it is negative), +1 or -1. A packed tensor is shown with
    its real number of channels, and options of litebnn's ops with the names of their values.

    `graph` is the graph in the file. `shown` is Model Explorer's graph as JSON, which is changed in place. `limit` is
    the number of elements of a constant to show.
    """
    tensors = list(graph.all_tensors())
    channels = dict(channels_of_bits(graph))
    filters: dict[Tensor, int] = {}
    for op in graph.ops:
        if op.name == LCE_BCONV_2D and op.input(1).array is not None:
            filters[op.input(1)] = channels_per_group(op)
    for node in shown["nodes"]:
        for output in node["outputsMetadata"]:
            index = _attribute(output, "tensor_index")
            tensor = tensors[int(index)] if index.isdecimal() and int(index) < len(tensors) else None
            if tensor is None or not (signs := filters.get(tensor, channels.get(tensor))):
                continue
            _set(output, "tensor_shape", f"signs[{','.join(map(str, (*tensor.shape[:-1], signs)))}]")
            if tensor in filters and tensor.array is not None:
                _set(node, "__value", nested(_signs(tensor.array, signs), limit))
        if node["label"] in (LCE_BCONV_2D, LCE_BMAXPOOL_2D):
            for name, values in _NAMES.items():
                number = _attribute(node, name)
                if number.isdecimal() and int(number) in {*values}:
                    _set(node, name, values(int(number)).name)


def _signs(words: Array, channels: int) -> Array:
    signs: Array = 1 - 2 * unpack_bits(words, channels).astype("int8")
    return signs


def nested(signs: Array, limit: int) -> str:
    """The first `limit` signs of an array, in nested brackets by axis; all signs for a negative limit.

    Example:
        >>> nested(np.array([[1, -1], [-1, 1]]), 3)
        '[[+1, -1], [-1]]'
    """
    return _nested(signs, limit if limit >= 0 else signs.size)


def _nested(signs: Array, limit: int) -> str:
    if signs.ndim == 0:
        return f"{int(signs):+d}"
    inner = signs[0].size if len(signs) else 1
    parts = [_nested(part, limit - place * inner) for place, part in enumerate(signs[: -(-limit // inner)])]
    return f"[{', '.join(parts)}]"


def _attribute(item: dict[str, Any], key: str) -> str:
    return next((str(each["value"]) for each in item["attrs"] if each["key"] == key), "")


def _set(item: dict[str, Any], key: str, value: str) -> None:
    for each in item["attrs"]:
        if each["key"] == key:
            each["value"] = value
            return
    item["attrs"].append({"key": key, "value": value})
