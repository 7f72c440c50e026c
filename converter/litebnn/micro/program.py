"""The data structures for a network as a list of calls of C functions. The list is made from the model's graph, and C
source is written from it.

The folder `lowering` makes the calls, `strips` and `arena` plan the memory of their tensors, and `emit` writes the
calls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from litebnn.contract import MOST_VALUES
from litebnn.errors import ConversionError
from litebnn.graph import Array, Graph, Op, Tensor

# The C type of each element type, the member of the arena's union that holds it, and its size in bytes. INT32 tensors
# are packed signs.
C_TYPES: Mapping[str, tuple[str, str, int]] = {
    "FLOAT32": ("float", "floats", 4),
    "INT8": ("int8_t", "bytes", 1),
    "BOOL": ("uint8_t", "booleans", 1),
    "INT32": ("uint32_t", "words", 4),
}

C_TYPES_OF_DATA: Mapping[np.dtype[Any], str] = {
    np.dtype(name): f"{name}_t" for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32")
} | {np.dtype(np.float32): "float"}

# The largest number of axes that the loops of `litebnn_builtin.h` support.
AXES = 6

Value: TypeAlias = "int | float | Data | Symbol | tuple[Value, ...] | Mapping[str, Value] | None"


@dataclass(frozen=True, eq=False)
class Data:
    """A constant array of the C program."""

    values: Array


@dataclass(frozen=True)
class Symbol:
    """An argument that is a name in the C sources, such as `&litebnn_pairs`."""

    text: str


@dataclass(frozen=True)
class Struct:
    """A constant structure of the C program, which a C function takes by its address."""

    type: str
    fields: Mapping[str, Value]


@dataclass(frozen=True)
class Literal:
    """A structure that a C function takes by value."""

    type: str
    fields: Mapping[str, Value]


@dataclass(frozen=True)
class Read:
    """An argument of a C function call: a pointer to an input, which is a constant of the model file or a computed
    tensor.
    """

    tensor: Tensor


@dataclass(frozen=True)
class Write:
    """A pointer to an output of a call."""

    tensor: Tensor


@dataclass(frozen=True)
class Scratch:
    """A pointer to scratch memory, which a call uses only while it runs."""

    words: int


@dataclass(frozen=True)
class Rows:
    """The two arguments `first_row` and `rows` of a call. They name the rows of the output that the call computes. A
    call computes all rows, or the rows of one iteration if ops run together row by row.
    """

    count: int


Argument: TypeAlias = "int | float | Data | Struct | Literal | Read | Write | Scratch | Rows"


@dataclass(frozen=True)
class Call:
    """A call of a C function in the exported network."""

    function: str
    arguments: tuple[Argument, ...]
    # The C files in `builtin/` that define the function. It is empty for binary kernels, whose files are found by the
    # function's name.
    sources: tuple[str, ...]
    # The amounts of work from which the instructions of the call are estimated. The keys are kinds of work, such
    # as "macs" and "outputs".
    work: Mapping[str, int] = field(default_factory=dict)
    images: int = 1  # the function is called once for each image of a batch


@dataclass(frozen=True)
class Lowered:
    """One op of the model as calls of C functions."""

    calls: tuple[Call, ...]  # C calls that compute the op, in order
    in_place: bool = False  # the output may be written to the memory of the first input
    exact: bool = True  # computes the same as TFLite's reference kernel, to the last bit


@dataclass
class Context:
    """The options and the graph on which the lowering of an op depends."""

    graph: Graph
    numbers: Mapping[Op, int]  # index of each op in the model, before ops are folded or removed
    kernels: str = "compact"  # a name of `KERNELS`
    target: str = "cortex-m4"  # a name of `TARGETS`
    # For each tensor of which only a few rows are stored, because ops run together row by row, the number of these
    # rows.
    heights: Mapping[Tensor, int] = field(default_factory=dict)

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """The shape of a tensor. If only a few of the tensor's rows are stored at a time, the height is the number of
        these rows.
        """
        rows = self.heights.get(tensor)
        return tensor.shape if rows is None else (tensor.shape[0], rows, *tensor.shape[2:])

    def count(self, tensor: Tensor) -> int:
        """The number of elements of a tensor."""
        return int(np.prod(self.shape(tensor), dtype=np.int64))


def refuse(message: str) -> ConversionError:
    """Makes the error for an op that cannot be lowered. The caller adds the op and its layer to the message."""
    return ConversionError(message)


def check_types(op: Op, *expected: str) -> None:
    """Refuses an op if the type of its first input or of an output is none of `expected`."""
    tensors = (*(tensor for tensor in op.inputs[:1] if tensor is not None), *op.outputs)
    for tensor in tensors:
        if tensor.type not in expected:
            raise refuse(f'"{tensor.name}" is {tensor.type}, expected {" or ".join(expected)}')


def constant_of(tensor: Tensor | None, what: str) -> Array:
    """The value of a constant tensor.

    Raises:
        ConversionError: the tensor is computed at run time.
    """
    value = None if tensor is None else tensor.array
    if value is None:
        raise refuse(f"its {what} is computed at run time, expected a constant")
    return value


def grid(tensor: Tensor) -> tuple[float, int]:
    """The scale and zero point of an int8 tensor.

    Raises:
        ConversionError: the tensor has no scale, or several.
    """
    parameters = tensor.per_tensor_quantization
    if parameters is None:
        raise refuse(f'"{tensor.name}" has no single scale and zero point')
    return parameters


@dataclass(frozen=True)
class Axis:
    """A window along one axis of an image: the sizes of input and output, the number of taps, stride and dilation."""

    size: int
    outputs: int
    taps: int
    stride: int
    dilation: int = 1

    @property
    def padding(self) -> int:
        """The amount of padding before the image. If the total is odd, TensorFlow puts the smaller half there."""
        return max(self.span - self.size, 0) // 2

    @property
    def span(self) -> int:
        """The number of input positions from the first tap of the first window to the last tap of the last window."""
        return (self.outputs - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    def checked(self) -> Axis:
        """Returns the axis with a stride of 1 if it has only one output, and a dilation of 1 if it has only one tap. A
        larger stride or dilation would have no effect.

        Raises:
            ConversionError: positions on the axis might overflow in C.
        """
        steps = self.stride if self.outputs > 1 else 1, self.dilation if self.taps > 1 else 1
        axis = Axis(self.size, self.outputs, self.taps, *steps)
        # The loops of the C kernels compute positions up to one step beyond the last window and its last tap. These
        # positions must fit an int32.
        reach = axis.span + axis.stride + axis.dilation
        if reach > MOST_VALUES:
            raise refuse(f"its windows reach over {reach} positions of an axis, expected at most {MOST_VALUES}")
        return axis


def strides_of(shape: Sequence[int]) -> list[int]:
    """The strides of a dense tensor, in elements.

    >>> strides_of((2, 3, 4))
    [12, 4, 1]
    """
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
