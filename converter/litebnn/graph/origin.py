"""Origins of tensors: the source model's tensor from which a tensor's values come, and the transformations.

A rule records the origin of a tensor that it makes. The file stores the origins, and comparisons of two models read
them. A tensor without a record has the values of the tensor of the same name in the source model, if there is one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from litebnn.graph.graph import Array, Buffer, Model, Tensor, packed_words

METADATA = "litebnn.origins"


@dataclass(frozen=True)
class Transposed:
    """A permutation of a tensor's axes."""

    order: tuple[int, ...]

    def done(self, values: Array) -> Array:
        return values.transpose(self.order)

    def undone(self, values: Array) -> Array:
        return values.transpose(np.argsort(self.order))


@dataclass(frozen=True)
class Reshaped:
    """A reshape that keeps the elements in order; a dimension of -1 is known only at run time."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    def done(self, values: Array) -> Array:
        return values.reshape(self.after)

    def undone(self, values: Array) -> Array:
        return values.reshape(self.before)


@dataclass(frozen=True)
class Negated:
    """Negates some channels. The text `channels` has one letter for each channel: "1" if the channel is negated, else
    "0". A text of a single letter applies to all channels.
    """

    channels: str

    def done(self, values: Array) -> Array:
        flips = np.array([channel == "1" for channel in self.channels])
        return np.asarray(values ^ flips)

    undone = done


@dataclass(frozen=True)
class Counted:
    """Replaces activation levels by several signs, which are concatenated along the channels. A level is middle + Σ
    scales[j] · sign[j].
    """

    middle: float
    scales: tuple[float, ...]
    # One bool for each sign that replaces an activation level. It is true if the sign is +1 at and above its threshold,
    # and false if the sign is +1 below its threshold.
    rising: tuple[bool, ...]

    def done(self, values: Array) -> Array:
        reached = np.arange(len(self.scales)) < np.arange(len(self.scales) + 1)[:, None]
        negative = reached != np.array(self.rising)  # [levels, signs]
        levels = self.middle + np.where(negative, -1, 1) @ np.array(self.scales)
        nearest = negative[np.abs(values[..., None] - levels).argmin(axis=-1)]
        return np.concatenate(np.moveaxis(nearest, -1, 0), axis=-1)

    def undone(self, values: Array) -> Array:
        parts = np.split(np.where(values, -1.0, 1.0), len(self.scales), axis=-1)
        return np.asarray(self.middle + sum(scale * part for scale, part in zip(self.scales, parts, strict=True)))


Move: TypeAlias = Transposed | Reshaped | Negated | Counted


@dataclass(frozen=True)
class Origin:
    """The tensor of the source model from which a tensor's values come, and the transformations applied to them."""

    # The name of the source tensor: the tensor of the source model from which this tensor's values come.
    source: str
    # The transformations that were applied to the source tensor's values, or to their signs, in order.
    moves: tuple[Move, ...] = ()
    # The number of packed signs along the last axis; 0 if the tensor contains numbers.
    signs: int = 0

    @property
    def counted(self) -> Counted | None:
        """The transformation that replaced activation levels by several signs; None if there was no such
        transformation.
        """
        return next((move for move in self.moves if isinstance(move, Counted)), None)

    @property
    def layout(self) -> Origin:
        """This origin with only its transposes and reshapes. They move the source model's tensor to the layout of this
        tensor, but leave its numbers unchanged.
        """
        return Origin(self.source, tuple(move for move in self.moves if isinstance(move, Transposed | Reshaped)))

    def made(self, values: Array) -> Array:
        """Computes the tensor's values from those of the source model's tensor: numbers, or True for each negative
        sign.
        """
        for move in self.moves:
            values = move.done(values)
        return values

    def restored(self, values: Array) -> Array:
        """Computes the values of the source model's tensor from the values of the tensor that has this origin. It is
        the inverse of the method `made`.
        """
        for move in reversed(self.moves):
            values = move.undone(values)
        return values


def then(tensor: Tensor, *moves: Move, signs: int | None = None) -> Origin | None:
    """Returns the origin of a tensor that is computed from `tensor` by the transformations `moves`.

    An origin is a tensor of the source model, and the transformations that were applied to its values. The result is
    None if the origin of `tensor` or a shape is unknown.

    Args:
        signs: the number of signs in the new tensor's last axis; by default that of `tensor`.
    """
    origin = tensor.origin
    if origin is None or any(isinstance(m, Reshaped) and max(map(_unknown, (m.before, m.after))) > 1 for m in moves):
        return None
    return replace(origin, moves=origin.moves + moves, signs=origin.signs if signs is None else signs)


def _unknown(dims: tuple[int, ...]) -> int:
    return sum(size < 0 for size in dims)


def begin_origins(model: Model) -> None:
    """Records for every tensor of the source model that it is its own origin, unless its name is not unique."""
    for graph in model.graphs:
        computed = [tensor for op in graph.ops for tensor in op.outputs]
        times = Counter(tensor.name for tensor in computed)
        for tensor in computed:
            tensor.origin = Origin(tensor.name) if times[tensor.name] == 1 else None


def write_origins(model: Model) -> None:
    """Stores the origins of the first subgraph's tensors in the model's metadata. An origin that only names the source
    model's tensor of the same name is left out.
    """
    graph = model.graphs[0]
    computed = {tensor for op in graph.ops for tensor in op.outputs}
    records = {
        place: _encoded(tensor.name, tensor.origin)
        for place, tensor in enumerate(graph.all_tensors())
        if tensor in computed and tensor.origin not in (None, Origin(tensor.name))
    }
    model.metadata = [(name, buffer) for name, buffer in model.metadata if name != METADATA]
    if records:
        content = json.dumps(records, separators=(",", ":")).encode()
        model.buffers.append(Buffer(np.frombuffer(content, np.uint8)))
        model.metadata.append((METADATA, model.buffers[-1]))


def read_origins(model: Model) -> None:
    """Reads the origins of the first subgraph's tensors from the metadata: how to compute each from the source model.

    Invalid records are ignored.
    """
    tensors = list(model.graphs[0].all_tensors())
    for name, buffer in model.metadata:
        if name != METADATA or buffer.data is None:
            continue
        try:
            for place, record in json.loads(bytes(buffer.data)).items():
                tensor = tensors[int(place)]
                tensor.origin = _decoded(tensor, record)
        except (ValueError, TypeError, AttributeError, ArithmeticError, LookupError, RecursionError):
            return


_KINDS: dict[str, Callable[..., Move]] = {
    "transposed": lambda order: Transposed(_ints(order)),
    "reshaped": lambda before, after: Reshaped(_ints(before), _ints(after)),
    "negated": lambda channels: Negated(str(channels)),
    "counted": lambda middle, scales, rising: Counted(
        float(middle), tuple(map(float, scales)), tuple(map(bool, rising))
    ),
}


def _ints(values: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def _encoded(name: str, origin: Origin | None) -> list[Any]:
    """The metadata's record for the tensor `name`.

    If the name of the source's tensor is the beginning of `name`, only the length of this beginning is stored.
    """
    assert origin is not None
    source = len(origin.source) if name.startswith(origin.source) else origin.source
    moves = [[type(move).__name__.lower(), *vars(move).values()] for move in origin.moves]
    return [source, origin.signs, *moves]


def _decoded(tensor: Tensor, record: Any) -> Origin:
    source, signs, *moves = record
    known = tuple(_KINDS[kind](*values) for kind, *values in moves)
    is_sound = tensor.type == "INT32" and packed_words(signs) == tensor.channels if signs else tensor.type != "INT32"
    if not is_sound or not all(len(move.scales) == len(move.rising) > 0 for move in known if isinstance(move, Counted)):
        raise ValueError("the record is none of this tensor")
    return Origin(tensor.name[:source] if isinstance(source, int) else str(source), known, int(signs))
