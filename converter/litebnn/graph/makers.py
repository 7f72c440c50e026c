"""Makes new tensors and ops, and names for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from litebnn.graph.graph import NUMPY_TYPES, Array, Buffer, Op, OpCode, Options, Quantization, Tensor
from litebnn.graph.op_facts import FACTS


def constant(name: str, value: Array, quantization: Quantization | None = None) -> Tensor:
    """Makes a constant tensor of `value`'s type and shape."""
    type_name = next(name for name, dtype in NUMPY_TYPES.items() if value.dtype == dtype)
    data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return Tensor(name, type_name, tuple(value.shape), Buffer(data), quantization=quantization)


def derived(name: str, suffix: str) -> str:
    """A name for a new tensor: the first of the names that exporters join with semicolons, plus a suffix."""
    return name.split(";")[0] + suffix


def unique_names(names: Iterable[str]) -> list[str]:
    """The names in their order. A number is appended to a name that occurred before.

    >>> unique_names(["dense", "dense", "dense_1", "dense"])
    ['dense', 'dense_1', 'dense_1_1', 'dense_2']
    """
    unique: dict[str, None] = {}
    for name in names:
        count, candidate = 0, name
        while candidate in unique:
            count += 1
            candidate = f"{name}_{count}"
        unique[candidate] = None
    return list(unique)


def like(
    tensor: Tensor,
    name: str,
    *,
    type: str | None = None,
    dims: Sequence[int] | None = None,
    quantization: Quantization | None = None,
) -> Tensor:
    """A new tensor with the type, quantization and dimensions of `tensor`, except for those that are given. In `dims`,
    -1 is an unknown size. A new tensor of another type has no quantization unless one is given.
    """
    dims = tuple(tensor.dims if dims is None else dims)
    return Tensor(
        name=name,
        type=type or tensor.type,
        shape=tuple(1 if d < 0 else d for d in dims),
        buffer=Buffer(),
        shape_signature=dims if any(d < 0 for d in dims) else None,
        quantization=quantization or (tensor.quantization if type in (None, tensor.type) else None),
    )


def builtin_op(name: str, inputs: Iterable[Tensor | None], output: Tensor, *, version: int = 1, **options: Any) -> Op:
    """A new builtin op with the given options, and defaults for the others."""
    known = FACTS[name]
    return Op(
        OpCode(name, "", version), list(inputs), [output], Options(known.options, **{**known.defaults, **options})
    )
