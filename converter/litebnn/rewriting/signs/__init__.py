"""Recognition of signs in any form: `find.py` looks for them in the step functions of `steps.py`."""

from litebnn.rewriting.signs.find import (
    Sign,
    TwoValues,
    find_constant,
    find_sign,
    find_two_levels,
    find_two_values,
)
from litebnn.rewriting.signs.moved import bits_of_signs, holds_signs
from litebnn.rewriting.signs.shifted import (
    PathToLayer,
    ShiftedSign,
    find_path_to_layer,
    shifted_sign,
    why_no_shifted_sign,
)
from litebnn.rewriting.signs.thermometer import MovedLevels, Thermometer, find_levels, find_thermometer

__all__ = [
    "MovedLevels",
    "PathToLayer",
    "ShiftedSign",
    "Sign",
    "Thermometer",
    "TwoValues",
    "bits_of_signs",
    "find_constant",
    "find_levels",
    "find_path_to_layer",
    "find_sign",
    "find_thermometer",
    "find_two_levels",
    "find_two_values",
    "holds_signs",
    "shifted_sign",
    "why_no_shifted_sign",
]
