import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebnn.benchmark.op_times import middle_means, times_of_ops
from litebnn.benchmark.stopwatch import WatchedNode

TIMES = st.floats(0, 1e3, allow_subnormal=False)


def test_the_middle_runs_count() -> None:
    assert middle_means([[5.0, 5.0], [1.0, 2.0], [0.0, 0.1]]) == [1.0, 2.0]
    assert middle_means([[1.0], [3.0]]) == [2.0]
    assert middle_means([[7.0, 8.0]]) == [7.0, 8.0]


def test_a_node_is_shared_by_what_its_ops_take_alone() -> None:
    nodes = {WatchedNode((0, 1), "ours"): 8.0, WatchedNode((2,), ""): 1.0}
    alone = {WatchedNode((0,), "ours"): 9.0, WatchedNode((1,), "ours"): 3.0, WatchedNode((2,), ""): 5.0}
    assert times_of_ops(nodes, alone) == {(0,): 6.0, (1,): 2.0, (2,): 1.0}


def test_ops_that_are_not_run_alone_have_one_time() -> None:
    nodes = {WatchedNode((0, 1), "ours"): 8.0, WatchedNode((2,), ""): 1.0}
    assert times_of_ops(nodes, {}) == {(0, 1): 8.0, (2,): 1.0}
    assert times_of_ops(nodes, {WatchedNode((0,), "ours"): 2.0}) == {(0, 1): 8.0, (2,): 1.0}


@given(st.lists(st.lists(TIMES, min_size=1, max_size=4), min_size=1, max_size=5))
def test_the_sum_stays(sizes: list[list[float]]) -> None:
    nodes, alone, place = {}, {}, 0
    for times in sizes:
        ops = tuple(range(place, place + len(times)))
        nodes[WatchedNode(ops, "")] = float(len(ops))
        alone |= {WatchedNode((op,), ""): time for op, time in zip(ops, times, strict=True)}
        place += len(times)
    found = times_of_ops(nodes, alone)
    assert sum(found.values()) == pytest.approx(place)
    assert [op for ops in sorted(found) for op in ops] == list(range(place))
