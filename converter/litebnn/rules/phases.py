"""Runs the rules of the converter, in the order that the table `PHASES` gives.

A rule is a function that rewrites a graph, and notes for the report what it did. It returns True if it changed the
graph. It never changes what the graph computes beyond float rounding. Each rule has a file of its own in a folder of
this package, with the rule's name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from litebnn.errors import Defect, boundary
from litebnn.graph import Graph, Model
from litebnn.rules.binarize.absorb_channel_padding import absorb_channel_padding
from litebnn.rules.binarize.absorb_one_padding import absorb_one_padding
from litebnn.rules.binarize.binarize_layers import binarize_layers
from litebnn.rules.binarize.read_as_signs import read_as_signs
from litebnn.rules.binarize.scale_behind_layers import scale_behind_layers
from litebnn.rules.binarize.split_transposed_convs import split_transposed_convs
from litebnn.rules.binarize.undo_space_to_batch import undo_space_to_batch
from litebnn.rules.build.notes import NOTHING, Notes, Request, Rule
from litebnn.rules.canonical.absorb_mirror_padding import absorb_mirror_padding
from litebnn.rules.canonical.fold_constants import fold_constants
from litebnn.rules.canonical.fold_reshape_shapes import fold_reshape_shapes
from litebnn.rules.canonical.fold_weights import fold_weights
from litebnn.rules.canonical.merge_constants import merge_constants
from litebnn.rules.canonical.permute_features import permute_features
from litebnn.rules.canonical.raise_layouts import raise_layouts
from litebnn.rules.canonical.recognize_borders import recognize_borders
from litebnn.rules.canonical.recognize_clamps import recognize_clamps
from litebnn.rules.canonical.recognize_prelu import recognize_prelu
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from litebnn.rules.canonical.remove_empty_padding import remove_empty_padding
from litebnn.rules.canonical.sink_layouts import sink_layouts
from litebnn.rules.canonical.skip_straight_through import skip_straight_through
from litebnn.rules.canonical.widen_blocks import widen_blocks
from litebnn.rules.fuse.add_before_concatenation import add_before_concatenation
from litebnn.rules.fuse.compute_before_moving import compute_before_moving
from litebnn.rules.fuse.flatten_concatenations import flatten_concatenations
from litebnn.rules.fuse.fuse_post_activation import fuse_post_activation
from litebnn.rules.fuse.maxpool_first import maxpool_first
from litebnn.rules.fuse.merge_split_convs import merge_split_convs
from litebnn.rules.fuse.pack_outputs import pack_outputs
from litebnn.rules.int8.fold_batch_norm import fold_batch_norm
from litebnn.rules.int8.fold_quantized_constants import fold_quantized_constants
from litebnn.rules.int8.insert_quantization import insert_quantization
from litebnn.rules.int8.lower_to_int8 import lower_to_int8
from litebnn.rules.int8.narrow_weights import narrow_weights
from litebnn.rules.int8.pack_weights import pack_weights
from litebnn.rules.int8.quantize_first import quantize_first
from litebnn.rules.int8.read_levels import read_levels
from litebnn.rules.int8.scale_before_concatenation import scale_before_concatenation
from litebnn.rules.int8.set_interface_types import set_interface_types
from litebnn.rules.int8.shift_uint8_to_int8 import shift_uint8_to_int8
from litebnn.rules.larq.write_for_larq import write_for_larq
from litebnn.rules.thresholds.assume_nonzero import assume_nonzero
from litebnn.rules.thresholds.lower_thresholds import lower_thresholds
from litebnn.rules.thresholds.merge_signs import merge_signs
from litebnn.rules.thresholds.move_thresholds import move_thresholds
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from litebnn.rules.thresholds.work_on_bits import work_on_bits

# A rule, or a rule and the field of `Request` that asks for it.
Row: TypeAlias = Rule | tuple[Rule, str]
# Each phase repeats until none of its rules changes the graph; then the next phase runs.
PHASES: dict[str, tuple[Row, ...]] = {
    "canonical": (
        fold_constants,
        recognize_borders,
        sink_layouts,
        permute_features,
        remove_dead_ops,
    ),
    "thresholds": (
        fold_constants,
        fold_reshape_shapes,
        remove_empty_padding,
        raise_layouts,
        recognize_clamps,
        skip_straight_through,
        recognize_signs,
        recognize_prelu,
        (remove_dead_ops, "assume_nonzero"),
        (assume_nonzero, "assume_nonzero"),
        split_transposed_convs,
        scale_behind_layers,
        read_as_signs,
        absorb_mirror_padding,
        work_on_bits,
        undo_space_to_batch,
        remove_dead_ops,
    ),
    "binarize": (
        fold_constants,
        absorb_channel_padding,
        binarize_layers,
        absorb_one_padding,
        remove_dead_ops,
    ),
    "fuse": (
        read_levels,
        merge_signs,
        compute_before_moving,
        fuse_post_activation,
        add_before_concatenation,
        flatten_concatenations,
        move_thresholds,
        pack_outputs,
        merge_split_convs,
        remove_dead_ops,
    ),
    "lower": (lower_thresholds, maxpool_first, remove_dead_ops),
    "quantize": ((scale_before_concatenation, "ranges"), (insert_quantization, "ranges")),
    "int8": (
        shift_uint8_to_int8,
        fold_quantized_constants,
        fold_batch_norm,
        read_levels,
        quantize_first,
        lower_to_int8,
        merge_signs,
        remove_dead_ops,
    ),
    "types": (
        (narrow_weights, "low_bit_weights"),
        (pack_weights, "low_bit_weights"),
        set_interface_types,
        merge_signs,
    ),
    "larq": ((write_for_larq, "larq_compatible"),),
    "tidy": (merge_constants, widen_blocks, remove_dead_ops),
    "without_bits": (fold_weights,),
}
# The limit on the number of rounds of a phase. If two rules undid each other's changes, the rounds would never end
# without a limit.
_ROUNDS, _ROUNDS_PER_OP = 100, 10
# The lists of phases: those that make layers binary, those that run after them, and two for a model without a binary
# layer. The last list is for models that were trained with fake quantization.
BINARY_PHASES = ("canonical", "thresholds", "binarize", "fuse", "lower")
FINAL_PHASES = ("quantize", "int8", "types", "larq", "tidy")
PHASES_WITHOUT_BITS = ("without_bits", "tidy")
INT8_PHASES = ("without_bits", "int8", "tidy")


def rules_of(phase: str, request: Request = NOTHING) -> list[Rule]:
    """Returns the rules of a phase in order, without those for options that the request does not have."""
    rows = [row if isinstance(row, tuple) else (row, "") for row in PHASES[phase]]
    return [rule for rule, field in rows if not field or getattr(request, field)]


def run_phases(
    model: Model, phases: Sequence[str], notes: Notes, progress: Callable[[str], None] = lambda name: None
) -> bool:
    """Rewrites every subgraph of the model in place. Returns True if any rule changed a subgraph.

    The rules require the properties of a graph that `graph.check_graph` checks when a model is read.

    Args:
        phases: names from `PHASES`, in order.
        notes: collects the report's rows while the rules run. The options in `notes.request` decide which rules with a
            field in `PHASES` run.
        progress: called with each rule's name before it runs.
    """
    changed = False
    for phase in phases:
        rules = rules_of(phase, notes.request)
        for graph in model.graphs:
            notes.keep_reasons()
            left = _ROUNDS + _ROUNDS_PER_OP * len(graph.ops)
            while _run_each(graph, rules, notes, progress):
                changed, left = True, left - 1
                if not left:
                    raise Defect(f'litebnn comes to no end in the phase "{phase}", please report it')
    return changed


def _run_each(graph: Graph, rules: Sequence[Rule], notes: Notes, progress: Callable[[str], None]) -> bool:
    """Runs each rule once, and returns True if any of them changed the graph."""
    changed = False
    notes.start_round()
    for rule in rules:
        progress(rule.__name__)
        with boundary():
            changed |= rule(graph, notes)
    return changed
