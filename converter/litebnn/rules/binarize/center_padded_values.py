"""The few values of a padded layer's input are shifted, if the zeros that pad them are none of them.

LSQ+ and AdaBin add an offset to their levels, for example. The rule subtracts the middle of the values, m, so that a
sign of 0 stands for the padding (`read_as_signs`), and adds behind the layer what m contributes to the sums: m times
the weights that lie on the unpadded input. Only the borders of the output differ in that, so two GATHERs make the
tensor that is added from one row and one column of each kind.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.padding import layer_padding, unpadded_input
from litebnn.analysis.sums import padded_values
from litebnn.analysis.weights import binary_parts
from litebnn.build.notes import Notes, each
from litebnn.build.ops import copy_of
from litebnn.build.signs import pad_with
from litebnn.contract import Activation
from litebnn.graph import Array, Graph, Op, Tensor, builtin_op, constant, derived, like


@each("CONV_2D", lowers="padded values with an offset")
def center_padded_values(graph: Graph, op: Op, notes: Notes) -> bool:
    found = padded_values(graph, op)
    parts = None if found is None else binary_parts(graph, op, assume_nonzero=notes.request.assume_nonzero)
    if found is None or parts is None or isinstance(parts, str):
        return False
    (few, middle), (source, zeros), own = found, unpadded_input(graph, op), layer_padding(op)
    name, activation = op.output.name, op.options.fused_activation_function
    [first] = few.sources
    inputs = [first, constant(derived(first.name, "/middle"), np.asarray(middle, np.float32))]
    shift = builtin_op("SUB", inputs, like(first, derived(first.name, "/centered")))
    centered = graph.insert(shift, before=op).output
    for move in few.ops:
        centered = copy_of(graph, move, centered, "/centered", before=op)
    result, output = like(op.output, derived(name, "/of_centered")), op.output
    graph.set_input(op, 0, pad_with(graph, centered, zeros, 0.0, before=op))
    graph.set_output(op, result)
    op.options.fused_activation_function = int(Activation.NONE)
    of_middle = _of_middle(graph, op, parts.weights * middle, source, zeros + np.asarray(own))
    graph.insert(builtin_op("ADD", [result, of_middle], output, fused_activation_function=activation), after=op)
    return True


def _of_middle(graph: Graph, layer: Op, weights: Array, source: Tensor, amounts: Array) -> Tensor:
    """Inserts ops that make the tensor [1, height, width, O] of a convolution's results for an input of ones.

    Args:
        weights: float [O, height, width, channels].
        source: the input [n, height, width, channels], which is padded with zeros by `amounts`, int [2, 2].
    """
    o, taps = layer.options, weights.sum(axis=-1, dtype=np.float64)
    strides, dilations = (o.stride_h, o.stride_w), (o.dilation_h_factor, o.dilation_w_factor)
    kinds = []
    for axis, stride, dilation in zip((1, 2), strides, dilations, strict=True):
        at = np.arange(layer.output.dims[axis])[:, None] * stride + np.arange(taps.shape[axis]) * dilation
        at -= amounts[axis - 1, 0]
        kinds.append(np.unique((at >= 0) & (at < source.dims[axis]), axis=0, return_inverse=True))
    (rows, row_of), (columns, column_of) = kinds
    sums = np.einsum("ra,cb,oab->rco", rows, columns, taps).astype(np.float32)
    tensor = constant(derived(layer.output.name, "/borders"), sums[None])
    for axis, kind_of in ((1, row_of), (2, column_of)):
        name = derived(tensor.name, f"/gathered{axis}")
        gathered = like(tensor, name, dims=(*tensor.dims[:axis], kind_of.size, *tensor.dims[axis + 1 :]))
        inputs = [tensor, constant(derived(name, "/indices"), kind_of.reshape(-1).astype(np.int32))]
        tensor = graph.insert(builtin_op("GATHER", inputs, gathered, axis=axis), before=layer).output
    return tensor
