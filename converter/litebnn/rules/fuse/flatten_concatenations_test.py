import pytest

from litebnn.rules.build.ops import MOST_PARTS
from litebnn.rules.fuse.flatten_concatenations import flatten_concatenations
from tests.support.float_models import FloatModel, assert_same_values, rewritten


@pytest.mark.parametrize(("axis", "parts"), [(3, 3), (-1, 3), (2, 2)])
def test_parts_of_parts_along_the_channels_are_parts(axis: int, parts: int) -> None:
    model = FloatModel()
    a, b, c = model.input(1, 2, 3, 4), model.input(1, 2, 3, 5), model.input(1, 2, 6 if axis == 2 else 3, 9)
    inner = model.op("CONCATENATION", [a, b], (1, 2, 3, 9), axis=3, fused_activation_function=0)
    if axis == 2:
        dims, joined = (1, 2, 9, 9), [inner, c]
    else:
        dims, joined = (1, 2, 3, 18), [c, inner]
    source = model.finish(model.op("CONCATENATION", joined, dims, axis=axis, fused_activation_function=0))
    result = rewritten(source, flatten_concatenations)
    assert len(result.graphs[0].ops[-1].inputs) == parts
    assert_same_values(source, result)


def test_an_activation_between_stays() -> None:
    model = FloatModel()
    a, b = model.input(1, 2, 3, 4), model.input(1, 2, 3, 5)
    inner = model.op("CONCATENATION", [a, b], (1, 2, 3, 9), axis=3, fused_activation_function=1)
    outer = model.op("CONCATENATION", [a, inner], (1, 2, 3, 13), axis=3, fused_activation_function=0)
    result = rewritten(model.finish(outer), flatten_concatenations)
    assert len(result.graphs[0].ops[-1].inputs) == 2


def test_a_damaged_file_is_not_made_larger_than_it_is() -> None:
    model = FloatModel()
    x = model.input(1, 2, 3, 4)
    for _ in range(12):
        x = model.op("CONCATENATION", [x, x], (1, 2, 3, 2 * x.channels), axis=3, fused_activation_function=0)
    result = rewritten(model.finish(x), *[flatten_concatenations] * 12)
    assert max(len(op.inputs) for op in result.ops()) <= MOST_PARTS
