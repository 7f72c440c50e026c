"""Decides for each tensor where it is in memory: in an argument from the caller, in a constant, or in bytes of the
arena."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from litebnn.contract import MOST_VALUES
from litebnn.errors import ConversionError, printable
from litebnn.graph import Graph, Model, Op, Tensor, constant
from litebnn.micro.arena import Buffer, plan
from litebnn.micro.lowering import lower, where
from litebnn.micro.lowering.moves import RESHAPES, folded
from litebnn.micro.program import C_TYPES, Call, Context, Lowered, Scratch
from litebnn.micro.strips import Strip, bytes_of, find_strips
from litebnn.rules.build.notes import Notes
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops


@dataclass(frozen=True)
class Step:
    """A step of the network: one op, or a strip of ops that run together row by row."""

    ops: tuple[tuple[Op, Lowered], ...]  # each with its C calls
    # The number of times that the step's ops run. It is 1 for a single op. For a strip (ops that run together row by
    # row), it is the number of rows of the last op's output.
    iterations: int = 1
    # For each tensor between the ops of a strip (ops that run together row by row), the number of rows in memory. One
    # iteration needs this many rows.
    heights: dict[Tensor, int] = field(default_factory=dict)
    # In a strip, ops run together row by row. For each tensor of which all rows are stored, this is the number of rows
    # that the ops read or write in one iteration. The input of the strip's first op is not included, because the first
    # op may read any rows of it.
    parts: dict[Tensor, int] = field(default_factory=dict)

    @property
    def calls(self) -> list[Call]:
        return [call for _, lowered in self.ops for call in lowered.calls]


@dataclass(frozen=True)
class Place:
    """A tensor's memory: an argument of the C function `NAME_run`, or bytes of the arena."""

    argument: str = ""
    offset: int = 0


@dataclass(frozen=True)
class Placement:
    """A network with planned memory for all its tensors."""

    graph: Graph
    # The index of each op in the model. The graph may have fewer ops, because some are folded or removed.
    numbers: Mapping[Op, int]
    steps: tuple[Step, ...]  # in the order in which they run
    # The memory of each tensor that is not a constant: an argument of the C function, or bytes of the arena.
    places: dict[Tensor, Place]
    scratch: dict[int, int]  # for each step that needs scratch memory, the offset of this memory in the arena
    # The outputs that share the memory of another tensor, and are copied from this tensor after the last step.
    copies: tuple[tuple[str, Tensor], ...]
    arena_bytes: int
    step_bytes: tuple[int, ...]  # bytes of the arena in use at each step


def argument_names(graph: Graph) -> tuple[list[str], list[str]]:
    """The names of the inputs and outputs in C, which are numbered if there are several."""

    def names(kind: str, count: int) -> list[str]:
        return [kind] if count == 1 else [f"{kind}_{index}" for index in range(count)]

    return names("input", len(graph.inputs)), names("output", len(graph.outputs))


def place(model: Model, kernels: str, target: str) -> Placement:
    """Lowers a model's first graph to C calls and plans its memory. Ops whose results nobody reads are left out.

    Raises:
        ConversionError: an op cannot be exported; the message names the op.
    """
    graph = model.graphs[0]
    numbers = {op: number for number, op in enumerate(graph.ops)}
    remove_dead_ops(graph, Notes(model))
    for tensor in graph.inputs:
        if min(tensor.dims[1:], default=1) < 0:
            raise ConversionError(
                printable(
                    f'input "{tensor.name}" has shape {list(tensor.dims)}, expected known sizes but for the batch'
                )
            )
    for tensor in graph.tensors:
        if (size := bytes_of(tensor)) > MOST_VALUES:
            raise ConversionError(printable(f'"{tensor.name}" takes {size} bytes, expected at most {MOST_VALUES}'))
    _fold_constants(graph)
    context = Context(graph, numbers, kernels, target)
    roots = _shared(context)
    steps = tuple(
        _step(context, found)
        for found in find_strips(graph, roots)
        if isinstance(found, Strip) or found.name not in RESHAPES
    )
    for kind, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        for tensor in tensors:
            if tensor.type not in C_TYPES:
                expected = ", ".join(C_TYPES)
                raise ConversionError(printable(f'{kind} "{tensor.name}" is {tensor.type}, expected {expected}'))
    return _Planner(context, steps, roots).result()


def _fold_constants(graph: Graph) -> None:
    """Replaces ops that only move constants by new constants."""
    for op in list(graph.ops):
        value = folded(op)
        if value is not None:
            graph.redirect(op.output, constant(op.output.name, value, op.output.quantization))
            if not graph.is_output(op.output):
                graph.remove(op)


def _shared(context: Context) -> dict[Tensor, Tensor]:
    """For each output of an op that only changes the shape, the tensor with which it shares memory."""
    roots: dict[Tensor, Tensor] = {}
    for op in context.graph.ops:
        if op.name in RESHAPES:
            if op.input(0).type not in C_TYPES:
                raise ConversionError(printable(f"{where(context, op)}: {op.input(0).type} is not known"))
            root = roots.get(op.input(0), op.input(0))
            roots[root] = roots[op.output] = root
    return roots


def _step(context: Context, found: Strip | Op) -> Step:
    if isinstance(found, Op):
        return Step(((found, lower(context, found)),))
    # In a strip, ops run together row by row. The output of the last op is stored as a whole, and so are operands that
    # ops outside the strip compute. Each iteration works on a few rows of these tensors. An operand from outside may be
    # the input of the first op too, as in a residual block.
    rows = dict(found.heights)
    for op in found.ops[1:]:
        own = rows.get(op.output, 1)
        rows[op.output] = own
        for tensor in op.inputs:
            if tensor is not None and tensor not in found.heights and not tensor.is_constant:
                rows[tensor] = own
    partial = replace(context, heights=rows)
    ops = tuple((op, lower(context if op is found.ops[0] else partial, op)) for op in found.ops)
    parts = {tensor: height for tensor, height in rows.items() if tensor not in found.heights}
    return Step(ops, found.iterations, found.heights, parts)


class _Planner:
    """Finds the lifetime of each tensor, merges tensors that may share memory, and plans the arena."""

    def __init__(self, context: Context, steps: Sequence[Step], roots: dict[Tensor, Tensor]) -> None:
        self.graph, self.numbers, self.steps, self.roots = context.graph, context.numbers, steps, roots
        self.arguments: dict[Tensor, str] = {}
        self.copies: list[tuple[str, Tensor]] = []
        self._name_arguments()
        self.first: dict[Tensor, int] = {}
        self.last: dict[Tensor, int] = {}
        self.bytes: dict[Tensor, int] = {}
        for number, step in enumerate(steps):
            self._live(number, step)
        self.joined: dict[Tensor, Tensor] = {}
        for number, step in enumerate(steps):
            self._join(number, step)

    def root(self, tensor: Tensor) -> Tensor:
        found = self.roots.get(tensor, tensor)
        while found in self.joined:
            found = self.joined[found]
        return found

    def _name_arguments(self) -> None:
        inputs, outputs = argument_names(self.graph)
        for name, tensor in zip(inputs, self.graph.inputs, strict=True):
            self.arguments[self.roots.get(tensor, tensor)] = name
        for name, tensor in zip(outputs, self.graph.outputs, strict=True):
            root = self.roots.get(tensor, tensor)
            if root in self.arguments or root.is_constant:
                self.copies.append((name, root if root.is_constant else tensor))
            else:
                self.arguments[root] = name

    def _live(self, number: int, step: Step) -> None:
        for op, _ in step.ops:
            for tensor in (*op.inputs, *op.outputs):
                if tensor is None or tensor.is_constant:
                    continue
                root = self.roots.get(tensor, tensor)
                self.first.setdefault(root, number)
                self.last[root] = number
                rows = step.heights.get(tensor)
                self.bytes[root] = max(self.bytes.get(root, 0), bytes_of(tensor, rows))

    def _join(self, number: int, step: Step) -> None:
        """Lets the output of an op use the memory of its first input, if no later op reads that input."""
        for op, lowered in step.ops:
            source, result = op.inputs[0], op.output
            if not lowered.in_place or source is None or source.is_constant:
                continue
            one, other = self.root(source), self.root(result)
            ends = self.last[one] == number and (source in step.heights or len(step.ops) == 1)
            in_arena = one not in self.arguments and other not in self.arguments
            if ends and in_arena and one is not other and self.bytes[other] == self.bytes[one]:
                self.joined[other] = one
                self.last[one] = max(self.last[one], self.last[other])

    def result(self) -> Placement:
        rooted = [tensor for tensor in self.first if tensor not in self.arguments and tensor not in self.joined]
        buffers = [Buffer(self.bytes[tensor], self.first[tensor], self.last[tensor]) for tensor in rooted]
        words = {number: _scratch_words(step) for number, step in enumerate(self.steps)}
        scratch = [number for number, count in words.items() if count]
        buffers += [Buffer(4 * words[number], number, number) for number in scratch]
        offsets, size = plan(buffers)
        if size > MOST_VALUES:
            raise ConversionError(f"the arena takes {size} bytes, expected at most {MOST_VALUES}")
        offset_of = dict(zip(rooted, offsets, strict=False))
        places = {tensor: self._place(tensor, offset_of) for step in self.steps for tensor in _tensors(step)}
        for _, tensor in self.copies:
            if not tensor.is_constant:
                places.setdefault(tensor, self._place(tensor, offset_of))
        in_use = tuple(
            sum(buffer.bytes for buffer in buffers if buffer.first <= number <= buffer.last)
            for number in range(len(self.steps))
        )
        scratch_offsets = dict(zip(scratch, offsets[len(rooted) :], strict=True))
        copies, steps = tuple(self.copies), tuple(self.steps)
        return Placement(self.graph, self.numbers, steps, places, scratch_offsets, copies, size, in_use)

    def _place(self, tensor: Tensor, offset_of: dict[Tensor, int]) -> Place:
        root = self.root(tensor)
        return Place(argument=self.arguments[root]) if root in self.arguments else Place(offset=offset_of[root])


def _tensors(step: Step) -> list[Tensor]:
    tensors = (tensor for op, _ in step.ops for tensor in (*op.inputs, *op.outputs))
    return [tensor for tensor in tensors if tensor is not None and not tensor.is_constant]


def _scratch_words(step: Step) -> int:
    return max(
        (argument.words for call in step.calls for argument in call.arguments if isinstance(argument, Scratch)),
        default=0,
    )
