"""The rewrites, one per file, and the order in which they run.

A pass is a function of a graph and the notes for the report; it returns whether it changed the graph, and it never
changes what the graph computes beyond float rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from litebnn.flatbuffer import Graph, Model
from litebnn.passes.binary_conv import binarize_convs
from litebnn.passes.binary_dense import binarize_dense
from litebnn.passes.binary_padding import pad_bits
from litebnn.passes.dead_code import compact, remove_dead_ops
from litebnn.passes.dilation import undo_space_to_batch
from litebnn.passes.duplicates import merge_constants, merge_ops
from litebnn.passes.notes import Layer, Notes
from litebnn.passes.packed_output import pack_outputs
from litebnn.passes.padding import absorb_one_padding, absorb_zero_padding
from litebnn.passes.post_activation import fuse_post_activation
from litebnn.passes.quantizers import recognize_quantizers
from litebnn.passes.reshapes import move_reshapes, reshape_bits_of_signs
from litebnn.passes.sign_affine import simplify_affine_before_sign
from litebnn.passes.sign_maxpool import pool_of_signs, sign_before_maxpool

Pass: TypeAlias = Callable[[Graph, Notes], bool]

# Each group runs over and over until none of its passes finds anything, then the next.
PASSES: tuple[tuple[Pass, ...], ...] = (
    (
        recognize_quantizers,
        reshape_bits_of_signs,
        pool_of_signs,
        pad_bits,
        undo_space_to_batch,
        absorb_zero_padding,
        binarize_convs,
        binarize_dense,
        absorb_one_padding,
        remove_dead_ops,
    ),
    (
        merge_ops,
        move_reshapes,
        fuse_post_activation,
        sign_before_maxpool,
        pack_outputs,
        simplify_affine_before_sign,
        remove_dead_ops,
    ),
    (merge_constants, remove_dead_ops),
)


def run_passes(model: Model, progress: Callable[[str], None] = lambda name: None) -> Notes:
    """Rewrites the model in place and returns the notes."""
    notes = Notes(model)
    for group in PASSES:
        for graph in model.graphs:
            changed = True
            while changed:
                changed = False
                for one in group:
                    progress(one.__name__)
                    changed |= one(graph, notes)
    compact(model)
    notes.finish(model.graphs)
    return notes


__all__ = ["PASSES", "Layer", "Notes", "Pass", "run_passes"]
