"""A .tflite model as a graph that is easy to rewrite.

Tensors, buffers and ops are compared by identity. What a rewrite has no business with (sparsity, debug indices...)
rides along in `carried`, which only those who read and write files understand, and comes out as it went in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from litebnn.contract import BITS_PER_WORD
from litebnn.errors import ConversionError

Array: TypeAlias = npt.NDArray[Any]

NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(name.lower())
    for name in (
        *("FLOAT32", "FLOAT16", "FLOAT64", "COMPLEX64", "COMPLEX128", "BOOL"),
        *("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
    )
}

# How many elements rewrites may compute from constants, and how many more for each byte of these. Networks need a few
# for each byte; a damaged file of 58 kB has asked for 4.8 GB and 39 s.
_WORK, _WORK_PER_BYTE = 1 << 24, 64


@dataclass(eq=False)
class Buffer:
    """Bytes that tensors or metadata refer to.

    `data` is None where there are none; those of a `large` one are stored behind the flatbuffer.
    """

    data: Array | None = None
    large: bool = False


@dataclass(frozen=True, eq=False)
class Quantization:
    """The grid of a quantized tensor: real value = scale · (level - zero point).

    Attributes:
        scale: float32 [1], or [channels] along `axis`.
        zero_point: int64 of the same shape.
    """

    scale: Array
    zero_point: Array
    axis: int = 0
    carried: Any = None


@dataclass(eq=False)
class Tensor:
    """A tensor: `type` is TFLite's name of the element type, `shape` has 1 for a dimension that is not known.

    `shape_signature` has -1 for such a dimension and is None where all are known.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    buffer: Buffer = field(default_factory=Buffer)
    shape_signature: tuple[int, ...] | None = None
    quantization: Quantization | None = None
    is_variable: bool = False
    is_sparse: bool = False
    carried: Any = None

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape, with -1 for what is only known when the model runs."""
        return self.shape if self.shape_signature is None else self.shape_signature

    @property
    def channels(self) -> int:
        """The size of the last axis; -1 where it is not known."""
        return self.dims[-1] if self.dims else -1

    @property
    def is_constant(self) -> bool:
        return self.buffer.data is not None and self.buffer.data.size > 0

    @property
    def array(self) -> Array | None:
        """The constant's value, or None for what is not a plain dense constant (a view; do not write to it)."""
        dtype = NUMPY_TYPES.get(self.type)
        if not self.is_constant or dtype is None or self.is_sparse or self.is_variable:
            return None
        assert self.buffer.data is not None
        array: Array = self.buffer.data.view(dtype).reshape(self.shape)
        return array

    @property
    def per_tensor_quantization(self) -> tuple[float, int] | None:
        """(scale, zero point) where the tensor has exactly one of each."""
        q = self.quantization
        if q is None or q.scale.size != 1 or not q.scale[0] > 0:
            return None
        return float(q.scale[0]), int(q.zero_point[0])


@dataclass(frozen=True)
class OpCode:
    """Which operator: TFLite's name of a builtin, or "CUSTOM" with the custom name."""

    builtin: str
    custom: str = ""
    version: int = 1


class Options(SimpleNamespace):
    """A builtin op's options by their names in the format, where those that are left out have its defaults.

    `table` is the format's name for the kind of options, empty for an op that has none.

    >>> Options("Pool2DOptions", stride_h=2).stride_h
    2
    """

    def __init__(self, table: str = "", **options: Any) -> None:
        super().__init__(table=table, **options)


@dataclass(eq=False)
class Op:
    """A node. An absent optional input is None."""

    code: OpCode
    inputs: list[Tensor | None]
    outputs: list[Tensor]
    options: Options = field(default_factory=Options)
    custom_options: bytes = b""
    intermediates: list[Tensor] | None = None
    carried: Any = None

    @property
    def name(self) -> str:
        """The builtin's name, or the custom operator's own."""
        return self.code.custom if self.code.builtin == "CUSTOM" else self.code.builtin

    @property
    def output(self) -> Tensor:
        return self.outputs[0]

    def input(self, index: int) -> Tensor:
        """The input that must be there, counted from the first: what is optional comes last."""
        tensor = self.optional(index)
        assert tensor is not None
        return tensor

    def optional(self, index: int) -> Tensor | None:
        assert index >= 0
        return self.inputs[index] if index < len(self.inputs) else None


def constant(name: str, value: Array) -> Tensor:
    """A constant tensor of `value`'s type and shape."""
    type_name = next(name for name, dtype in NUMPY_TYPES.items() if value.dtype == dtype)
    data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return Tensor(name, type_name, tuple(value.shape), Buffer(data))


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
        # Signatures name these, so they may not be removed or given another meaning.
        self.pinned: set[Tensor] = set()
        stored = {tensor.buffer for tensor in tensors if tensor.is_constant}
        self._work = _WORK + _WORK_PER_BYTE * sum(buffer.data.size for buffer in stored if buffer.data is not None)
        self._held: set[Op] = set()
        self._producer: dict[Tensor, Op] = {}
        self._consumers: dict[Tensor, list[Op]] = {}
        for op in ops:
            self.insert(op)

    def holds(self, op: Op) -> bool:
        """Whether the op has not been removed."""
        return op in self._held

    def producer(self, tensor: Tensor | None) -> Op | None:
        return None if tensor is None else self._producer.get(tensor)

    def consumers(self, tensor: Tensor) -> list[Op]:
        """The ops that read `tensor`, an op once for each of its inputs that is this tensor."""
        return list(self._consumers.get(tensor, ()))

    def is_output(self, tensor: Tensor) -> bool:
        """Whether anybody outside the graph can see the tensor."""
        return tensor in self.outputs or tensor in self.inputs or tensor in self.pinned

    def sole_consumer(self, tensor: Tensor) -> Op | None:
        """The one op that reads `tensor`, where nothing else sees it."""
        consumers = self._consumers.get(tensor, [])
        return consumers[0] if len(consumers) == 1 and not self.is_output(tensor) else None

    def insert(self, op: Op, *, before: Op | None = None, after: Op | None = None) -> Op:
        """Adds an op, next to another or at the end; tensors that are new to the graph join it."""
        neighbour = before or after
        position = self.ops.index(neighbour) + (neighbour is after) if neighbour else len(self.ops)
        self.ops.insert(position, op)
        self._held.add(op)
        for tensor in op.outputs:
            self._producer[tensor] = op
        for read in op.inputs:
            if read is not None:
                self._consumers.setdefault(read, []).append(op)
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

    def set_input(self, op: Op, index: int, tensor: Tensor | None) -> None:
        assert index >= 0
        old = op.inputs[index]
        if old is not None:
            self._consumers[old].remove(op)
        op.inputs[index] = tensor
        if tensor is not None:
            self._consumers.setdefault(tensor, []).append(op)

    def set_output(self, op: Op, tensor: Tensor) -> None:
        """`op` computes `tensor` in place of its first output."""
        self._producer.pop(op.outputs[0], None)
        op.outputs[0] = tensor
        self._producer[tensor] = op

    def replace(self, old: Op, new: Op) -> Op:
        """Puts `new`, which computes the same outputs, in the place of `old`."""
        self.insert(new, before=old)
        self.remove(old)
        for tensor in new.outputs:
            self._producer[tensor] = new
        return new

    def redirect(self, old: Tensor, new: Tensor) -> None:
        """Every op that reads `old` reads `new` instead."""
        for op in self.consumers(old):
            for index, tensor in enumerate(op.inputs):
                if tensor is old:
                    self.set_input(op, index, new)

    def spend(self, elements: int) -> None:
        """Charges for elements that are about to be computed from constants.

        Raises:
            ConversionError: that is more in all than the constants in the file account for.
        """
        self._work -= elements
        if self._work < 0:
            raise ConversionError("far more is computed from the model's constants than they are large")

    def all_tensors(self) -> Iterable[Tensor]:
        """The listed tensors, then those that ops and outputs brought along."""
        of_ops = (tensor for op in self.ops for tensor in (*op.inputs, *op.outputs))
        return dict.fromkeys(tensor for tensor in (*self.tensors, *of_ops, *self.outputs) if tensor is not None)


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
        """What the first subgraph's inputs are called in the signature, or themselves where it does not name them."""
        keys = {t: key for signature in reversed(self.signatures or ()) for key, t in signature.inputs}
        return [keys.get(tensor, tensor.name) for tensor in self.graphs[0].inputs]


def packed_words(channels: int) -> int:
    """How many int32 words hold that many channels."""
    return -(-channels // BITS_PER_WORD)
