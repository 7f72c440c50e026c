"""Facts about tensors: their values (`values.py`), and the signs and sums of signs that these are."""

from litebnn.rewriting.signs.find import Sign, find_sign, find_two_levels, find_two_values
from litebnn.rewriting.signs.moved import bits_of_signs, holds_signs
from litebnn.rewriting.signs.sums import (
    FewValues,
    SignSum,
    few_values,
    find_levels,
    sum_of_two,
    two_values_of,
    why_no_sum,
)
from litebnn.rewriting.signs.values import values_of

__all__ = [
    "FewValues",
    "Sign",
    "SignSum",
    "bits_of_signs",
    "few_values",
    "find_levels",
    "find_sign",
    "find_two_levels",
    "find_two_values",
    "holds_signs",
    "sum_of_two",
    "two_values_of",
    "values_of",
    "why_no_sum",
]
