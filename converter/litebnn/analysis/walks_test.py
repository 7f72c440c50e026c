import pytest

from litebnn.analysis.walks import MOST_OPS, ops_upstream
from tests.support.float_models import FloatModel


def test_each_op_comes_after_those_that_it_reads() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    left, right = model.elementwise("NEG", x), model.elementwise("ABS", x)
    first = model.elementwise("ADD", left, right)
    model.elementwise("EXP", left)
    last = model.elementwise("MUL", first, left)
    found = ops_upstream(model.graph, last, lambda op: op.inputs)
    assert found is not None
    names = [op.name for op in found]
    assert sorted(names) == ["ABS", "ADD", "MUL", "NEG"]
    assert names[2:] == ["ADD", "MUL"]
    assert ops_upstream(model.graph, last, lambda op: op.inputs if op.name == "MUL" else ()) != found
    assert ops_upstream(model.graph, x, lambda op: op.inputs) == []


@pytest.mark.parametrize("count", [MOST_OPS, MOST_OPS + 1])
def test_a_walk_ends_at_the_bound(count: int) -> None:
    model = FloatModel()
    x = model.input(1, 4)
    for _ in range(count):
        x = model.elementwise("MUL", x, x)
    found = ops_upstream(model.graph, x, lambda op: op.inputs)
    assert (found is None) == (count > MOST_OPS)
    assert found is None or [op.output for op in found] == [op.output for op in model.graph.ops]
