"""Numbers with units, formatted for people."""

from __future__ import annotations

import math

_PREFIXES = {4: "T", 3: "G", 2: "M", 1: "k", 0: "", -1: "m", -2: "µ", -3: "n"}


def amount(value: float, unit: str = "") -> str:
    """A number with three digits and a metric prefix, from nano to giga.

    Args:
        value: the number, in the unit `unit`.
        unit: the unit, such as "s" or "B"; "" for counts.

    >>> amount(4_382_544, "B"), amount(0.01234, "s"), amount(115_605_504)
    ('4.38 MB', '12.3 ms', '116 M')
    """
    if not value or not math.isfinite(value):
        return f"{value:g} {unit}".rstrip()
    power = max(
        min(math.floor(math.log10(abs(value)) / 3 + 1e-9), max(_PREFIXES)), min(_PREFIXES) if unit == "s" else 0
    )
    if abs(float(f"{value / 1000**power:.3g}")) >= 1000 and power < max(_PREFIXES):
        power += 1
    scaled = float(f"{value / 1000**power:.3g}")
    digits = max(0, 2 - math.floor(math.log10(abs(scaled)))) if scaled else 0
    exact = power == 0 and float(value).is_integer()
    return f"{scaled:.{0 if exact else digits}f} {_PREFIXES[power]}{unit}".rstrip()


def share(part: float, whole: float) -> str:
    """A part of the whole in percent.

    >>> share(1, 3), share(0, 0)
    ('33.3 %', '0 %')
    """
    return f"{100 * part / whole:.1f} %" if part and whole else "0 %"


def shape_text(shape: tuple[int, ...]) -> str:
    """The dimensions of a shape, joined by ×.

    >>> shape_text((1, 56, 56, 64))
    '1×56×56×64'
    """
    return "×".join(map(str, shape))
