"""Signs, in any form that exporters leave them in; `find.py` asks `steps.py` what a tensor is a function of."""

from litebnn.rewriting.signs.find import (
    Sign,
    TwoLevels,
    TwoValues,
    find_constant,
    find_sign,
    find_two_levels,
    find_two_values,
)
from litebnn.rewriting.signs.moved import bits_of_signs, holds_signs
from litebnn.rewriting.signs.shifted import ShiftedSign, Way, find_way, shifted_sign, why_no_shifted_sign
from litebnn.rewriting.signs.thermometer import MovedLevels, Thermometer, find_levels, find_thermometer

__all__ = [
    "MovedLevels",
    "ShiftedSign",
    "Sign",
    "Thermometer",
    "TwoLevels",
    "TwoValues",
    "Way",
    "bits_of_signs",
    "find_constant",
    "find_levels",
    "find_sign",
    "find_thermometer",
    "find_two_levels",
    "find_two_values",
    "find_way",
    "holds_signs",
    "shifted_sign",
    "why_no_shifted_sign",
]
