"""A layer whose input takes two values, or evenly spaced levels, is changed to read signs, with other weights and bias.

The input's values are middle + Σ scale · s for signs s. A filter w of the values becomes the filter w · scale of each
sign, and the bias grows by middle · sum(w). Padding is translated too. For the values 0 and 1, a zero is the sign's -1,
or +1 if the sign is flipped.

Two values become one sign. Levels, such as those of 2-bit DoReFa, become several signs. Each sign compares with its own
threshold, and the signs are concatenated along the channels. For 2 bits, the new layer does three times the work of a
binary layer.

A quantized sign takes two values other than 1 and -1, because a scale and zero point seldom represent both exactly. The
layer that reads a quantized sign becomes a float layer followed by a QUANTIZE, which the int8 rules fuse into the
binary op.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.few_values import (
    FewValues,
    SignSum,
    is_unpacked,
    of_few,
    sum_of_signs,
    values_read,
    why_no_sum,
)
from litebnn.analysis.padding import PADDING, PADS, constant_padding, layer_padding, unpadded_input
from litebnn.analysis.quantization import ROUNDING, below_level, is_quantized
from litebnn.analysis.reasons import why_no_sign
from litebnn.analysis.transfers import Values
from litebnn.analysis.weights import BINARY_LAYERS, binary_parts, is_of_two_activations
from litebnn.contract import Padding
from litebnn.graph import Graph, Negated, Op, Tensor, constant, derived, like, then
from litebnn.rules.build.int8 import replace_in_floats
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import compared, equal_op, output_of, select_op
from litebnn.rules.build.signs import bits_of_levels, pad_with, unpacked

_HAS_GROUPS = "it has groups, and signs of its input's levels would not lie beside each other in each"


@each(*BINARY_LAYERS)
def read_as_signs(graph: Graph, op: Op, notes: Notes) -> bool:
    source, zeros = unpadded_input(graph, op)
    few, is_float = values_read(graph, op, source, is_padded=bool(np.any(zeros))), op.output.type == "FLOAT32"
    if is_of_two_activations(graph, op) or (op.name == "BATCH_MATMUL" and (few is None or not is_float)):
        return False
    if not is_float and not is_quantized(op.output):
        return notes.left_alone(op, f"its output is {op.output.type}")
    if few is None:
        return False if is_float else notes.left_alone(op, why_no_sign(graph, op.input(0)))
    rather_falling = not few.are_levels and _falls(graph, few, op)
    parts = binary_parts(graph, op, assume_nonzero=notes.options["assume_nonzero"])
    signs = sum_of_signs(graph, few, rather_falling=rather_falling)
    if isinstance(parts, str) or signs is None:
        return notes.left_alone(op, parts if isinstance(parts, str) else why_no_sum(few))
    if few.are_levels and op.name == "CONV_2D" and op.input(1).channels != source.channels:
        return notes.left_alone(op, _HAS_GROUPS)
    zero, own = signs.number(0.0), layer_padding(op)
    if own is None and (zero or np.any(zeros)):
        return notes.left_alone(op, f"{of_few(few)}, and how SAME pads it depends on a size that is not known")
    notes.took_zeros(op, parts.zeros, parts.weights.size)
    tensor = (_signs_of_levels if few.are_levels else _sign_of_two)(graph, few, signs, source, before=op)
    amounts = zeros if own is None or not zero else zeros + np.asarray(own)
    tensor = pad_with(graph, tensor, amounts, zero, before=op)
    if zero and own != ((0, 0), (0, 0)):
        op.options.padding = int(Padding.VALID)
    name = op.input(1).name
    weights = constant(name, signs.weights(parts.minus_one, parts.alpha))
    bias = constant(derived(name, "/bias"), signs.bias(parts.bias, parts.weights))
    replace_in_floats(graph, op, [tensor, weights, bias], notes)
    return True


def _signs_of_levels(graph: Graph, few: FewValues, signs: SignSum, source: Tensor, *, before: Op) -> Tensor:
    """Inserts the packed signs whose sum represents the activation levels `source`, concatenated along the channels."""
    bits = bits_of_levels(graph, few, signs, source, before=before)
    return unpacked(graph, bits, len(signs.scales) * source.channels, before=before)


def _falls(graph: Graph, few: FewValues, before: Op) -> bool:
    """True if +1 should stand for the lower of two values.

    If another layer already reads one of the two possible signs, both layers share it. For example, a transposed
    convolution becomes several layers that read the same input. Otherwise LceQuantize computes the sign directly, which
    is x >= 0 for an int8 x, and x < 0 for a boolean.
    """
    tensor, values = next(iter(few.sources.items()))
    made = [equal_op(graph, _select(few.x, falls, values, tensor), before=before) for falls in (False, True)]
    if few.x.type == "BOOL" and made.count(None) == 1:
        return made[0] is None
    return values.falls != (graph.producer(few.x, "LESS") is not None)


def _sign_of_two(graph: Graph, few: FewValues, sign: SignSum, source: Tensor, *, before: Op) -> Tensor:
    """Returns a new tensor of 1 and -1 that says which of its two values each element of `source` has. The ops that
    move the two values to `source` are copied, and the copies move the 1 and -1."""
    signs = {tensor: _sign(graph, tensor, values, sign, before=before) for tensor, values in few.sources.items()}
    for op in few.ops:
        inputs = [part if part is None else signs.get(part, part) for part in op.inputs]
        padding = constant_padding(op) if op.name in PADDING else None
        if padding is not None and np.any(padding.amounts):
            inputs[0] = pad_with(graph, signs[op.input(0)], padding.amounts, sign.number(padding.value), before=before)
            amounts = op.input(len(op.inputs) - 1).array
            inputs[-1] = constant(derived(op.output.name, "/no_padding"), np.zeros_like(amounts))
        if op.name in (*PADS, *ROUNDING):
            assert inputs[0] is not None
            signs[op.output] = inputs[0]
            continue
        outputs = [like(output, derived(output.name, "/of_sign"), type="FLOAT32") for output in op.outputs]
        graph.insert(Op(op.code, inputs, outputs, op.options), before=before)
        signs.update(zip(op.outputs, outputs, strict=True))
    return signs[source]


def _sign(graph: Graph, tensor: Tensor, values: Values, sign: SignSum, *, before: Op) -> Tensor:
    """Returns a tensor of signs for a tensor of two values. A sign of 1 stands for the higher value if `sign` rises,
    otherwise for the lower one. If the graph computes the same signs already, returns their tensor.
    """
    source = values.x
    assert source is not None
    if is_unpacked(graph, values):
        return source
    if source.type != "BOOL":
        level = float(below_level(values.edges[0], source))
        source = compared(graph, source, level, source.name, before=before)
    return output_of(graph, _select(source, not sign.rising[0], values, tensor), before=before)


def _select(condition: Tensor, falls: bool, values: Values, tensor: Tensor) -> Op:
    """Makes the op that selects 1 or -1 by the condition. The number 1 stands for the higher of two `values`, or for
    the lower one if `falls`."""
    rises = values.falls == falls
    sign = like(condition, derived(condition.name, "/sign" if rises else "/opposite"), type="FLOAT32", dims=tensor.dims)
    sign.origin = then(condition) if rises else then(condition, Negated("1"))
    return select_op(condition, *((1.0, -1.0) if rises else (-1.0, 1.0)), sign)
