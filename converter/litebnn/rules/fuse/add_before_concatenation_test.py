import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebnn.graph import Tensor
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from litebnn.rules.fuse.add_before_concatenation import add_before_concatenation
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten

PASSES = (add_before_concatenation, remove_dead_ops)


def padded(model: FloatModel, x: Tensor, before: int, behind: int, value: float | None = None) -> Tensor:
    amounts = [(0, 0), (0, 0), (0, 0), (before, behind)]
    inputs = [x, model.const(amounts, np.int32), *([] if value is None else [model.const(value)])]
    return model.op("PAD" if value is None else "PADV2", inputs, (*x.dims[:-1], before + x.channels + behind))


@settings(max_examples=20)
@given(st.integers(0, 2), st.booleans(), st.sampled_from([None, 0.0]))
def test_only_the_part_that_something_is_added_to_changes(place: int, is_first: bool, zero: float | None) -> None:
    model = FloatModel()
    sizes = [4, 8, 5]
    whole = model.concatenated(*(model.input(1, 3, 2, size) for size in sizes))
    y = padded(model, model.input(1, 3, 2, sizes[place]), sum(sizes[:place]), sum(sizes[place + 1 :]), zero)
    source = model.finish(model.elementwise("ADD", *((y, whole) if is_first else (whole, y))))
    result = rewritten(source, *PASSES)
    assert op_names(result) == ["ADD", "CONCATENATION"]
    assert_same_values(source, result)


@pytest.mark.parametrize(
    ("size", "before", "value", "activation"),
    [(4, 2, None, "none"), (4, 4, 1.0, "none"), (4, 4, None, "relu"), (8, 0, None, "none")],
)
def test_what_reaches_other_parts_stays(size: int, before: int, value: float | None, activation: str) -> None:
    model = FloatModel()
    whole = model.concatenated(model.input(1, 3, 2, 4), model.input(1, 3, 2, 4))
    y = padded(model, model.input(1, 3, 2, size), before, 8 - before - size, value)
    source = model.finish(model.elementwise("ADD", whole, y, activation=activation))
    assert op_names(rewritten(source, *PASSES))[-1] == "ADD"
