"""Measures the figures of the table: the cost and the accuracy of one form of the network."""

import json
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import litebnn
from examples.mnist.data import Digits
from litebnn.analysis.quantization import quantized
from litebnn.report.macs import Macs, count_macs

TURNS = 30
RUNS_OF_A_TURN = 50
RUNS_OF_THE_PROGRAM = 2000


class Figures(NamedTuple):
    """The measured figures of one form of the network, which is a `.tflite` file."""

    accuracy: float  # share of the test images
    bytes: int
    memory: int  # peak bytes of benchmark_model's process
    macs: Macs
    python: float  # median seconds of one call of litebnn.Interpreter.predict with one image
    program: float  # median seconds of one run in benchmark_model


class Form:
    """A `.tflite` file, loaded into the runtime of this process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._interpreter = litebnn.Interpreter(path)
        self.seconds: list[float] = []

    def inputs(self, images: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Converts images [n, 28, 28, 1] to the file's input. With one channel, [n, 1, 28, 28] has the same memory
        layout.
        """
        shaped = images.reshape(len(images), *self._interpreter.input_shapes[0][1:])
        if self._interpreter.input_types[0] != np.int8:
            return shaped
        scale, zero_point = self._interpreter.input_quantization[0]
        return quantized(shaped, scale, zero_point)

    def scores(self, inputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The scores [n, 10] of the network for `inputs`."""
        found = self._interpreter.predict(inputs)
        assert isinstance(found, np.ndarray)
        return found

    def take_turn(self, image: npt.NDArray[Any]) -> None:
        inputs = self.inputs(image)
        for _ in range(RUNS_OF_A_TURN):
            start = time.perf_counter()
            self.scores(inputs)
            self.seconds.append(time.perf_counter() - start)


def measure(paths: list[Path], digits: Digits, benchmark_model: Path) -> list[Figures]:
    """Measures each file and returns its figures. In Python the files take turns, so that a change of the machine's
    speed affects all alike."""
    forms = [Form(path) for path in paths]
    found = [form.scores(form.inputs(digits.test_images)).argmax(axis=-1) for form in forms]
    accuracies = [float(np.mean(classes == digits.test_labels)) for classes in found]
    for _ in range(TURNS):
        for form in forms:
            form.take_turn(digits.test_images[:1])
    figures = []
    for form, accuracy in zip(forms, accuracies, strict=True):
        program = run_benchmark_model(benchmark_model, form.path)
        content = form.path.read_bytes()
        figures.append(
            Figures(
                accuracy,
                len(content),
                int(program["peak_memory_bytes"]),
                count_macs(content),
                statistics.median(form.seconds[RUNS_OF_A_TURN:]),
                program["latency_ms"]["median"] / 1e3,
            )
        )
    return figures


def run_benchmark_model(program: Path, model: Path) -> Any:
    """The results that the program `benchmark_model` writes for a model, on one thread.

    Raises:
        OSError: the program failed.
    """
    output = model.with_suffix(".json")
    flags = {"graph": model, "lcompute": 1, "use_xnnpack": 1, "num_runs": RUNS_OF_THE_PROGRAM, "output": output}
    command = [str(program), *(f"--{name}={value}" for name, value in flags.items())]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{program.name} cannot run {model.name}: {done.stderr.strip()}")
    return json.loads(output.read_text(encoding="utf-8"))
