"""An op with the shapes of its inputs, as the functions in `layers.py` and `moves.py` need it to compute the shape of
its output.
"""

from __future__ import annotations

from collections.abc import Mapping

from litebnn.graph.graph import Op, Tensor

Shape = tuple[int, ...]


class Call:
    """An op together with the shapes of its inputs."""

    def __init__(self, op: Op, shapes: Mapping[Tensor, Shape]) -> None:
        self.op, self._shapes = op, shapes

    def shape(self, index: int) -> Shape:
        """The shape of an input.

        Raises:
            LookupError: the op has no such input.
        """
        tensor = self._input(index)
        return self._shapes.get(tensor, tensor.shape)

    def numbers(self, index: int) -> list[int]:
        """The integers of a constant input.

        Raises:
            LookupError: the values are known only at run time.
        """
        array = self._input(index).array
        if array is None or array.dtype.kind not in "iu":
            raise LookupError
        return [int(number) for number in array.reshape(-1)]

    def axes(self, index: int, rank: int) -> list[int]:
        return [axis_of(axis, rank) for axis in self.numbers(index)]

    def option(self, key: str) -> int:
        return int(getattr(self.op.options, key))

    def _input(self, index: int) -> Tensor:
        tensor = self.op.optional(index)
        if tensor is None:
            raise LookupError
        return tensor


def axis_of(axis: int, rank: int) -> int:
    return range(rank)[axis]
