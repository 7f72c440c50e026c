"""The fixed-point arithmetic of TensorFlow Lite's int8 kernels: how integers represent real factors, and the
exponential function of the library gemmlowp."""

from __future__ import annotations

import math

import numpy as np

from litebnn.graph import Array

_LOWEST, _HIGHEST = -(1 << 31), (1 << 31) - 1
_SOFTMAX_INTEGER_BITS = 5


def quantized_multiplier(factor: float) -> tuple[int, int]:
    """The pair (multiplier, shift) with factor = multiplier * 2^(shift - 31), as `QuantizeMultiplier` rounds it.

    >>> quantized_multiplier(0.75)
    (1610612736, 0)
    """
    if factor == 0.0:
        return 0, 0
    fraction, shift = math.frexp(factor)
    multiplier = _round_half_away(fraction * (1 << 31))
    if multiplier == 1 << 31:
        multiplier, shift = multiplier // 2, shift + 1
    if shift < -31:
        return 0, 0
    return (multiplier, shift) if shift <= 30 else (_HIGHEST, 30)


def _round_half_away(value: float) -> int:
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def rounded(value: float) -> int:
    """Rounds like `TfLiteRound` on float32: halves away from zero."""
    return _round_half_away(float(np.float32(value)))


def softmax_exponents(scale: float, beta: float) -> Array:
    """Makes the table int32 [256] for softmax. For each distance d of a value from the largest value, it has
    exp(-d * scale * beta) as a fraction of 2^31.
    """
    factor = min(beta * scale * (1 << (31 - _SOFTMAX_INTEGER_BITS)), (1 << 31) - 1.0)
    multiplier, shift = quantized_multiplier(factor)
    limit = math.floor(((1 << _SOFTMAX_INTEGER_BITS) - 1) * (1 << (31 - _SOFTMAX_INTEGER_BITS)) / (1 << max(shift, 0)))
    return np.array(
        [
            _exp_on_negative_values(_high_product(_wrapped(-distance << max(shift, 0)), multiplier))
            if distance <= limit
            else 0
            for distance in range(256)
        ],
        np.int32,
    )


def _wrapped(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _saturated(value: int) -> int:
    return min(max(value, _LOWEST), _HIGHEST)


def _high_product(a: int, b: int) -> int:
    if a == b == _LOWEST:
        return _HIGHEST
    product = a * b
    nudged = product + ((1 << 30) if product >= 0 else 1 - (1 << 30))
    return abs(nudged) // (1 << 31) * (1 if nudged >= 0 else -1)


def _divided_by_power(a: int, exponent: int) -> int:
    mask = (1 << exponent) - 1
    return (a >> exponent) + int((a & mask) > (mask >> 1) + int(a < 0))


def scaled_twice(a: int, multiplier: int, shift: int) -> int:
    """Computes a * multiplier * 2^(shift - 31), rounded as `MultiplyByQuantizedMultiplier` rounds."""
    return _divided_by_power(_high_product(_wrapped(a << max(shift, 0)), multiplier), max(-shift, 0))


# The values exp(-2^k) as fractions of 2^31. The first one is for k = -2, and k increases by 1.
_POWERS_OF_E = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)


def _exp_on_negative_values(a: int) -> int:
    """Computes exp of a negative number with 5 integer bits, as a fraction of 2^31. It is gemmlowp's
    `exp_on_negative_values`."""
    if a == 0:
        return _HIGHEST
    fractional_bits = 31 - _SOFTMAX_INTEGER_BITS
    quarter = 1 << (fractional_bits - 2)
    below_quarter = (a & (quarter - 1)) - quarter
    result = _exp_below_quarter(_saturated(below_quarter << _SOFTMAX_INTEGER_BITS))
    rest = below_quarter - a
    for exponent, power in enumerate(_POWERS_OF_E, -2):
        if rest & (1 << (fractional_bits + exponent)):
            result = _high_product(result, power)
    return result


def _exp_below_quarter(a: int) -> int:
    """Computes exp of a fraction between -1/4 and 0, by the first four terms of the series around -1/8."""
    constant, third = 1895147668, 715827883
    x = a + (1 << 28)
    squared = _high_product(x, x)
    cubed = _high_product(squared, x)
    fourth = _divided_by_power(_high_product(squared, squared), 2)
    terms = _divided_by_power(_high_product(fourth + cubed, third) + squared, 1)
    return _saturated(constant + _high_product(constant, x + terms))
