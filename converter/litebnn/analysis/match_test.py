import numpy as np
import pytest

from litebnn.analysis.match import are_equal
from litebnn.graph import Tensor, constant


def of(*values: float, rank: int = 1) -> Tensor:
    return constant("c", np.asarray(values, np.float32).reshape(*[1] * (rank - 1), -1))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (of(2), of(2, 2, rank=4), True),
        (of(1, 2), of(1, 2, rank=4), True),
        (of(1, 2), of(2, 1), False),
        (of(1, 2), constant("c", np.float32([[1], [2]])), False),
        (of(1, 2), of(1), False),
        (of(1, 2), None, False),
        (None, None, True),
        (Tensor("x", "FLOAT32", (2,)), of(1, 2), False),
    ],
)
def test_constants_are_equal_that_are_broadcast_to_the_same(
    left: Tensor | None, right: Tensor | None, expected: bool
) -> None:
    assert are_equal(left, right) is expected
    assert are_equal(right, left) is expected
