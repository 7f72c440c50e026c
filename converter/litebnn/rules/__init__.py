"""Runs the rules of the converter, in the order that the table `PHASES` gives.

A rule is a function that rewrites a graph, and notes for the report what it did. It returns True if it changed the
graph. It never changes what the graph computes beyond float rounding. Each rule has a file of its own in a folder of
this package, with the rule's name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from litebnn.build.notes import NOTHING, Notes, Request, Rule
from litebnn.errors import Defect, boundary
from litebnn.graph import Graph, Model

# Each phase repeats until none of its rules changes the graph; then the next phase runs. Each change lowers the measure
# that the rule names (`lowers`). A row names the file of a rule and, after "if", the field of `Request` that asks for
# the rule.
PHASES: dict[str, tuple[str, ...]] = {
    "canonical": (
        "canonical.fold_constants",
        "canonical.recognize_borders",
        "canonical.sink_layouts",
        "canonical.permute_features",
        "canonical.remove_dead_ops",
    ),
    "thresholds": (
        "canonical.fold_constants",
        "canonical.fold_reshape_shapes",
        "canonical.remove_empty_padding",
        "canonical.raise_layouts",
        "canonical.recognize_clamps",
        "canonical.skip_straight_through",
        "thresholds.recognize_signs",
        "canonical.recognize_prelu",
        "canonical.remove_dead_ops if assume_nonzero",
        "thresholds.assume_nonzero if assume_nonzero",
        "binarize.split_transposed_convs",
        "binarize.scale_behind_layers",
        "binarize.split_uneven_weights",
        "binarize.center_padded_values",
        "binarize.read_as_signs",
        "canonical.absorb_mirror_padding",
        "thresholds.work_on_bits",
        "binarize.undo_space_to_batch",
        "canonical.remove_dead_ops",
    ),
    "binarize": (
        "canonical.fold_constants",
        "binarize.absorb_channel_padding",
        "binarize.binarize_layers",
        "binarize.absorb_one_padding",
        "canonical.remove_dead_ops",
    ),
    "fuse": (
        "int8.read_levels",
        "thresholds.merge_signs",
        "fuse.compute_before_moving",
        "fuse.fuse_post_activation",
        "fuse.add_before_concatenation",
        "fuse.flatten_concatenations",
        "thresholds.move_thresholds",
        "fuse.pack_outputs",
        "fuse.merge_split_convs",
        "canonical.remove_dead_ops",
    ),
    "lower": ("thresholds.lower_thresholds", "fuse.maxpool_first", "canonical.remove_dead_ops"),
    "quantize": ("int8.scale_before_concatenation if ranges", "int8.insert_quantization if ranges"),
    "int8": (
        "int8.shift_uint8_to_int8",
        "int8.fold_quantized_constants",
        "int8.fold_batch_norm",
        "int8.read_levels",
        "int8.quantize_first",
        "int8.lower_to_int8",
        "thresholds.merge_signs",
        "canonical.remove_dead_ops",
    ),
    "types": (
        "int8.narrow_weights if low_bit_weights",
        "int8.pack_weights if low_bit_weights",
        "int8.set_interface_types",
        "thresholds.merge_signs",
    ),
    "larq": ("larq.write_for_larq if larq_compatible",),
    "tidy": ("canonical.merge_constants", "canonical.widen_blocks", "canonical.remove_dead_ops"),
    "without_bits": ("canonical.fold_weights",),
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
    rows = (row.partition(" if ") for row in PHASES[phase])
    return [_rule(file) for file, _, field in rows if not field or getattr(request, field)]


def _rule(file: str) -> Rule:
    """Imports the file `FOLDER.NAME` of this package, and returns the rule in it, whose name is the file's."""
    rule: Rule = getattr(import_module(f"{__name__}.{file}"), file.rpartition(".")[2])
    return rule


def run_phases(
    model: Model, phases: Sequence[str], notes: Notes, progress: Callable[[str], None] = lambda name: None
) -> bool:
    """Rewrites every subgraph of the model in place. Returns True if any rule changed a subgraph.

    The rules require the properties of a graph that `graph.check_graph` checks when a model is read.

    Args:
        phases: names from `PHASES`, in order.
        notes: collects the report's rows while the rules run. The options in `notes.request` decide which rules with an
            `if` in `PHASES` run.
        progress: called with each rule's name before it runs.
    """
    changed = False
    for phase in phases:
        rules = rules_of(phase, notes.request)
        for graph in model.graphs:
            notes.settle()
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
