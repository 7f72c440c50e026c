"""Makes inputs or outputs int8 by removing their QUANTIZE or DEQUANTIZE."""

from __future__ import annotations

from litebnn.build.interface import replace_interface
from litebnn.errors import ConversionError
from litebnn.graph import Graph, Model, Tensor


def set_interface_types(model: Model, input_type: str, output_type: str) -> None:
    """Sets the types of the first subgraph's inputs and outputs to "int8", or leaves them with "float32".

    Raises:
        ConversionError: "int8" is requested, but a float input or output is not quantized, or is also read in float.
    """
    graph = model.graphs[0]
    if input_type == "int8":
        for tensor in dict.fromkeys(graph.inputs):
            if tensor.type == "FLOAT32":
                _take_int8(model, graph, tensor)
    if output_type == "int8":
        for tensor in dict.fromkeys(graph.outputs):
            if tensor.type == "FLOAT32":
                _give_int8(model, graph, tensor)


def _take_int8(model: Model, graph: Graph, tensor: Tensor) -> None:
    readers = graph.consumers(tensor)
    quantized = [reader.output for reader in readers if reader.name == "QUANTIZE"]
    shown = {*graph.outputs, *(output for signature in model.signatures or () for _, output in signature.outputs)}
    if not shown.isdisjoint((tensor, *quantized)):
        raise ConversionError(f'input "{tensor.name}" is an output too and cannot become int8')
    if len(quantized) < len(readers) or len({levels.per_tensor_quantization for levels in quantized}) != 1:
        raise ConversionError(
            f'inference_input_type is int8, but input "{tensor.name}" is not quantized: '
            "train with quantization or give a representative_dataset"
        )
    for reader in readers:
        graph.redirect(reader.output, quantized[0])
        graph.remove(reader)
    replace_interface(model, graph, "inputs", tensor, quantized[0])


def _give_int8(model: Model, graph: Graph, tensor: Tensor) -> None:
    producer = graph.producer(tensor)
    if producer is None or producer.name != "DEQUANTIZE" or producer.input(0).type != "INT8":
        raise ConversionError(
            f'inference_output_type is int8, but output "{tensor.name}" is not quantized: '
            "train with quantization or give a representative_dataset"
        )
    if graph.consumers(tensor):
        raise ConversionError(f'output "{tensor.name}" is read inside the model too and cannot become int8')
    graph.remove(producer)
    replace_interface(model, graph, "outputs", tensor, producer.input(0))
