"""The rules, one per file, and the order in which they run.

A rule is a function of a graph and the notes for the report. It returns True if it changed the graph, and it never
changes what the graph computes beyond float rounding. Its file has its name and lies in the folder of its phase.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

from litebnn.analysis.grids import Ranges
from litebnn.build.notes import Notes
from litebnn.errors import Defect, boundary
from litebnn.graph import Graph, Model

Rule: TypeAlias = Callable[[Graph, Notes], bool]


@dataclass(frozen=True)
class Request:
    """The options of the converter that the rules depend on."""

    assume_nonzero: bool = False
    # A function that returns the ranges of a model's activations; None if they stay float.
    ranges: Callable[[Model, Notes], Ranges] | None = None
    input_type: str = "float32"
    output_type: str = "float32"
    # "INT4" or "INT2"; empty to keep the weights' type.
    low_bit_weights: str = ""
    dynamic_range: bool = False
    larq_compatible: bool = False


NOTHING = Request()
_FLOATS = ("float32", "float32")


@dataclass(frozen=True)
class OnRequest:
    """A rule in `PHASES` that runs only if the options request it."""

    # A rule of graphs; or, if `arguments` is set, a function of the whole model. Such a function runs once, before the
    # rules of its phase.
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
    return request.ranges(model, notes), request.input_type, notes


def _types(model: Model, notes: Notes, request: Request) -> tuple[Any, ...]:
    return request.input_type, request.output_type


def _narrow(model: Model, notes: Notes, request: Request) -> tuple[Any, ...]:
    return request.low_bit_weights, request.dynamic_range, notes


def _rule(name: str) -> Callable[..., Any]:
    """Imports the file `FOLDER.NAME` of this package, and returns the rule in it, whose name is the file's."""
    rule: Callable[..., Any] = getattr(import_module(f"{__name__}.{name}"), name.rpartition(".")[2])
    return rule


# Each phase repeats until none of its rules changes the graph; then the next phase runs. A row names its file.
_ROWS: dict[str, tuple[str | OnRequest, ...]] = {
    "canonical": (
        "canonical.fold_constants",
        "canonical.sink_layouts",
        "canonical.permute_features",
        "canonical.remove_dead_ops",
    ),
    "thresholds": (
        "canonical.fold_constants",
        "canonical.fold_reshape_shapes",
        "canonical.remove_empty_padding",
        "canonical.raise_layouts",
        "thresholds.recognize_signs",
        "canonical.merge_opposite_layers",
        "canonical.recognize_prelu",
        "thresholds.compare_instead_of_rounding",
        "binarize.split_transposed_convs",
        "binarize.shift_two_values",
        "canonical.absorb_mirror_padding",
        "thresholds.work_on_bits",
        "canonical.remove_dead_ops",
        OnRequest(_rule("thresholds.assume_nonzero"), lambda r: r.assume_nonzero, lambda model, notes, r: (notes,)),
    ),
    "binarize": (
        "binarize.undo_space_to_batch",
        "canonical.fold_constants",
        "binarize.binarize_layers",
        "binarize.absorb_one_padding",
        "canonical.remove_dead_ops",
    ),
    "fuse": (
        "int8.read_int8_signs",
        "thresholds.merge_signs",
        "fuse.move_reshapes",
        "fuse.move_interleaving",
        "fuse.activate_before_maxpool",
        "fuse.fuse_post_activation",
        "fuse.add_before_concatenation",
        "fuse.flatten_concatenations",
        "thresholds.move_thresholds",
        "fuse.pack_outputs",
        "fuse.merge_split_convs",
        "canonical.remove_dead_ops",
    ),
    "lower": ("thresholds.lower_thresholds", "fuse.maxpool_first", "canonical.remove_dead_ops"),
    "int8": (
        OnRequest(_rule("int8.insert_quantization"), lambda r: r.ranges is not None, _ranges),
        "int8.shift_uint8_to_int8",
        "int8.fold_quantized_constants",
        "int8.read_int8_signs",
        "int8.clamp_levels",
        "int8.quantize_before_moving",
        "int8.write_int8",
        "int8.lower_to_int8",
        "int8.merge_requantizations",
        "thresholds.merge_signs",
        "canonical.remove_dead_ops",
        OnRequest(_rule("int8.narrow_weights"), lambda r: bool(r.low_bit_weights), _narrow),
        OnRequest(_rule("int8.set_interface_types"), lambda r: (r.input_type, r.output_type) != _FLOATS, _types),
    ),
    "larq": (
        OnRequest(_rule("larq.split_zero_padded_outputs"), lambda r: r.larq_compatible),
        OnRequest(_rule("larq.lower_explicit_padding"), lambda r: r.larq_compatible),
    ),
    "tidy": ("canonical.merge_constants", "canonical.widen_blocks", "canonical.remove_dead_ops"),
    "without_bits": ("canonical.fold_weights",),
}
PHASES: dict[str, tuple[Rule | OnRequest, ...]] = {
    phase: tuple(_rule(row) if isinstance(row, str) else row for row in rows) for phase, rows in _ROWS.items()
}
# The limit on rounds, which stops rules that undo each other's work.
_ROUNDS, _ROUNDS_PER_OP = 100, 10
# Three lists of phases: those that make layers binary, those that run after them, and those for a model without a
# binary layer.
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
        phases: names from `PHASES`, in order.
        progress: called with each row's name before it runs.
        request: decides which `OnRequest` rows run.
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
