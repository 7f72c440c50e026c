"""Signs, in any form that exporters leave them in; `find.py` asks `steps.py` what a tensor is a function of."""

from litebnn.rewriting.signs.find import Sign, TwoValues, find_sign, find_two_values

__all__ = ["Sign", "TwoValues", "find_sign", "find_two_values"]
