"""Makes names unique that may repeat."""

from __future__ import annotations

from collections.abc import Iterable


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
