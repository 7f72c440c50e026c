from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebnn.benchmark.stopwatch import Stopwatch, WatchedNode, middle_means, times_of_ops
from litebnn.runtime import find_runtime, load_delegate
from tests.needs import need

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"
TIMES = st.floats(0, 1e3, allow_subnormal=False)
with_library = pytest.mark.usefixtures("library")


def watched(runtime: str, model: Path, **flags: bool):
    stopwatch = Stopwatch()
    interpreter = find_runtime(runtime).Interpreter(
        str(model), experimental_delegates=[load_delegate(1, runtime=runtime), stopwatch], **flags
    )
    interpreter.allocate_tensors()
    stopwatch.start()
    return interpreter, stopwatch


@with_library
@pytest.mark.parametrize("package", ["ai-edge-litert", "tflite-runtime"])
def test_nodes_are_timed_in_any_runtime(package: str) -> None:
    need(package)
    interpreter, stopwatch = watched(package, GOLDEN / "residual.lce.tflite")
    assert stopwatch.seconds() == [0.0]
    interpreter.invoke()
    [seconds] = stopwatch.seconds()
    assert 0 < seconds < 1
    assert stopwatch.nodes == [WatchedNode((0, 1, 2, 3, 4, 5), "LitebnnDelegate")]


@with_library
def test_what_other_delegates_and_the_runtime_run_is_watched_too() -> None:
    model = GOLDEN.parents[1] / "examples" / "label_image" / "digits.tflite"
    interpreter, stopwatch = watched("ai-edge-litert", model, experimental_disable_delegate_node_fusion=True)
    interpreter.invoke()
    assert sorted(op for node in stopwatch.nodes for op in node.ops) == list(range(len(stopwatch.nodes)))
    assert {node.kind for node in stopwatch.nodes} == {"", "LitebnnDelegate", "TfLiteXNNPackDelegate"}


@with_library
def test_what_a_run_takes_beside_its_nodes_is_what_nothing_else_took() -> None:
    interpreter, stopwatch = watched("ai-edge-litert", GOLDEN / "residual.lce.tflite")
    interpreter.invoke()
    nodes = sum(stopwatch.seconds())
    assert 9.9 < stopwatch.seconds_between(nodes + 10.0) <= 10.0
    assert stopwatch.seconds_between(nodes) == 0.0


def test_a_stopwatch_needs_an_interpreter() -> None:
    with pytest.raises(RuntimeError, match="given to no interpreter"):
        Stopwatch().start()


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
