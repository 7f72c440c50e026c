"""The ops of a model and their costs: the data of `litebnn inspect`, and of all pages and tables that show it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from litebnn.analysis.bits import channels_of_bits
from litebnn.errors import ConversionError, boundary
from litebnn.files import read_file
from litebnn.flatbuffer import read_model
from litebnn.graph import Graph, Model, Op, Tensor
from litebnn.report import op_properties
from litebnn.report.costs import boards, estimate
from litebnn.report.guidelines import WORTH_SAYING, findings, prices
from litebnn.report.macs import Macs, macs_by_precision, sum_of_macs
from litebnn.runtime.claimed import claimed_ops, joined_in_place
from litebnn.safety import check_custom_ops


@dataclass(frozen=True)
class TensorRow:
    """A tensor of a model."""

    # The tensor's index in its subgraph, as in the file.
    index: int
    name: str
    # The element type: "bits" (32 signs in an int32), "float", "int8", or TFLite's name in lower case.
    type: str
    # The shape in the file; unknown dimensions are 1. For the type "bits", the last axis counts words of 32 bits.
    shape: tuple[int, ...]
    # The tensor's size in memory, in bytes.
    bytes: int
    # True if the tensor is stored in the file.
    constant: bool


@dataclass(frozen=True)
class BrokenRule:
    """An op's breach of a rule in docs/rules-for-models.md."""

    # The rule's name, as in docs/rules-for-models.md.
    rule: str
    # The index of the op in the main subgraph.
    index: int
    layer: str
    # The property of the op that breaks the rule, as text, such as "40 input channels".
    found: str
    # The advice on a broken rule, as one sentence.
    fix: str
    # The estimated cost on each board, in seconds for one inference.
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class OpRow:
    """One node of the main subgraph."""

    # The node's number in the file: its position in order of execution, from 0.
    index: int
    # The layer's name, which is a part of the name of the op's output.
    name: str
    # The name of the builtin or custom op, such as "CONV_2D".
    op: str
    # Indices of the op's inputs that are computed, not constant, in the list of the subgraph's tensors.
    inputs: tuple[int, ...]
    # Indices of the op's inputs that are stored in the file.
    constants: tuple[int, ...]
    # Indices of the op's outputs.
    outputs: tuple[int, ...]
    # The shapes of the op's data input and first output. The last axis is the number of channels, even for packed bits.
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    # The height, width and channels of the op's window; empty for ops without a window.
    filter_shape: tuple[int, ...]
    # The precision: "binary", "int8" or "float" for ops that compute, the data's type for ops that only move data.
    precision: str
    # The type of the op's output: "bits", "int8", "float" or another type.
    output: str
    # Multiply-accumulates of one inference, by precision.
    macs: Macs
    # The size of the op's constants in the file, in bytes.
    weight_bytes: int
    # The size of the op's computed inputs and outputs, in bytes.
    activation_bytes: int
    # Operations that are fused into the op, such as RELU, scale, bias, threshold or ADD.
    fused: tuple[str, ...]
    # The index of the op into which litebnn's delegate fuses this op; None if the op is not fused.
    fused_into: int | None
    # The estimated time on each board; empty if the cost table lacks this kind of op.
    seconds: Mapping[str, float] = field(default_factory=dict)
    # The rules that the op breaks, worst first.
    broken_rules: tuple[BrokenRule, ...] = ()


@dataclass(frozen=True)
class Board:
    """A board for which times are estimated."""

    # The board's short name: "rpi3", "rpi4", "rpi5" or "host".
    name: str
    # The text that describes the board to people.
    description: str
    # The instruction set that litebnn selects on the board.
    isa: str
    # A description of how the costs were measured, with their known error.
    source: str
    # The largest relative error of a network's estimate; None if no board was available.
    error: float | None


@dataclass(frozen=True)
class Inspection:
    """A model: its ops in order of execution, its tensors, and totals."""

    # The name of the model's file, or "model".
    name: str
    file_bytes: int
    # The ops of the main subgraph, in order of execution.
    ops: tuple[OpRow, ...]
    # The main subgraph's tensors, by index.
    tensors: tuple[TensorRow, ...]
    # Indices of the model's inputs and outputs among the tensors.
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    # The number of ops outside of the main subgraph. Nothing is estimated for these ops.
    other_ops: int = 0
    # The boards for which times are estimated, in order.
    boards: tuple[Board, ...] = ()

    @property
    def macs(self) -> Macs:
        """Multiply-accumulates of one inference, by precision."""
        return sum_of_macs(row.macs for row in self.ops)

    @property
    def weight_bytes(self) -> int:
        """The total size in bytes of the constants that ops read. Each constant is counted once."""
        read = {index for row in self.ops for index in row.constants}
        return sum(self.tensors[index].bytes for index in read)

    @property
    def activation_bytes(self) -> int:
        """The total size in bytes of the activations that ops read and write."""
        return sum(row.activation_bytes for row in self.ops)

    @property
    def seconds(self) -> dict[str, float]:
        """The estimated time of one inference on each board, without ops that the cost table lacks."""
        return {board.name: sum(row.seconds.get(board.name, 0.0) for row in self.ops) for board in self.boards}

    @property
    def ops_without_seconds(self) -> dict[str, int]:
        """For each board, the number of ops that `seconds` leaves out because the board's costs have no row for
        their kind.
        """
        return {board.name: sum(board.name not in row.seconds for row in self.ops) for board in self.boards}

    @property
    def broken_rules(self) -> tuple[BrokenRule, ...]:
        """The rules for fast models that ops break, sorted by their cost on the first board, highest first."""
        found = [rule for row in self.ops for rule in row.broken_rules]
        return tuple(sorted(found, key=_worst_first))

    def to_dict(self) -> dict[str, Any]:
        """The inspection as plain numbers, strings, lists and dicts, for JSON."""
        rows = [{**asdict(row), "macs": row.macs._asdict()} for row in self.ops]
        return {
            **asdict(self),
            "ops": rows,
            "totals": {
                "macs": self.macs._asdict(),
                "weight_bytes": self.weight_bytes,
                "activation_bytes": self.activation_bytes,
                "seconds": self.seconds,
                "ops_without_seconds": self.ops_without_seconds,
            },
            "broken_rules": [asdict(rule) for rule in self.broken_rules],
        }


def inspect_model(model: bytes | str | os.PathLike[str], *, name: str = "") -> Inspection:
    """Lists the ops of a `.tflite` model, converted or not, with their costs; the model is not run.

    Args:
        model: the bytes of a `.tflite` file, or its path.
        name: the model's name in the inspection; by default the file's name.
    Raises:
        ConversionError: the model cannot be read; the message says what was found.
        OSError: the file cannot be read.

    Example:
        >>> inspection = inspect_model("binary.tflite")  # doctest: +SKIP
        >>> inspection.macs  # doctest: +SKIP
        Macs(binary=2434112, int8=0, float=194688)
    """
    if isinstance(model, bytes | bytearray | memoryview):
        name, content = name or "model", bytes(model)
    else:
        name, content = name or Path(model).name, read_file(model)
    with boundary():
        return _inspect(read_model(content), name, len(content))


def _inspect(model: Model, name: str, file_bytes: int) -> Inspection:
    if not model.graphs:
        raise ConversionError("the model has no subgraph")
    graph = model.graphs[0]
    for each in model.graphs:
        check_custom_ops(each)
    tensors = list(graph.all_tensors())
    index_of = {tensor: index for index, tensor in enumerate(tensors)}
    channels = channels_of_bits(graph)
    additions = op_properties.fused_additions(graph)
    node = {op: index for index, op in enumerate(graph.ops)}
    delegated = claimed_ops(graph)
    free = joined_in_place(graph, delegated) | additions.keys()
    rows = tuple(
        _priced(_op_row(op, node, index_of, channels, additions), graph, op, _seconds(op, delegated, free, additions))
        for op in graph.ops
    )
    return Inspection(
        name=name,
        file_bytes=file_bytes,
        ops=rows,
        tensors=tuple(_tensor_row(tensor, index, channels) for tensor, index in index_of.items()),
        inputs=tuple(index_of[tensor] for tensor in graph.inputs),
        outputs=tuple(index_of[tensor] for tensor in graph.outputs),
        other_ops=sum(len(other.ops) for other in model.graphs[1:]),
        boards=tuple(Board(row.board, row.description, row.isa, row.source, row.error) for row in boards()),
    )


def _seconds(op: Op, delegated: Collection[Op], free: Collection[Op], additions: Mapping[Op, Op]) -> dict[str, float]:
    """The estimated time of an op on each board. It is 0 if the op is fused into another op, or is a concatenation that
    needs no copy.
    """
    if op in free:
        return dict.fromkeys((row.board for row in boards()), 0.0)
    fused = next((addition for addition, conv in additions.items() if conv is op), None)
    times = ((row.board, estimate(op, row, delegated, fused is not None)) for row in boards())
    return {board: time for board, time in times if time is not None}


def _priced(row: OpRow, graph: Graph, op: Op, seconds: Mapping[str, float]) -> OpRow:
    """Adds the op's times to its row. Also adds the rules that the op breaks, if breaking them costs time."""
    broken = []
    for rule, finding in findings(graph, op):
        costs = {
            board.board: prices()[rule.name, board.isa].seconds(finding, seconds.get(board.board, 0.0), board)
            for board in boards()
            if (rule.name, board.isa) in prices()
        }
        if any(cost > WORTH_SAYING * seconds.get(board, 0.0) for board, cost in costs.items()):
            broken.append(BrokenRule(rule.name, row.index, row.name, finding.found, rule.fix, costs))
    return replace(row, seconds=seconds, broken_rules=tuple(sorted(broken, key=_worst_first)))


def _worst_first(rule: BrokenRule) -> float:
    return -next(iter(rule.seconds.values()), 0.0)


def _tensor_row(tensor: Tensor, index: int, channels: op_properties.Channels) -> TensorRow:
    return TensorRow(
        index=index,
        name=tensor.name,
        type=op_properties.type_of(tensor, channels),
        shape=tensor.shape,
        bytes=op_properties.bytes_of(tensor),
        constant=tensor.is_constant,
    )


def _op_row(
    op: Op,
    node: Mapping[Op, int],
    index_of: Mapping[Tensor, int],
    channels: op_properties.Channels,
    additions: Mapping[Op, Op],
) -> OpRow:
    read = [tensor for tensor in op.inputs if tensor is not None]
    constants = [tensor for tensor in read if tensor.is_constant]
    computed = [tensor for tensor in read if not tensor.is_constant]
    data = op_properties.data_of(op)
    return OpRow(
        index=node[op],
        name=op_properties.short_name(op.outputs[0].name) if op.outputs else op.name,
        op=op.name,
        inputs=tuple(index_of[tensor] for tensor in computed),
        constants=tuple(index_of[tensor] for tensor in constants),
        outputs=tuple(index_of[tensor] for tensor in op.outputs),
        input_shape=() if data is None else op_properties.shape_of(data, channels),
        output_shape=op_properties.shape_of(op.outputs[0], channels) if op.outputs else (),
        filter_shape=op_properties.filter_shape(op),
        precision=op_properties.precision_of(op, channels),
        output=op_properties.type_of(op.outputs[0], channels) if op.outputs else "",
        macs=macs_by_precision(op),
        weight_bytes=sum(op_properties.bytes_of(tensor) for tensor in dict.fromkeys(constants)),
        activation_bytes=sum(op_properties.bytes_of(tensor) for tensor in (*computed, *op.outputs)),
        fused=op_properties.fused_in(op, additions),
        fused_into=node[additions[op]] if op in additions else None,
    )
