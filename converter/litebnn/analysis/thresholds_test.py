import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebnn.analysis.affine import next_level
from litebnn.analysis.thresholds import Threshold, crossing, upstream
from litebnn.graph import Op
from tests.support.float_models import FloatModel

short = st.integers(-64, 64).map(lambda count: count / 8)


@given(short, st.sampled_from([-4.0, -0.5, 0.25, 1.0, 2.0]), short, st.booleans())
def test_numbers_that_no_op_rounds_turn_exactly(level: float, scale: float, shift: float, strict: bool) -> None:
    levels = np.full(1, level, np.float32)
    levels = next_level(levels, up=True) if strict else levels
    first, falls, _ = crossing(np.full(1, scale), np.full(1, shift), levels)
    for x in (level - shift) / scale + np.arange(-8, 9) / 64:
        reached = np.float32(np.float32(x * scale) + np.float32(shift)) >= levels[0]
        assert (np.float32(x) >= first[0]) != falls[0] if reached else (np.float32(x) >= first[0]) == falls[0]


def test_what_is_right_above_a_number_is_not_lost_in_a_larger_sum() -> None:
    above = next_level(np.full(1, 5.0, np.float32), up=True)
    first, _, _ = crossing(np.ones(1), np.full(1, -1000.0), above)
    assert first == next_level(np.full(1, 1005.0, np.float32), up=True)


def test_a_scale_of_zero_leaves_a_sign_that_never_changes() -> None:
    first, _, _ = crossing(np.zeros(2), np.array([1.0, -1.0]), np.zeros(1, np.float32))
    assert first.tolist() == [-np.inf, np.inf]


def inverse(kind: str, *constants: object, level: float = 0.0, **options: object) -> object:
    model = FloatModel()
    x = model.input(1, 4)
    model.op(kind, [x, *map(model.const, constants)], x.dims, **options)
    op: Op = model.graph.ops[-1]
    found = upstream(op, x, np.full(1, level, np.float32))
    return None if found is None else (found[0].tolist()[0], bool(np.any(found[1])))


@pytest.mark.parametrize(
    ("kind", "constants", "level", "expected"),
    [
        ("ADD", [2.0], 0.5, (-1.5, False)),
        ("NEG", [], 0.0, (np.finfo(np.float32).tiny, True)),
        ("MUL", [-0.5], 2.0, (float(np.nextafter(np.float32(-4), np.float32(0))), True)),
        ("PRELU", [[[0.25]]], -1.0, (-4.0, False)),
        ("PRELU", [[[0.25]]], 1.0, (1.0, False)),
        ("TANH", [], 0.0, (0.0, False)),
        ("TANH", [], 0.5, None),
        ("RELU", [], 0.5, (0.5, False)),
        ("RELU", [], 0.0, None),
        ("RELU6", [], 6.5, None),
        ("MAXIMUM", [0.5], 0.75, (0.75, False)),
        ("MAXIMUM", [0.5], 0.5, None),
        ("MAXIMUM", [[0.0, 0.25, 0.5, -1.0]], 0.75, (0.75, False)),
        ("MINIMUM", [[1.0, 0.5, 2.0, 1.0]], 0.75, None),
        ("RELU_0_TO_1", [], 0.5, (0.5, False)),
        ("RELU_0_TO_1", [], 0.0, None),
        ("ABS", [], 0.5, None),
    ],
)
def test_each_op_has_an_inverse_or_none(kind: str, constants: list[object], level: float, expected: object) -> None:
    assert inverse(kind, *constants, level=level) == expected


def test_equal_thresholds_have_equal_keys() -> None:
    zeros = Threshold(np.zeros(32, np.float32))
    assert zeros.key == Threshold().key
    assert zeros.is_plain
    assert zeros.key != Threshold(np.ones(1, np.float32)).key
    assert not Threshold(falls=np.ones(1, np.bool_)).is_plain
