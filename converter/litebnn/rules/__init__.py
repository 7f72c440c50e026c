"""The rules, one per file, and the order in which they run.

A rule is a function of a graph and the notes for the report. It returns True if it changed the graph, and it never
changes what the graph computes beyond float rounding. Its file has its name and lies in the folder of its phase.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from litebnn.analysis.grids import Ranges
from litebnn.build.notes import Notes
from litebnn.errors import Defect, boundary
from litebnn.graph import Graph, Model
from litebnn.rules.binarize.absorb_one_padding import absorb_one_padding
from litebnn.rules.binarize.binarize_layers import binarize_layers
from litebnn.rules.binarize.shift_two_values import shift_two_values
from litebnn.rules.binarize.split_transposed_convs import split_transposed_convs
from litebnn.rules.binarize.undo_space_to_batch import undo_space_to_batch
from litebnn.rules.canonical.absorb_mirror_padding import absorb_mirror_padding
from litebnn.rules.canonical.fold_constants import fold_constants
from litebnn.rules.canonical.fold_reshape_shapes import fold_reshape_shapes
from litebnn.rules.canonical.fold_weights import fold_weights
from litebnn.rules.canonical.merge_constants import merge_constants
from litebnn.rules.canonical.merge_opposite_layers import merge_opposite_layers
from litebnn.rules.canonical.move_unit_axes import move_unit_axes
from litebnn.rules.canonical.permute_features import permute_features
from litebnn.rules.canonical.recognize_prelu import recognize_prelu
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from litebnn.rules.canonical.remove_empty_padding import remove_empty_padding
from litebnn.rules.canonical.sink_reshapes import sink_reshapes
from litebnn.rules.canonical.sink_transposes import sink_transposes
from litebnn.rules.canonical.transpose_first import transpose_first
from litebnn.rules.canonical.widen_blocks import widen_blocks
from litebnn.rules.fuse.activate_before_maxpool import activate_before_maxpool
from litebnn.rules.fuse.add_before_concatenation import add_before_concatenation
from litebnn.rules.fuse.flatten_concatenations import flatten_concatenations
from litebnn.rules.fuse.fuse_post_activation import fuse_post_activation
from litebnn.rules.fuse.maxpool_first import maxpool_first
from litebnn.rules.fuse.merge_split_convs import merge_split_convs
from litebnn.rules.fuse.move_interleaving import move_interleaving
from litebnn.rules.fuse.move_reshapes import move_reshapes
from litebnn.rules.fuse.pack_outputs import pack_outputs
from litebnn.rules.int8.clamp_levels import clamp_levels
from litebnn.rules.int8.fold_quantized_constants import fold_quantized_constants
from litebnn.rules.int8.insert_quantization import insert_quantization
from litebnn.rules.int8.lower_to_int8 import lower_to_int8
from litebnn.rules.int8.merge_requantizations import merge_requantizations
from litebnn.rules.int8.narrow_weights import narrow_weights
from litebnn.rules.int8.quantize_before_moving import quantize_before_moving
from litebnn.rules.int8.read_int8_signs import read_int8_signs
from litebnn.rules.int8.set_interface_types import set_interface_types
from litebnn.rules.int8.shift_uint8_to_int8 import shift_uint8_to_int8
from litebnn.rules.int8.write_int8 import write_int8
from litebnn.rules.larq.lower_explicit_padding import lower_explicit_padding
from litebnn.rules.larq.split_zero_padded_outputs import split_zero_padded_outputs
from litebnn.rules.thresholds.assume_nonzero import assume_nonzero
from litebnn.rules.thresholds.compare_instead_of_rounding import compare_instead_of_rounding
from litebnn.rules.thresholds.lower_thresholds import lower_thresholds
from litebnn.rules.thresholds.merge_signs import merge_signs
from litebnn.rules.thresholds.move_thresholds import move_thresholds
from litebnn.rules.thresholds.pad_bits import pad_bits
from litebnn.rules.thresholds.pool_bits import pool_bits
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from litebnn.rules.thresholds.reshape_bits import reshape_bits
from litebnn.rules.thresholds.sign_before_concatenation import sign_before_concatenation
from litebnn.rules.thresholds.sign_before_maxpool import sign_before_maxpool
from litebnn.rules.thresholds.sign_before_quantize import sign_before_quantize

Rule: TypeAlias = Callable[[Graph, Notes], bool]


@dataclass(frozen=True)
class Request:
    """The options of the converter that the rules depend on.

    Attributes:
        ranges: a function that returns the ranges of a model's activations; None if they stay float.
        low_bit_weights: "INT4" or "INT2"; empty to keep the weights' type.
    """

    assume_nonzero: bool = False
    ranges: Callable[[Model], Ranges] | None = None
    input_type: str = "float32"
    output_type: str = "float32"
    low_bit_weights: str = ""
    dynamic_range: bool = False
    larq_compatible: bool = False


NOTHING = Request()


@dataclass(frozen=True)
class OnRequest:
    """A row of `PHASES` that runs only if it is asked for.

    Attributes:
        rewrite: a rule; or, with `arguments`, a function of the model. The latter runs once, at its place among the
            rows, and the rules of its phase run after it.
    """

    rewrite: Callable[..., Any]
    when: Callable[[Request], bool]
    arguments: Callable[[Model, Notes, Request], tuple[Any, ...]] | None = None

    @property
    def __name__(self) -> str:
        return self.rewrite.__name__

    def __call__(self, graph: Graph, notes: Notes) -> bool:
        return self.arguments is None and bool(self.rewrite(graph, notes))


def _ranges(model: Model, notes: Notes, request: Request) -> tuple[Any, ...]:
    assert request.ranges is not None
    return request.ranges(model), request.input_type, notes


def _types(model: Model, notes: Notes, request: Request) -> tuple[Any, ...]:
    return request.input_type, request.output_type


def _narrow(model: Model, notes: Notes, request: Request) -> tuple[Any, ...]:
    return request.low_bit_weights, request.dynamic_range, notes


# Each phase repeats until none of its rules changes the graph; then the next phase runs.
PHASES: dict[str, tuple[Rule | OnRequest, ...]] = {
    "canonical": (
        fold_constants,
        sink_transposes,
        sink_reshapes,
        permute_features,
        remove_dead_ops,
    ),
    "thresholds": (
        fold_constants,
        fold_reshape_shapes,
        remove_empty_padding,
        transpose_first,
        recognize_signs,
        merge_opposite_layers,
        recognize_prelu,
        compare_instead_of_rounding,
        split_transposed_convs,
        shift_two_values,
        move_unit_axes,
        reshape_bits,
        absorb_mirror_padding,
        pool_bits,
        pad_bits,
        remove_dead_ops,
        OnRequest(assume_nonzero, lambda r: r.assume_nonzero, lambda model, notes, r: (notes,)),
    ),
    "binarize": (
        undo_space_to_batch,
        fold_constants,
        binarize_layers,
        absorb_one_padding,
        remove_dead_ops,
    ),
    "fuse": (
        read_int8_signs,
        merge_signs,
        move_reshapes,
        move_interleaving,
        activate_before_maxpool,
        fuse_post_activation,
        move_thresholds,
        sign_before_maxpool,
        sign_before_quantize,
        pack_outputs,
        add_before_concatenation,
        flatten_concatenations,
        sign_before_concatenation,
        merge_split_convs,
        remove_dead_ops,
    ),
    "lower": (lower_thresholds, maxpool_first, remove_dead_ops),
    "int8": (
        OnRequest(insert_quantization, lambda r: r.ranges is not None, _ranges),
        shift_uint8_to_int8,
        fold_quantized_constants,
        read_int8_signs,
        clamp_levels,
        quantize_before_moving,
        write_int8,
        lower_to_int8,
        merge_requantizations,
        merge_signs,
        remove_dead_ops,
        OnRequest(narrow_weights, lambda r: bool(r.low_bit_weights), _narrow),
        OnRequest(set_interface_types, lambda r: "int8" in (r.input_type, r.output_type), _types),
    ),
    "larq": (
        OnRequest(split_zero_padded_outputs, lambda r: r.larq_compatible),
        OnRequest(lower_explicit_padding, lambda r: r.larq_compatible),
    ),
    "tidy": (merge_constants, widen_blocks, remove_dead_ops),
    "without_bits": (fold_weights,),
}
# The limit on rounds, which stops rules that undo each other's work.
_ROUNDS, _ROUNDS_PER_OP = 100, 10
# The phases that make layers binary, those after them, and those of a model without such a layer.
BINARY_PHASES = ("canonical", "thresholds", "binarize", "fuse", "lower")
FINAL_PHASES = ("int8", "larq", "tidy")
PHASES_WITHOUT_BITS = ("without_bits", "tidy")


def run_phases(
    model: Model,
    phases: Sequence[str],
    notes: Notes,
    progress: Callable[[str], None] = lambda name: None,
    request: Request = NOTHING,
) -> bool:
    """Rewrites every subgraph of the model in place, and returns whether any rule changed one.

    The rules rely on the properties that `graph.check_graph` checked when the model was read.

    Args:
        phases: which of `PHASES`, in the order to run them.
        progress: called with the name of each row before it runs.
        request: the options on which `OnRequest` rows depend.
    """
    changed = False
    for phase in phases:
        rows = [row for row in PHASES[phase] if not isinstance(row, OnRequest) or row.when(request)]
        rules = [row for row in rows if not isinstance(row, OnRequest) or row.arguments is None]
        have_run = False
        for row in rows:
            if isinstance(row, OnRequest) and row.arguments is not None:
                progress(row.__name__)
                arguments = row.arguments(model, notes, request)  # a caller's own errors pass as they are
                with boundary():
                    row.rewrite(model, *arguments)
            elif have_run:
                continue
            if row in rules or have_run:
                changed |= _repeat(model, phase, rules, notes, progress)
                have_run = True
    return changed


def _repeat(model: Model, phase: str, rules: Sequence[Rule], notes: Notes, progress: Callable[[str], None]) -> bool:
    changed_any = False
    for graph in model.graphs:
        notes.settle()
        for _ in range(_ROUNDS + _ROUNDS_PER_OP * len(graph.ops)):
            changed = False
            notes.start_round()
            for one in rules:
                progress(one.__name__)
                with boundary():
                    changed |= one(graph, notes)
            changed_any |= changed
            if not changed:
                break
        else:
            raise Defect(f'litebnn comes to no end in the phase "{phase}", please report it')
    return changed_any
