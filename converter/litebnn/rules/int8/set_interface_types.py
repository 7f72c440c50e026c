"""Inputs and outputs become int8 or uint8: the QUANTIZE after an input and the DEQUANTIZE before an output are
removed.
"""

from __future__ import annotations

from litebnn.analysis.quantization import parameters
from litebnn.errors import ConversionError
from litebnn.graph import Graph, Model, Tensor, like
from litebnn.rules.build.int8 import quantize_op, replace_interface
from litebnn.rules.build.notes import Notes


def set_interface_types(graph: Graph, notes: Notes) -> bool:
    """Gives the inputs and outputs of the first subgraph the requested types; uint8 levels are int8 levels plus 128.

    Raises:
        ConversionError: another type is requested, but a float input or output is not quantized, or is also read in
            float.
    """
    model = notes.model
    input_type, output_type = notes.options["inference_input_type"], notes.options["inference_output_type"]
    if graph is not model.graphs[0]:
        return False
    changed = False
    for tensor in dict.fromkeys(graph.inputs if input_type != "float32" else ()):
        if tensor.type == "FLOAT32":
            levels = _take_int8(model, graph, tensor, input_type)
            if input_type == "uint8":
                _take_uint8(model, graph, levels)
            changed = True
    for tensor in dict.fromkeys(graph.outputs if output_type != "float32" else ()):
        if tensor.type == "FLOAT32":
            _give_levels(model, graph, tensor, output_type)
            changed = True
    return changed


def _take_int8(model: Model, graph: Graph, tensor: Tensor, input_type: str) -> Tensor:
    readers = graph.consumers(tensor)
    quantized = [reader.output for reader in readers if reader.name == "QUANTIZE"]
    shown = {*graph.outputs, *(output for signature in model.signatures or () for _, output in signature.outputs)}
    if not shown.isdisjoint((tensor, *quantized)):
        raise ConversionError(f'input "{tensor.name}" is an output too and cannot become {input_type}')
    if len(quantized) < len(readers) or len({levels.per_tensor_quantization for levels in quantized}) != 1:
        raise ConversionError(
            f'inference_input_type is {input_type}, but input "{tensor.name}" is not quantized: '
            "train with quantization or give a representative_dataset"
        )
    for reader in readers:
        graph.redirect(reader.output, quantized[0])
        graph.remove(reader)
    replace_interface(model, graph, "inputs", tensor, quantized[0])
    return quantized[0]


def _shifted(levels: Tensor, name: str) -> Tensor:
    """A uint8 tensor of the int8 `levels` plus 128."""
    grid = levels.quantization
    assert grid is not None
    return like(levels, name, type="UINT8", quantization=parameters(grid.scale, grid.zero_point + 128))


def _take_uint8(model: Model, graph: Graph, levels: Tensor) -> None:
    pixels = _shifted(levels, levels.name)
    replace_interface(model, graph, "inputs", levels, pixels)
    graph.insert(quantize_op(pixels, levels), before=graph.ops[0] if graph.ops else None)


def _give_levels(model: Model, graph: Graph, tensor: Tensor, output_type: str) -> None:
    producer = graph.producer(tensor, "DEQUANTIZE")
    if producer is None or producer.input(0).type != "INT8":
        raise ConversionError(
            f'inference_output_type is {output_type}, but output "{tensor.name}" is not quantized: '
            "train with quantization or give a representative_dataset"
        )
    if graph.consumers(tensor):
        raise ConversionError(f'output "{tensor.name}" is read inside the model too and cannot become {output_type}')
    levels = producer.input(0)
    graph.remove(producer)
    if output_type == "uint8":
        result = _shifted(levels, tensor.name)
        graph.insert(quantize_op(levels, result))
    else:
        result = levels
    replace_interface(model, graph, "outputs", tensor, result)
