"""The order and names of a model's inputs and outputs. Exporters keep only the names, in the signature."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Signature, Tensor

SIGNATURE = "serving_default"


def keyed(structure: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yields every leaf of a nested structure, together with its key in the innermost dictionary. The key is empty
    for a leaf outside of dictionaries.
    """
    if isinstance(structure, Mapping):
        for inner, part in structure.items():
            yield from keyed(part, str(inner))
    elif isinstance(structure, list | tuple):
        for part in structure:
            yield from keyed(part, key)
    else:
        yield key, structure


def set_interface(tflite: bytes, inputs: dict[str, str], outputs: dict[str, str]) -> bytes:
    """Orders the inputs and outputs of a file, and names them in its signature.

    `tflite` is the file that an exporter made. In its signature, the tensors have keys as names. `inputs` and `outputs`
    map the keys to the new names of the tensors, in the new order.

    Raises:
        ConversionError: the file has other inputs or outputs than `inputs` and `outputs` name.
    """
    model = read_model(tflite)
    graph = model.graphs[0]
    signature = model.signatures[0] if model.signatures else None
    graph.inputs = _ordered(graph.inputs, inputs, None if signature is None else signature.inputs)
    graph.outputs = _ordered(graph.outputs, outputs, None if signature is None else signature.outputs)
    for key, tensor in zip(inputs, graph.inputs, strict=True):
        tensor.name = tensor.name.replace(key, inputs[key])
    taken = list(zip(inputs.values(), graph.inputs, strict=True))
    given = list(zip(outputs.values(), graph.outputs, strict=True))
    model.signatures = [Signature(SIGNATURE, graph, taken, given)]
    return write_model(model)


def sort_interface(tflite: bytes) -> bytes:
    """Sorts the inputs and outputs of a file by their names in its signature, "output_2" before "output_10"."""
    signatures = read_model(tflite).signatures
    if not signatures:
        return tflite
    sides = signatures[0].inputs, signatures[0].outputs
    inputs, outputs = ({name: name for name in sorted(dict(side), key=_by_number)} for side in sides)
    return set_interface(tflite, inputs, outputs)


def _by_number(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def _ordered(tensors: list[Tensor], names: dict[str, str], signature: list[tuple[str, Tensor]] | None) -> list[Tensor]:
    """Sorts the inputs or outputs of an exported file into the order of the keys of `names`.

    If TensorFlow could not save the function, the file has no signature. In that case, the exporter wrote the tensors
    in the sorted order of their keys.
    """
    if signature is None:
        keys = sorted(names) if len(names) == len(tensors) else [tensor.name for tensor in tensors]
        signature = list(zip(keys, tensors, strict=True))
    by_key = dict(signature)
    if by_key.keys() != names.keys():
        raise ConversionError(
            f"the exporter wrote the inputs or outputs {', '.join(by_key)}, expected {', '.join(names)}"
        )
    return [by_key[key] for key in names]
