"""Control dependencies are metadata of TensorFlow, `model_control_dependencies`. They make an op wait for other ops
whose outputs it does not read.

The metadata names ops by their indices. When a delegate is applied, runtimes look up these indices in their current
plan. If a rewrite or an earlier delegate has changed the indices, runtimes write out of bounds, or find no order and
skip the delegate.
"""

from __future__ import annotations

from collections.abc import Iterator

from litebnn.contract import CUSTOM_OPS
from litebnn.errors import ConversionError
from litebnn.graph.graph import Array, Model
from litebnn.graph.rewriting import CONTROL_DEPENDENCIES

_VERSION = 1
_MOST_BYTES = 5  # in the encoding of a 32-bit number, 7 bits in each byte


def check_control_dependencies(model: Model) -> None:
    """Refuses control dependencies of ops that do not exist, and dependencies on later ops.

    Raises:
        ConversionError: a dependency is invalid; the message names the ops.
    """
    for name, buffer in model.metadata:
        if name != CONTROL_DEPENDENCIES or buffer.data is None or not buffer.data.size:
            continue
        numbers = _numbers(buffer.data)
        try:
            _check(model, numbers)
        except StopIteration:
            raise _mistake("its numbers end too early") from None
        if next(numbers, None) is not None:
            raise _mistake("its numbers go on behind their end")


def _check(model: Model, numbers: Iterator[int]) -> None:
    if next(numbers) != _VERSION:
        raise _mistake(f"its numbers are not of version {_VERSION}")
    if (count := next(numbers)) != len(model.graphs):
        raise _mistake(f"its numbers are of {count:,} subgraphs, expected {len(model.graphs)}")
    is_for_delegate = any(op.name in CUSTOM_OPS for op in model.ops())
    for graph in model.graphs:
        for _ in range(next(numbers)):
            first, second = _signed(next(numbers)), _signed(next(numbers))
            waits = f"op {second:,} waits for op {first:,}"
            if is_for_delegate:
                raise _mistake(f"{waits}, expected none in a model with litebnn's ops")
            if not 0 <= first < second < len(graph.ops):
                raise _mistake(f"{waits}, expected one of {len(graph.ops)} ops and one before it")


def _mistake(what: str) -> ConversionError:
    return ConversionError(f'the metadata "{CONTROL_DEPENDENCIES}": {what}')


def _numbers(data: Array) -> Iterator[int]:
    """Decodes a sequence of Protobuf's varints."""
    value = places = 0
    for byte in data.tobytes():
        value |= (byte & 0x7F) << 7 * places
        places += 1
        if byte < 0x80:
            yield value
            value = places = 0
        elif places == _MOST_BYTES:
            raise _mistake(f"a number takes more than {_MOST_BYTES} bytes")


def _signed(number: int) -> int:
    """Decodes one of Protobuf's zigzag numbers: 0, -1, 1, -2, 2…"""
    return -(number + 1) // 2 if number % 2 else number // 2
