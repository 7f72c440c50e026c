from pathlib import Path

import pytest

from litebnn.benchmark.stopwatch import Stopwatch, WatchedNode
from litebnn.runtime import find_runtime, load_delegate
from tests.needs import need

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"
pytestmark = pytest.mark.usefixtures("library")


def watched(runtime: str, model: Path, **flags: bool):
    stopwatch = Stopwatch()
    interpreter = find_runtime(runtime).Interpreter(
        str(model), experimental_delegates=[load_delegate(1, runtime=runtime), stopwatch], **flags
    )
    interpreter.allocate_tensors()
    stopwatch.start()
    return interpreter, stopwatch


@pytest.mark.parametrize("package", ["ai-edge-litert", "tflite-runtime"])
def test_nodes_are_timed_in_any_runtime(package: str) -> None:
    need(package)
    interpreter, stopwatch = watched(package, GOLDEN / "residual.lce.tflite")
    assert stopwatch.seconds() == [0.0]
    interpreter.invoke()
    [seconds] = stopwatch.seconds()
    assert 0 < seconds < 1
    assert stopwatch.nodes == [WatchedNode((0, 1, 2, 3, 4, 5), "LitebnnDelegate")]


def test_what_other_delegates_and_the_runtime_run_is_watched_too() -> None:
    model = GOLDEN.parents[1] / "examples" / "label_image" / "digits.tflite"
    interpreter, stopwatch = watched("ai-edge-litert", model, experimental_disable_delegate_node_fusion=True)
    interpreter.invoke()
    assert sorted(op for node in stopwatch.nodes for op in node.ops) == list(range(len(stopwatch.nodes)))
    assert {node.kind for node in stopwatch.nodes} == {"", "LitebnnDelegate", "TfLiteXNNPackDelegate"}


def test_what_a_run_takes_beside_its_nodes_is_what_nothing_else_took() -> None:
    interpreter, stopwatch = watched("ai-edge-litert", GOLDEN / "residual.lce.tflite")
    interpreter.invoke()
    nodes = sum(stopwatch.seconds())
    assert 9.9 < stopwatch.seconds_between(nodes + 10.0) <= 10.0
    assert stopwatch.seconds_between(nodes) == 0.0


def test_a_stopwatch_needs_an_interpreter() -> None:
    with pytest.raises(RuntimeError, match="given to no interpreter"):
        Stopwatch().start()
