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

__all__ = ["Sign", "TwoLevels", "TwoValues", "find_constant", "find_sign", "find_two_levels", "find_two_values"]
