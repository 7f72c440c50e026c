"""The rewrites, one per file, and the order in which they run.

A pass is a function of a graph and the notes for the report; it returns whether it changed the graph, and it never
changes what the graph computes beyond float rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from litebnn.errors import ConversionError
from litebnn.flatbuffer import Graph, Model
from litebnn.passes.activation_before_maxpool import activate_before_maxpool
from litebnn.passes.binary_conv import binarize_convs
from litebnn.passes.binary_dense import binarize_dense
from litebnn.passes.binary_padding import pad_bits
from litebnn.passes.constant_reshapes import fold_reshape_shapes
from litebnn.passes.constant_weights import fold_weights
from litebnn.passes.dead_code import compact, remove_dead_ops
from litebnn.passes.dilation import undo_space_to_batch
from litebnn.passes.duplicate_constants import merge_constants
from litebnn.passes.duplicate_signs import merge_signs
from litebnn.passes.fake_quantization import shift_uint8_to_int8
from litebnn.passes.int8_layers_of_signs import float_layers_of_signs
from litebnn.passes.int8_ops import lower_to_int8
from litebnn.passes.int8_outputs import write_int8
from litebnn.passes.matmul_as_dense import matmul_to_dense
from litebnn.passes.notes import Layer, Notes
from litebnn.passes.one_padding import absorb_one_padding
from litebnn.passes.packed_output import pack_outputs
from litebnn.passes.pool_of_signs import pool_of_signs
from litebnn.passes.post_activation import fuse_post_activation
from litebnn.passes.quantized_constants import fold_quantized_constants
from litebnn.passes.quantizers import recognize_quantizers
from litebnn.passes.requantize import merge_requantizations
from litebnn.passes.reshapes import move_reshapes
from litebnn.passes.reshapes_of_signs import reshape_bits_of_signs
from litebnn.passes.sign_affine import simplify_affine_before_sign
from litebnn.passes.sign_maxpool import sign_before_maxpool
from litebnn.passes.sign_preserving import skip_sign_preserving_ops
from litebnn.passes.signs_of_int8 import read_int8_signs
from litebnn.passes.transposes import move_transposes
from litebnn.passes.zero_padding import absorb_zero_padding

_MISFITS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)

Pass: TypeAlias = Callable[[Graph, Notes], bool]

# Each group runs over and over until none of its passes finds anything, then the next.
BINARY_PASSES: tuple[tuple[Pass, ...], ...] = (
    (
        fold_reshape_shapes,
        recognize_quantizers,
        float_layers_of_signs,
        move_transposes,
        reshape_bits_of_signs,
        pool_of_signs,
        pad_bits,
        undo_space_to_batch,
        absorb_zero_padding,
        fold_weights,
        matmul_to_dense,
        binarize_convs,
        binarize_dense,
        absorb_one_padding,
        remove_dead_ops,
    ),
    (
        merge_signs,
        move_reshapes,
        activate_before_maxpool,
        fuse_post_activation,
        skip_sign_preserving_ops,
        sign_before_maxpool,
        pack_outputs,
        simplify_affine_before_sign,
        remove_dead_ops,
    ),
)
INT8_PASSES: tuple[tuple[Pass, ...], ...] = (
    (
        shift_uint8_to_int8,
        fold_quantized_constants,
        read_int8_signs,
        write_int8,
        lower_to_int8,
        merge_requantizations,
        merge_signs,
        remove_dead_ops,
    ),
)
FINAL_PASSES: tuple[tuple[Pass, ...], ...] = ((merge_constants, remove_dead_ops),)


def run_passes(
    model: Model,
    groups: tuple[tuple[Pass, ...], ...],
    notes: Notes,
    progress: Callable[[str], None] = lambda name: None,
) -> None:
    """Rewrites every subgraph of the model in place."""
    for group in groups:
        for graph in model.graphs:
            changed = True
            while changed:
                changed = False
                for one in group:
                    progress(one.__name__)
                    try:
                        changed |= one(graph, notes)
                    except ConversionError:
                        raise
                    except _MISFITS as error:
                        # A file may be sound as a flatbuffer and its ops still not fit their tensors.
                        step = one.__name__.replace("_", " ")
                        raise ConversionError(f"the model's ops and tensors do not fit ({step}): {error}") from error


__all__ = ["BINARY_PASSES", "FINAL_PASSES", "INT8_PASSES", "Layer", "Notes", "Pass", "compact", "run_passes"]
