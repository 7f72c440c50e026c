"""A .tflite model as a graph that is easy to rewrite.

Tensors, buffers and ops are compared by identity. Fields that no rewrite uses, such as sparsity and debug indices, are
kept in the attribute `carried`. Only the reader and the writer understand these fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from litebnn.contract import BITS_PER_WORD
from litebnn.errors import ConversionError
from litebnn.graph.questions import Answers, Question

if TYPE_CHECKING:
    from litebnn.graph.origin import Origin

Array: TypeAlias = npt.NDArray[Any]
_Answer = TypeVar("_Answer")

NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(name.lower())
    for name in (
        *("FLOAT32", "FLOAT16", "FLOAT64", "COMPLEX64", "COMPLEX128", "BOOL"),
        *("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
    )
}
# The number of bits of an element, for types that NumPy lacks.
_BITS = {"INT2": 2, "INT4": 4, "UINT4": 4, "FLOAT8_E4M3FN": 8, "FLOAT8_E5M2": 8, "BFLOAT16": 16}

# Limits on the number of elements that rewrites may compute from constants: a fixed number, plus a number for each byte
# of constants. Real networks need only a few elements for each byte of constants. A damaged file of 58 kB once asked
# for 4.8 GB and 39 s.
_WORK, _WORK_PER_BYTE = 1 << 24, 64


def bits_of_type(name: str) -> int:
    """Returns the number of bits of an element of a type; 0 for types whose elements have no fixed size."""
    return 8 * NUMPY_TYPES[name].itemsize if name in NUMPY_TYPES else _BITS.get(name, 0)


@dataclass(eq=False)
class Buffer:
    """The bytes of a tensor or of metadata.

    `data` is None for an empty buffer; the data of a `large` buffer is stored after the flatbuffer.
    """

    data: Array | None = None
    large: bool = False


@dataclass(frozen=True, eq=False)
class Quantization:
    """The quantization of a tensor: real value = scale · (level - zero point)."""

    scale: Array  # float32 [1], or [channels] along `axis`
    zero_point: Array  # int64 of the same shape
    axis: int = 0
    carried: Any = None


@dataclass(frozen=True, eq=False)
class QuantizationDetails:
    """The quantization of a tensor whose scales are another tensor of its graph."""

    # The numbers that the file stores for the quantization, by the names of the fields.
    options: Options
    # The tensors that contain scales and zero points, by the names of the fields; None for a tensor that is left out.
    tensors: dict[str, Tensor | None]
    # The axis of the tensor along which the quantization scales differ.
    axis: int = 0


@dataclass(eq=False)
class Tensor:
    """A tensor of a graph. `type` is TFLite's name of the element type, and `shape` has 1 for an unknown dimension.

    `shape_signature` has -1 for an unknown dimension, and is None if all dimensions are known. `origin` is the source
    of the tensor's values; None if that is unknown. A tensor has either `quantization` or `details`, or neither.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    buffer: Buffer = field(default_factory=Buffer)
    shape_signature: tuple[int, ...] | None = None
    quantization: Quantization | None = None
    details: QuantizationDetails | None = None
    is_variable: bool = False
    is_sparse: bool = False
    carried: Any = None
    origin: Origin | None = None

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape, with -1 for dimensions that are known only at run time."""
        return self.shape if self.shape_signature is None else self.shape_signature

    @property
    def shape_of_runs(self) -> tuple[int, ...]:
        """The shape that a run takes: -1 for any height, width or other size, and the file's batch size."""
        return *self.shape[:1], *self.dims[1:]

    @property
    def channels(self) -> int:
        """The size of the last axis; -1 if it is unknown."""
        return self.dims[-1] if self.dims else -1

    @property
    def is_constant(self) -> bool:
        return self.buffer.data is not None and self.buffer.data.size > 0

    @property
    def array(self) -> Array | None:
        """The value of a constant tensor as a read-only view; None for tensors that are not plain dense constants."""
        dtype = NUMPY_TYPES.get(self.type)
        if not self.is_constant or dtype is None or self.is_sparse or self.is_variable:
            return None
        assert self.buffer.data is not None
        array: Array = self.buffer.data.view(dtype).reshape(self.shape)
        return array

    @property
    def companions(self) -> list[Tensor]:
        """The tensors to which this tensor's quantization refers. They must stay in the graph with this tensor."""
        named = () if self.details is None else self.details.tensors.values()
        return [tensor for tensor in named if tensor is not None]

    @property
    def per_tensor_quantization(self) -> tuple[float, int] | None:
        """The pair (scale, zero point) if the tensor has exactly one of each, else None."""
        q = self.quantization
        if q is None or q.scale.size != 1 or not q.scale[0] > 0:
            return None
        return float(q.scale[0]), int(q.zero_point[0])


@dataclass(frozen=True)
class OpCode:
    """The operator: TFLite's name of a builtin, or "CUSTOM" with the custom name."""

    builtin: str
    custom: str = ""
    version: int = 1


class Options(SimpleNamespace):
    """The options of a builtin op by their names in the format; omitted options have the format's defaults.

    `table` is the format's name for the kind of options, and empty for an op without options.

    >>> Options("Pool2DOptions", stride_h=2).stride_h
    2
    """

    def __init__(self, table: str = "", **options: Any) -> None:
        super().__init__(table=table, **options)


@dataclass(eq=False)
class Op:
    """A node of the graph. An absent optional input is None."""

    code: OpCode
    inputs: list[Tensor | None]
    outputs: list[Tensor]
    options: Options = field(default_factory=Options)
    custom_options: bytes = b""
    intermediates: list[Tensor] | None = None
    carried: Any = None

    @property
    def name(self) -> str:
        """The name of a builtin op, or the custom operator's own name."""
        return self.code.custom if self.code.builtin == "CUSTOM" else self.code.builtin

    @property
    def output(self) -> Tensor:
        return self.outputs[0]

    def input(self, index: int) -> Tensor:
        """A required input of the op, by its index. Optional inputs come last and may be absent."""
        tensor = self.optional(index)
        assert tensor is not None
        return tensor

    def optional(self, index: int) -> Tensor | None:
        assert index >= 0
        return self.inputs[index] if index < len(self.inputs) else None


class Graph:
    """One subgraph: its tensors and, in order of execution, its ops."""

    def __init__(
        self,
        name: str,
        tensors: list[Tensor],
        inputs: list[Tensor],
        outputs: list[Tensor],
        ops: Iterable[Op],
        carried: Any = None,
    ) -> None:
        self.name = name
        self.tensors = tensors
        self.inputs = inputs
        self.outputs = outputs
        self.ops: list[Op] = []
        self.carried = carried
        # The tensors that signatures name as inputs or outputs. Rewrites must keep these tensors and their values.
        self.pinned: set[Tensor] = set()
        stored = {tensor.buffer for tensor in tensors if tensor.is_constant}
        self._work = _WORK + _WORK_PER_BYTE * sum(buffer.data.size for buffer in stored if buffer.data is not None)
        self._held: set[Op] = set()
        self._producer: dict[Tensor, Op] = {}
        self._consumers: dict[Tensor, list[Op]] = {}
        self._answers = Answers()
        for op in ops:
            self.insert(op)

    def holds(self, op: Op) -> bool:
        """True if the op is part of the graph."""
        return op in self._held

    def producer(self, tensor: Tensor | None, *names: str) -> Op | None:
        """The op that computes `tensor`; None if there is none. If names of ops are given, None for all other ops."""
        if tensor is None:
            return None
        self._answers.reads(tensor)
        op = self._producer.get(tensor)
        return op if not names or (op is not None and op.name in names) else None

    def ask(self, question: Question[_Answer], tensor: Tensor) -> _Answer:
        """The answer to a question about a tensor. The graph computes the answer again only after an edit that may
        change it."""
        return self._answers.ask(self, question, tensor)

    def reconsider(self, op: Op) -> None:
        """Drops the stored answers to questions about the graph's tensors that depend on an op. It is called after the
        op's options or the fields of its tensors have changed.
        """
        self._answers.drop(op.outputs)

    def consumers(self, tensor: Tensor) -> list[Op]:
        """The ops that read `tensor`; an op is listed once for each input that is this tensor."""
        return list(self._consumers.get(tensor, ()))

    def is_output(self, tensor: Tensor) -> bool:
        """True if the tensor is an output of the graph, so that it is visible outside."""
        return tensor in self.outputs or tensor in self.inputs or tensor in self.pinned

    def is_read(self, tensor: Tensor) -> bool:
        """True if an op reads the tensor, or if it is visible outside of the graph."""
        return bool(self._consumers.get(tensor)) or self.is_output(tensor)

    def sole_consumer(self, tensor: Tensor) -> Op | None:
        """The only op that reads `tensor`; None if there are several, or if the tensor is an output of the graph."""
        consumers = self._consumers.get(tensor, [])
        return consumers[0] if len(consumers) == 1 and not self.is_output(tensor) else None

    def insert(self, op: Op, *, before: Op | None = None, after: Op | None = None) -> Op:
        """Adds an op, next to another op or at the end, with its new tensors."""
        neighbour = before or after
        position = self.ops.index(neighbour) + (neighbour is after) if neighbour else len(self.ops)
        self.ops.insert(position, op)
        self._held.add(op)
        for tensor in op.outputs:
            self._producer[tensor] = op
        for read in op.inputs:
            if read is not None:
                self._consumers.setdefault(read, []).append(op)
        self._answers.drop(op.outputs)
        return op

    def remove(self, op: Op) -> None:
        self.ops.remove(op)
        self._held.discard(op)
        for tensor in op.outputs:
            if self._producer.get(tensor) is op:
                del self._producer[tensor]
        for read in op.inputs:
            if read is not None:
                self._consumers[read].remove(op)
        self._answers.drop(op.outputs)

    def set_input(self, op: Op, index: int, tensor: Tensor | None) -> None:
        assert index >= 0
        old = op.inputs[index]
        if old is not None:
            self._consumers[old].remove(op)
        op.inputs[index] = tensor
        if tensor is not None:
            self._consumers.setdefault(tensor, []).append(op)
        self._answers.drop(op.outputs)

    def set_output(self, op: Op, tensor: Tensor) -> None:
        """Replaces the first output of `op` by `tensor`."""
        old = op.outputs[0]
        self._producer.pop(old, None)
        op.outputs[0] = tensor
        self._producer[tensor] = op
        self._answers.drop((old, tensor))

    def replace(self, old: Op, new: Op) -> Op:
        """Replaces the op `old` by the op `new`, which computes the same outputs."""
        self.insert(new, before=old)
        self.remove(old)
        for tensor in new.outputs:
            self._producer[tensor] = new
        self._answers.drop(new.outputs)
        return new

    def redirect(self, old: Tensor, new: Tensor) -> None:
        """Makes every op that reads the tensor `old` read the tensor `new` instead."""
        for op in self.consumers(old):
            for index, tensor in enumerate(op.inputs):
                if tensor is old:
                    self.set_input(op, index, new)

    def bypass(self, op: Op, source: Tensor) -> bool:
        """Removes an op whose output has the same values as `source`. Returns False if the output is visible outside
        the graph.
        """
        if self.is_output(op.output):
            return False
        self.redirect(op.output, source)
        self.remove(op)
        return True

    def spend(self, elements: int) -> None:
        """Counts elements that a rewrite will compute from constants.

        Raises:
            ConversionError: the total exceeds the limit for the file's constants.
        """
        self._work -= elements
        if self._work < 0:
            raise ConversionError("far more is computed from the model's constants than they are large")

    def all_tensors(self) -> Iterable[Tensor]:
        """All tensors of the graph, each once. They are the tensors that the graph lists, those that ops read or write,
        the outputs, and those that hold other tensors' scales.
        """
        of_ops = (tensor for op in self.ops for tensor in (*op.inputs, *op.outputs))
        found = dict.fromkeys(tensor for tensor in (*self.tensors, *of_ops, *self.outputs) if tensor is not None)
        return dict.fromkeys((*found, *(companion for tensor in found for companion in tensor.companions)))


@dataclass(eq=False)
class Signature:
    key: str
    graph: Graph
    inputs: list[tuple[str, Tensor]]
    outputs: list[tuple[str, Tensor]]


@dataclass(eq=False)
class Model:
    graphs: list[Graph]
    buffers: list[Buffer]
    codes: list[OpCode]
    metadata: list[tuple[str, Buffer]]
    metadata_buffers: list[Buffer] | None
    signatures: list[Signature] | None
    version: int
    description: str | None
    carried: Any = None

    def ops(self) -> Iterator[Op]:
        for graph in self.graphs:
            yield from graph.ops

    @property
    def input_names(self) -> list[str]:
        """The names of the first subgraph's inputs in the signature; the tensors' own names if the model has no
        signature."""
        keys = {t: key for signature in reversed(self.signatures or ()) for key, t in signature.inputs}
        return [keys.get(tensor, tensor.name) for tensor in self.graphs[0].inputs]


def packed_words(channels: int) -> int:
    """The number of int32 words that hold the signs of `channels` channels."""
    return -(-channels // BITS_PER_WORD)
