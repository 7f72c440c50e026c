"""The values inside a model as NumPy arrays: its tensors in a run, and the weights of its binary layers."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from litebnn.analysis.bits import channels_of_bits
from litebnn.contract import LCE_BCONV_2D, unpack_bits
from litebnn.errors import ConversionError, boundary, printable
from litebnn.files import read_content, write_whole
from litebnn.flatbuffer import read_model
from litebnn.graph import (
    NUMPY_TYPES,
    Array,
    Graph,
    Op,
    Tensor,
    unique_names,
)
from litebnn.report.op_properties import layer_name, names_layer, short_name
from litebnn.rules.build.bconv import channels_per_group
from litebnn.runtime.intermediates import with_outputs
from litebnn.runtime.interpreter import Interpreter
from litebnn.runtime.predictor import arrays_of
from litebnn.safety import check_custom_ops


def intermediate_tensors(
    model: bytes | str | Path, x: Any, names: Sequence[str] | None = None, **options: Any
) -> dict[str, Array]:
    """Runs a model and returns the values of tensors inside it, converted model or not.

    Args:
        model: the model's bytes, or the path of its file.
        x: the samples, as for `litebnn.Interpreter.predict`: an array [samples, ...], or a list or dictionary with one
            for each input.
        names: the tensors' names, in full or as `litebnn inspect` prints the layers. By default all tensors that the
            ops of the first graph compute.
        options: those of `litebnn.Interpreter`.

    Returns:
        An array for each name. The runs of several samples are joined along the first axis. Packed signs become float32
        [..., channels] of 1 and -1; other tensors have their own type, and int8 ones hold levels.

    Raises:
        ConversionError: the model cannot be read, or computes no tensor of a name; the message lists similar names.
        ValueError, OSError, ImportError: the errors of `litebnn.Interpreter` and its `predict`.

    Example:
        >>> values = litebnn.intermediate_tensors("model.tflite", images)  # images: float32 [100, 28, 28, 1]
        >>> [(name, array.shape) for name, array in values.items()][0]
        ('sequential/quant_conv2d/QuantConv2D2', (100, 26, 26, 32))
    """
    _, content = read_content(model)
    with boundary():
        read = read_model(content)
        graph = _first_graph(read.graphs)
        shown = _named(graph, names)
        bits = channels_of_bits(graph)
        tensors = list(dict.fromkeys(shown.values()))
        content = with_outputs(read, tensors)
    arrays = arrays_of(x, read.input_names)
    found = dict(zip(tensors, _runs(Interpreter(content, **options), arrays), strict=True))
    signs = {tensor: _signs(found[tensor], bits[tensor]) for tensor in found if tensor in bits}
    return {name: signs.get(tensor, found[tensor]) for name, tensor in shown.items()}


def binary_weights(model: bytes | str | Path) -> dict[str, Array]:
    """The weights of a converted model's binary layers.

    Args:
        model: the model's bytes, or the path of its file.

    Returns:
        For each binary layer, in order of execution, an int8 array of 1 and -1 by its name. The arrays are [height,
        width, input channels, output channels], as Keras has them (HWIO). The name is that of the weights in the file,
        or of the layer's output if only this names a layer.

        With groups, the input channels are those of a group. A dense layer is a 1×1 convolution [1, 1, inputs,
        outputs]. A transposed convolution is one layer, or several that have its taps in turn. Scales and biases are
        not in these weights. A conversion may have negated the weights of a channel together with its scale.

    Raises:
        ConversionError: the model cannot be read.
        ValueError, TypeError, OSError: it is no `.tflite` file.

    Example:
        >>> litebnn.binary_weights("model.tflite")["sequential/quant_conv2d_1/QuantConv2D"].shape
        (3, 3, 32, 64)
    """
    _, content = read_content(model)
    with boundary():
        graphs = read_model(content).graphs
        for graph in graphs:
            check_custom_ops(graph)
        layers = [op for graph in graphs for op in graph.ops if op.name == LCE_BCONV_2D]
        names = unique_names(map(_name, layers))
        return dict(zip(names, map(_weights, layers), strict=True))


def write_weights(path: Path, weights: Mapping[str, Array]) -> None:
    """Writes arrays by name into a .npz file, completely or not at all."""
    content = io.BytesIO()
    # np.savez takes names as Python's keyword arguments, among which "file" is its own.
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in weights.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.save(file, array)
    write_whole(path, content.getvalue())


def _first_graph(graphs: list[Graph]) -> Graph:
    if not graphs:
        raise ConversionError("the model has no subgraph")
    check_custom_ops(graphs[0])
    return graphs[0]


def _named(graph: Graph, names: Sequence[str] | None) -> dict[str, Tensor]:
    """The computed tensors of these names; all under their own names if `names` is None."""
    computed = [tensor for op in graph.ops for tensor in op.outputs if tensor.type in NUMPY_TYPES]
    own = dict(zip(unique_names(tensor.name for tensor in computed), computed, strict=True))
    if names is None:
        return own
    known: dict[str, Tensor] = {}
    for name, tensor in own.items():
        for alias in (layer_name(name), short_name(name)):
            known.setdefault(alias, tensor)
    known |= own
    for name in names:
        if name not in known:
            raise ConversionError(f'no op computes a tensor "{printable(name)}": {_similar(name, own)}')
    return {name: known[name] for name in names}


def _similar(name: str, known: Mapping[str, Tensor]) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, n=3, cutoff=0.3)
    return f"expected one like {', '.join(map(printable, close))}" if close else "litebnn inspect lists them"


def _runs(interpreter: Interpreter, arrays: list[Array]) -> list[Array]:
    """The outputs for samples, which are run in portions of the model's batch size and joined along the first axis."""
    shapes = interpreter.input_shapes
    batch = shapes[0][0] if shapes and shapes[0] else 0
    if not arrays or not batch or any(array.ndim < 1 or len(array) <= batch for array in arrays):
        return arrays_of(interpreter.predict(arrays))
    starts = range(0, len(arrays[0]), batch)
    runs = [arrays_of(interpreter.predict([array[at : at + batch] for array in arrays])) for at in starts]
    return [np.concatenate([np.atleast_1d(one) for one in column]) for column in zip(*runs, strict=True)]


def _signs(words: Array, channels: int) -> Array:
    return np.where(unpack_bits(words, channels), np.float32(-1), np.float32(1))


def _name(layer: Op) -> str:
    """The name of a binary layer. The output of a layer that writes signs may have the name of the next layer, so that
    of the weights comes first.
    """
    names = [layer_name(tensor.name) for tensor in (layer.input(1), layer.output)]
    return next(filter(names_layer, names), names[1])


def _weights(layer: Op) -> Array:
    kernel = layer.input(1)
    assert kernel.array is not None
    minus_one = unpack_bits(kernel.array, channels_per_group(layer))
    return np.ascontiguousarray(np.where(minus_one, np.int8(-1), np.int8(1)).transpose(1, 2, 3, 0))
