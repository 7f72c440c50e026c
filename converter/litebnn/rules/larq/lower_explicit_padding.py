"""An LceBconv2d with explicit padding -> VALID ones of padded bits, which Larq's runtime reads.

Bits cannot hold zeros, but the mean of the results for padding with +1 and with -1 is that for padding with 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from litebnn.build.bconv import bconv_options, multiplier_and_bias, set_bconv_options, set_multiplier_and_bias
from litebnn.build.notes import Notes, each
from litebnn.build.ops import custom_op
from litebnn.build.signs import pad_packed
from litebnn.contract import LCE_BCONV_2D, BConv2DOptions, Padding
from litebnn.graph import Graph, Op, Tensor, builtin_op, derived, like


@each(LCE_BCONV_2D)
def lower_explicit_padding(graph: Graph, op: Op, notes: Notes) -> bool:
    options = bconv_options(op)
    if options.explicit_padding is None:
        return False
    amounts = np.asarray([(0, 0), *options.explicit_padding, (0, 0)])
    bits, channels = op.input(0), options.channels_in
    valid = replace(options, padding=Padding.VALID, pad_top=None, pad_bottom=None, pad_left=None, pad_right=None)
    set_bconv_options(op, valid)
    graph.set_input(op, 0, pad_packed(graph, bits, channels, amounts, 1, before=op))
    if options.pads_zeros:
        _add_halves(graph, op, pad_packed(graph, bits, channels, amounts, -1, before=op), valid)
    return True


def _add_halves(graph: Graph, op: Op, other_bits: Tensor, options: BConv2DOptions) -> None:
    """Replaces op by half of itself plus half of the same op on other bits.

    The sum is exact, because split_zero_padded_outputs has left a multiplier of 1 and an integer bias.
    """
    result = op.output
    set_multiplier_and_bias(graph, op, *(values / 2 for values in multiplier_and_bias(op)))
    inputs = [other_bits, *op.inputs[1:]]
    other = custom_op(LCE_BCONV_2D, inputs, like(result, derived(result.name, "/minus")), options)
    graph.set_output(op, like(result, derived(result.name, "/plus")))
    graph.insert(other, after=op)
    graph.insert(builtin_op("ADD", [op.output, other.output], result), after=other)
