"""Builds ops, constants, inputs and outputs of quantized graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from litebnn.analysis.quantization import along_axis, parameters, quantized
from litebnn.analysis.weights import clamps_no_more
from litebnn.contract import Activation
from litebnn.graph import Array, Graph, Model, Op, OpCode, Tensor, builtin_op, constant, derived, like
from litebnn.rules.build.notes import Notes


def quantize_op(source: Tensor, result: Tensor) -> Op:
    return builtin_op("QUANTIZE", [source], result)


def dequantize_op(source: Tensor, result: Tensor) -> Op:
    return builtin_op("DEQUANTIZE", [source], result, version=2)


def int8_constant(name: str, values: Array, scale: Any, zero_point: Any = 0, axis: int = 0) -> Tensor:
    """Makes an int8 constant of float values."""
    divisor = along_axis(np.atleast_1d(np.asarray(scale, np.float64)), values.ndim, axis)
    levels = quantized(values, divisor, zero_point).reshape(values.shape)
    return constant(name, levels, parameters(scale, zero_point, axis))


def replace_in_floats(graph: Graph, layer: Op, inputs: Sequence[Tensor], notes: Notes) -> Op:
    """Replaces a layer by a float layer with other inputs. If the old layer was quantized, a QUANTIZE follows.

    Returns the new layer.
    """
    result, is_float = layer.output, layer.output.type == "FLOAT32"
    if not is_float:
        if clamps_no_more(layer):
            layer.options.fused_activation_function = int(Activation.NONE)
        result = like(layer.output, derived(layer.output.name, "/float"), type="FLOAT32")
    if layer.name == "BATCH_MATMUL":
        new = builtin_op("FULLY_CONNECTED", inputs, result, version=5, keep_num_dims=True)
    else:
        new = Op(layer.code if is_float else OpCode(layer.name), [*inputs], [result], layer.options)
    notes.became(layer, graph.replace(layer, new) if is_float else graph.insert(new, before=layer))
    if not is_float:
        graph.replace(layer, quantize_op(result, layer.output))
    return new


def replace_interface(model: Model, graph: Graph, side: Literal["inputs", "outputs"], old: Tensor, new: Tensor) -> None:
    """Replaces `old` by `new` among the inputs or outputs of the graph, and in the signatures. `new` gets the name
    of `old`.
    """

    def exchanged(tensor: Tensor) -> Tensor:
        return new if tensor is old else tensor

    old.name, new.name = old.name + "/before", old.name
    old.origin, new.origin = None, old.origin
    setattr(graph, side, [exchanged(tensor) for tensor in getattr(graph, side)])
    for signature in model.signatures or ():
        if signature.graph is graph:
            setattr(signature, side, [(key, exchanged(tensor)) for key, tensor in getattr(signature, side)])
    graph.pinned.discard(old)
    graph.pinned.add(new)
