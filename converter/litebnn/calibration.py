"""Post-training int8: ranges of the activations from data, and QUANTIZE/DEQUANTIZE pairs where they apply."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from litebnn.contract import BCONV_2D, DEQUANTIZE, QUANTIZE
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Graph, Model, Tensor
from litebnn.passes.int8.lower_to_int8 import RULES
from litebnn.rewriting.build import like
from litebnn.rewriting.int8 import dequantize_op, parameters, parameters_of_range, quantize_op

# Of a tensor that only signs read, values near zero are all that counts: they get so much of the int8 grid, and larger
# ones saturate.
_SIGN_ONLY_ZOOM = 16

Ranges: TypeAlias = dict[str, tuple[float, float]]
Dataset: TypeAlias = Callable[[], Iterable[Any]] | Iterable[Any]


def observe_ranges(converted: bytes, dataset: Dataset) -> Ranges:
    """Runs a model on samples and notes what every float tensor takes on.

    Args:
        converted: a `.tflite` file whose only subgraph is float but for binary layers.
        dataset: samples, each an array of the input's shape or a list with one for each input; or a function that
            gives them.
    Returns:
        (min, max) by tensor name.
    Raises:
        ConversionError: there is no sample, a sample does not fit, a value is not finite, or no runtime is installed.
    """
    from litebnn.runtime import Interpreter

    model = read_model(converted)
    graph = model.graphs[0]
    tensors = [t for t in _activations(graph) if t not in graph.inputs]
    names = [tensor.name for tensor in tensors]
    input_names = [tensor.name for tensor in graph.inputs]
    graph.outputs = tensors
    model.signatures = None
    try:
        interpreter = Interpreter(write_model(model))
    except (ImportError, OSError) as error:
        raise ConversionError(f"a representative dataset needs a runtime and litebnn's library: {error}") from None
    ranges: Ranges = {}
    count = 0
    for sample in dataset() if callable(dataset) else dataset:
        arrays = [np.asarray(a) for a in sample] if isinstance(sample, list | tuple) else [np.asarray(sample)]
        try:
            result = interpreter.predict(arrays)
        except ValueError as error:
            raise ConversionError(f"representative_dataset: sample {count}: {error}") from None
        values = result if isinstance(result, list) else [result]
        for name, array in zip([*input_names, *names], [*arrays, *values], strict=True):
            if array.dtype != np.float32:
                continue
            low, high = float(array.min(initial=0.0)), float(array.max(initial=0.0))
            if not np.isfinite(low) or not np.isfinite(high):
                raise ConversionError(f'representative_dataset: sample {count}: tensor "{name}" is not finite')
            before = ranges.get(name, (0.0, 0.0))
            ranges[name] = min(low, before[0]), max(high, before[1])
        count += 1
    if count == 0:
        raise ConversionError("representative_dataset gave no sample")
    return ranges


def insert_quantization(
    model: Model, ranges: Ranges | None, default: tuple[float, float] | None, input_type: str
) -> None:
    """Puts a QUANTIZE and a DEQUANTIZE behind every float activation whose range is known.

    Args:
        model: is changed in place; tensors that are quantized already are left as they are.
        ranges: (min, max) by tensor name.
        default: the range of the tensors that `ranges` does not name, or None to leave these float.
        input_type: what the inputs are going to be, "float32" or "int8"; a float input that only signs read stays so.
    """
    for graph in model.graphs:
        fixed: dict[Tensor, Any] = {}
        for tensor in _activations(graph):
            if any(reader.name == "QUANTIZE" for reader in graph.consumers(tensor)):
                continue
            limits = (ranges or {}).get(tensor.name, default)
            if limits is not None and _only_signs_read(graph, tensor):
                if tensor not in graph.inputs:
                    limits = limits[0] / _SIGN_ONLY_ZOOM, limits[1] / _SIGN_ONLY_ZOOM
                elif input_type == "float32":
                    continue
            quantization = _parameters(graph, tensor, fixed, limits)
            if quantization is not None:
                fixed[tensor] = quantization
        for tensor, quantization in fixed.items():
            _insert(model, graph, tensor, quantization)


def _only_signs_read(graph: Graph, tensor: Tensor) -> bool:
    readers = graph.consumers(tensor)
    return bool(readers) and tensor not in graph.outputs and all(reader.name == QUANTIZE for reader in readers)


def _activations(graph: Graph) -> list[Tensor]:
    """Float inputs, and the float results of ops that can write int8, in order of execution."""
    computed = [op.output for op in graph.ops if op.name in RULES or op.name in (BCONV_2D, DEQUANTIZE)]
    return [tensor for tensor in (*graph.inputs, *computed) if tensor.type == "FLOAT32"]


def _parameters(graph: Graph, tensor: Tensor, known: dict[Tensor, Any], limits: tuple[float, float] | None) -> Any:
    op = graph.producer(tensor)
    rule = None if op is None else RULES.get(op.name)
    if op is not None and rule is not None:
        if rule.result is not None:
            return parameters(*rule.result)
        if rule.same_parameters and op.name != "CONCATENATION" and op.inputs[0] in known:
            return known[op.input(0)]
    return None if limits is None else parameters_of_range(*limits)


def _insert(model: Model, graph: Graph, tensor: Tensor, quantization: Any) -> None:
    levels = like(tensor, tensor.name + "/int8", type="INT8")
    levels.quantization = quantization
    back = like(tensor, tensor.name + "/dequantized")
    producer = graph.producer(tensor)
    position = 0 if producer is None else graph.ops.index(producer) + 1
    after = graph.ops[position] if position < len(graph.ops) else None
    graph.redirect(tensor, back)
    if tensor in graph.outputs and tensor not in graph.inputs:
        replace_output(model, graph, tensor, back)
    graph.insert(quantize_op(tensor, levels), before=after)
    graph.insert(dequantize_op(levels, back), before=after)


def replace_output(model: Model, graph: Graph, old: Tensor, new: Tensor) -> None:
    """The graph gives `new`, under the name of `old`, where it gave `old`."""
    old.name, new.name = old.name + "/before", old.name
    graph.outputs = [new if tensor is old else tensor for tensor in graph.outputs]
    for signature in model.signatures or ():
        if signature.graph is graph:
            signature.outputs = [(key, new if tensor is old else tensor) for key, tensor in signature.outputs]
    graph.pinned.discard(old)
    graph.pinned.add(new)


def replace_input(model: Model, graph: Graph, old: Tensor, new: Tensor) -> None:
    """The graph takes `new`, under the name of `old`, where it took `old`."""
    old.name, new.name = old.name + "/before", old.name
    graph.inputs = [new if tensor is old else tensor for tensor in graph.inputs]
    for signature in model.signatures or ():
        if signature.graph is graph:
            signature.inputs = [(key, new if tensor is old else tensor) for key, tensor in signature.inputs]
    graph.pinned.discard(old)
    graph.pinned.add(new)


def set_interface_types(model: Model, input_type: str, output_type: str) -> None:
    """Makes the inputs or outputs of the first subgraph int8, by taking away the QUANTIZE or DEQUANTIZE there.

    Raises:
        ConversionError: int8 is asked for and a float input or output is not quantized.
    """
    graph = model.graphs[0]
    if input_type == "int8":
        for tensor in dict.fromkeys(graph.inputs):
            if tensor.type != "FLOAT32":
                continue
            readers = graph.consumers(tensor)
            levels = {reader.output.per_tensor_quantization for reader in readers if reader.name == "QUANTIZE"}
            if not readers or any(reader.name != "QUANTIZE" for reader in readers) or len(levels) != 1:
                raise ConversionError(
                    f'inference_input_type is int8, but input "{tensor.name}" is not quantized: '
                    "train with quantization or give a representative_dataset"
                )
            result = readers[0].output
            for reader in readers:
                graph.redirect(reader.output, result)
                graph.remove(reader)
            replace_input(model, graph, tensor, result)
    if output_type == "int8":
        for tensor in dict.fromkeys(graph.outputs):
            producer = graph.producer(tensor)
            if tensor.type != "FLOAT32":
                continue
            if producer is None or producer.name != "DEQUANTIZE" or producer.input(0).type != "INT8":
                raise ConversionError(
                    f'inference_output_type is int8, but output "{tensor.name}" is not quantized: '
                    "train with quantization or give a representative_dataset"
                )
            if graph.consumers(tensor):
                raise ConversionError(f'output "{tensor.name}" is read inside the model too and cannot become int8')
            graph.remove(producer)
            replace_output(model, graph, tensor, producer.input(0))
