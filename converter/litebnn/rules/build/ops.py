"""Makes new tensors, ops that move, pool or join tensors, and constants of what ops compute from constants."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from litebnn.analysis.affine import per_channel
from litebnn.analysis.constants import evaluate
from litebnn.analysis.layouts import Layout, channels_moved
from litebnn.analysis.match import are_equal, fused_activation, transpose_order
from litebnn.analysis.quantization import same_parameters
from litebnn.analysis.weights import computed_weights
from litebnn.contract import (
    BITS_PER_WORD,
    LCE_BMAXPOOL_2D,
    LCE_DEQUANTIZE,
    Activation,
    BConv2DOptions,
    BMaxPool2DOptions,
    encode_options,
)
from litebnn.graph import (
    FACTS,
    Array,
    Graph,
    Op,
    OpCode,
    Tensor,
    builtin_op,
    constant,
    derived,
    facts,
    like,
    packed_words,
    then,
)
from litebnn.rules.build.int8 import dequantize_op

# The largest number of parts into which the converter splits a concatenation. The dense blocks of networks have some
# dozens of parts. A damaged file may have any number of nested parts.
MOST_PARTS = 64
# A move before a concatenation adds ops to the graph, and the total size of these ops is limited. An added op counts as
# this many elements. If it had no cost, a damaged file with many concatenations could grow without limit.
_WORK_OF_AN_OP = 1 << 12
OP_OF_ACTIVATION = {known.clamp: name for name, known in FACTS.items() if known.clamp is not None}


def custom_op(
    name: str,
    inputs: Sequence[Tensor | None],
    output: Tensor,
    options: BConv2DOptions | BMaxPool2DOptions | None = None,
) -> Op:
    """Makes one of litebnn's ops."""
    if name == LCE_DEQUANTIZE and output.origin is not None:
        packed = inputs[0]
        assert packed is not None
        packed.origin = then(output, signs=output.channels)
    return Op(OpCode("CUSTOM", name), list(inputs), [output], custom_options=encode_options(options))


def packed_like(tensor: Tensor, name: str) -> Tensor:
    """Makes a new tensor for the packed signs of `tensor`."""
    return like(tensor, name, type="INT32", dims=(*tensor.dims[:-1], packed_words(tensor.channels)))


def as_float(graph: Graph, tensor: Tensor, *, before: Op) -> Tensor:
    """Returns a float tensor with the values of `tensor`: the tensor itself if it is float, otherwise the output of a
    new or existing DEQUANTIZE."""
    if tensor.type == "FLOAT32":
        return tensor
    numbers = like(tensor, derived(tensor.name, "/numbers"), type="FLOAT32")
    return output_of(graph, dequantize_op(tensor, numbers), before=before)


def compared(
    graph: Graph, x: Tensor, level: float, name: str, comparison: str = "GREATER_EQUAL", *, before: Op
) -> Tensor:
    """Returns the boolean output of a new or existing comparison of x with a number."""
    x, number = as_float(graph, x, before=before), constant(derived(name, "/threshold"), np.asarray(level, np.float32))
    condition = like(x, derived(name, "/condition"), type="BOOL")
    return output_of(graph, builtin_op(comparison, [x, number], condition), before=before)


def select_op(condition: Tensor, if_true: float, if_false: float, output: Tensor) -> Op:
    """Makes the SELECT_V2 op that selects between two numbers."""
    values = (np.asarray(value, np.float32) for value in (if_true, if_false))
    numbers = (constant(derived(output.name, f"/{value:g}"), value) for value in values)
    return builtin_op("SELECT_V2", [condition, *numbers], output)


def take_results(graph: Graph, op: Op, readers: Sequence[Op]) -> None:
    """Removes `readers`, ops that read the output of `op` and all compute the same. `op` writes their result instead of
    its former output.
    """
    result = readers[0].output
    for reader in readers:
        graph.redirect(reader.output, result)
        graph.remove(reader)
    graph.set_output(op, result)


def equal_op(graph: Graph, op: Op, *, before: Op) -> Op | None:
    """Returns an existing op that comes before `before` and computes the same as `op`; None if there is none. `op` must
    have no options."""
    end = graph.ops.index(before)
    for other in graph.consumers(op.input(0)):
        made, wanted = ((each.output.type, each.output.dims, each.name, len(each.inputs)) for each in (other, op))
        if made == wanted and all(map(are_equal, other.inputs, op.inputs)) and graph.ops.index(other) < end:
            return other
    return None


def output_of(graph: Graph, op: Op, *, before: Op) -> Tensor:
    """Inserts an op and returns its output. If an equal op exists (`equal_op`), returns the output of this op
    instead."""
    known = equal_op(graph, op, before=before)
    return (known or graph.insert(op, before=before)).output


def copy_of(graph: Graph, op: Op, x: Tensor, suffix: str, *, before: Op | None = None) -> Tensor:
    """Copies an op that only moves elements, so that the copy reads x, and returns its output, which has the type of x.
    If such a copy exists already, returns its output."""
    end = len(graph.ops) if before is None else graph.ops.index(before)
    for other in graph.consumers(x):
        # Copies of `op` that this function made earlier share its options object. Therefore another op that has this
        # object and reads x is such a copy.
        if other.options is op.options and other is not op and graph.ops.index(other) < end:
            return other.output
    moved = like(x, derived(op.output.name, suffix), dims=op.output.dims)
    code = op.code if x.type == op.output.type else OpCode(op.name)
    return graph.insert(Op(code, [x, *op.inputs[1:]], [moved], op.options), before=before).output


def transpose_op(source: Tensor, order: Sequence[int] | Array, result: Tensor) -> Op:
    """Makes the TRANSPOSE from `source` to `result`."""
    axes = constant(derived(result.name, "/order"), np.asarray(order, np.int32))
    return builtin_op("TRANSPOSE", [source, axes], result)


def transposed(graph: Graph, source: Tensor, order: Sequence[int] | Array, *, before: Op) -> Tensor:
    """Inserts a TRANSPOSE of `source` and returns its output. If the order changes nothing, returns `source`."""
    if np.array_equal(order, np.arange(len(order))):
        return source
    result = like(source, derived(source.name, "/transposed"), dims=[source.dims[axis] for axis in order])
    return graph.insert(transpose_op(source, order, result), before=before).output


def merge_transpose(graph: Graph, op: Op) -> bool:
    """Merges a TRANSPOSE with the preceding TRANSPOSE, into one or none. Returns False if no TRANSPOSE precedes it."""
    first = graph.producer(op.input(0), "TRANSPOSE")
    if first is None:
        return False
    inner, outer = transpose_order(first), transpose_order(op)
    if inner is None or outer is None:
        return False
    order = inner[outer]
    if not np.array_equal(order, np.arange(order.size)):
        graph.set_input(op, 0, first.input(0))
        graph.set_input(op, 1, constant(derived(op.output.name, "/order"), order.astype(np.int32)))
        return True
    return graph.bypass(op, first.input(0))


def split_activation(graph: Graph, op: Op) -> bool:
    """Splits the fused activation of an op into a separate op; returns False if the op has no activation."""
    activation = fused_activation(op)
    if not activation:
        return False
    inner = like(op.output, derived(op.output.name, "/linear"))
    outer = builtin_op(OP_OF_ACTIVATION[activation], [inner], op.output)
    op.options.fused_activation_function = Activation.NONE
    graph.set_output(op, inner)
    graph.insert(outer, after=op)
    return True


def can_pool_bits(pool: Op) -> bool:
    """True if `pool_of_bits` can replace a MAX_POOL_2D of signs.

    The result is False if the declared size of the output is wrong, as in a damaged file.
    """
    from litebnn.safety import mistakes

    source, result = pool.input(0), pool.output
    if fused_activation(pool) != 0 or not result.channels == source.channels >= 1:
        return False
    if result.type != "FLOAT32" and not same_parameters(source, result):
        return False
    return not any(mistakes(pool_of_bits(pool, packed_like(source, ""), packed_like(result, ""))))


def pool_of_bits(pool: Op, bits: Tensor, pooled: Tensor) -> Op:
    """Makes the LceBMaxPool2d that pools `bits` as `pool` pools floats."""
    o = pool.options
    options = BMaxPool2DOptions(o.padding, o.stride_w, o.stride_h, o.filter_width, o.filter_height)
    return custom_op(LCE_BMAXPOOL_2D, [bits], pooled, options)


def parts_of(graph: Graph, tensor: Tensor) -> list[Tensor]:
    """If a float32 tensor [..., channels] is a concatenation along the channels, returns its parts. Otherwise, or if
    there are too many, the list is empty.

    A tensor whose declared size does not match its parts, as in a damaged file, has no parts.
    """
    op = graph.producer(tensor, "CONCATENATION")
    if op is None or len(op.inputs) > MOST_PARTS or tensor.type != "FLOAT32":
        return []
    parts = channels_moved(op)
    if any(part.type != "FLOAT32" or part.dims[:-1] != tensor.dims[:-1] or part.channels < 1 for part in parts):
        return []
    return parts if sum(part.channels for part in parts) == tensor.channels >= 1 else []


def concatenation_of(parts: Sequence[Tensor], whole: Tensor) -> Op:
    """Makes the CONCATENATION that joins `parts` along the channels to the tensor `whole`."""
    return builtin_op("CONCATENATION", parts, whole, axis=len(whole.dims) - 1)


def spend_on_ops(graph: Graph, count: int) -> None:
    """Counts ops that a move before a concatenation adds.

    Raises:
        ConversionError: there are too many for the size of the file.
    """
    graph.spend(_WORK_OF_AN_OP * count)


def on_channels(graph: Graph, op: Op, x: Tensor, source: Tensor, channels: Array, name: str, *, before: Op) -> Tensor:
    """Copies an op that works on the channels of x, so that the copy reads `source`, and returns its output.

    Args:
        op: all its inputs but x are constants with a value for each channel, or one for all.
        channels: the indices of the channels of x that the channels of `source` have.
        name: the name of the copy's output.
    """
    result = like(source, name)
    inputs: list[Tensor | None] = []
    for tensor in op.inputs:
        values = None if tensor is x else per_channel(tensor, x.channels)
        constants = None if values is None else constant(derived(result.name, "/constants"), values[channels])
        inputs.append(constants or source)
    return graph.insert(Op(op.code, inputs, [result], copy.copy(op.options)), before=before).output


def is_describable(tensor: Tensor) -> bool:
    return sum(d < 0 for d in tensor.dims) <= 1


def keeps_words(op: Op) -> bool:
    """True if reshaping the packed words of a tensor gives the same words as packing the reshaped tensor."""
    before, after = op.input(0).channels, op.output.channels
    whole_words = before % BITS_PER_WORD == 0 and after % BITS_PER_WORD == 0
    return before > 0 and after > 0 and (before == after or whole_words) and is_describable(op.output)


def reshape_op(source: Tensor, output: Tensor) -> Op:
    """Makes a RESHAPE of `source` to the dimensions of `output`, at most one of which may be unknown."""
    sizes = np.asarray(output.dims, np.int32)
    if sizes.size and np.all(sizes > 0):
        sizes[0] = -1  # keeps the batch resizable
    shape = constant(derived(output.name, "/shape"), sizes)
    return builtin_op("RESHAPE", [source, shape], output, new_shape=sizes)


def merge_reshapes(graph: Graph, op: Op) -> bool:
    """Merges a reshape with the preceding reshape, into one or none. Returns False if the reshape must stay as it
    is.
    """
    first = graph.producer(op.input(0))
    source = first.input(0) if first is not None and facts(first).reshapes else op.input(0)
    if not is_describable(op.output):
        return False
    if source.dims == op.output.dims and graph.bypass(op, source):
        return True
    if source is op.input(0):
        return False
    graph.replace(op, reshape_op(source, op.output))
    return True


def layout_op(layout: Layout, source: Tensor, output: Tensor) -> Op:
    """Makes the TRANSPOSE or the reshape that arranges `source` in a layout."""
    if layout.order is not None:
        return transpose_op(source, layout.order, output)
    if is_describable(output):
        return reshape_op(source, output)
    axis = np.asarray(layout.unit_axis, np.int32)
    if len(source.dims) > len(output.dims):
        return builtin_op("SQUEEZE", [source], output, squeeze_dims=axis.reshape(1))
    return builtin_op("EXPAND_DIMS", [source, constant(derived(output.name, "/axis"), axis)], output)


def fold_input(graph: Graph, op: Op, index: int) -> bool:
    """Replaces an op's input by a constant if its value can be computed."""
    value = evaluate(graph, op.input(index))
    if value is None:
        return False
    graph.set_input(op, index, constant(op.input(index).name, value))
    return True


def fold_computed(graph: Graph, layer: Op) -> bool:
    """Replaces weights and a bias that ops compute from constants by their values, if the file does not grow."""
    folded = [fold_input(graph, layer, index) for index in computed_weights(graph, layer)]
    return any(folded)
