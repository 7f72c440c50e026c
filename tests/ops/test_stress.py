"""Tests that many threads and many interpreters give the same bits, and free all memory."""

import gc
import threading
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.runtime.find import find_runtime

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
NAMES = ("bitpacked_chain", "grouped", "residual", "same_zero_relu_bn_s2")
THREADS = 8
pytestmark = [pytest.mark.deep, pytest.mark.usefixtures("library")]


def golden(name: str) -> tuple[bytes, np.ndarray, np.ndarray]:
    """A golden model, its input, and its expected output."""
    content, values = (GOLDEN / f"{name}.lce.tflite").read_bytes(), np.load(GOLDEN / f"{name}.npz")["input"]
    return content, values, litebnn.Interpreter(content).predict(values)


@pytest.mark.parametrize("runs", [20, pytest.param(2000, marks=pytest.mark.long)])
def test_eight_threads_share_a_delegate(runs: int) -> None:
    delegate = litebnn.load_delegate(2)
    models = [golden(name) for name in NAMES]
    module, wrong, together = find_runtime(), [], threading.Barrier(THREADS)

    def work(number: int) -> None:
        content, values, expected = models[number % len(models)]
        interpreter = module.Interpreter(model_content=content, experimental_delegates=[delegate])
        interpreter.allocate_tensors()
        source, result = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
        together.wait()
        for _ in range(runs):
            for row, wanted in zip(values, expected, strict=True):
                interpreter.set_tensor(source, row[None])
                interpreter.invoke()
                if not np.array_equal(interpreter.get_tensor(result)[0], wanted):
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def resident() -> int:
    """The resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.long)])
def test_interpreters_leave_no_memory(count: int) -> None:
    content, values, expected = golden("residual")

    def once() -> None:
        np.testing.assert_array_equal(litebnn.Interpreter(content, 2).predict(values[:1]), expected[:1])

    for _ in range(50):
        once()
    gc.collect()
    before = resident()
    for _ in range(count):
        once()
    gc.collect()
    assert resident() - before < 16 << 20
