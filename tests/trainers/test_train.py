"""Tests examples/train on images that the test makes, in each framework's environment."""

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.train.checkpoint import NAME as CHECKPOINT
from tests.needs import need
from tests.trainers.environments import FAST_COMPILATION, python_path, torch_python, without_keras_choice
from toolchains.targets import ROOT

pytestmark = pytest.mark.deep

IMAGES = 2000
FRAMEWORKS = ("torch", "keras")
TRAINING = ("--network=small", "--size=32", "--epochs=1", "--batch=25", "--learning-rate=0.003", "--crop=0.6",
            "--log-every=1", "--save-every=10", "--workers=1")  # fmt: skip


def python_of(framework: str) -> str:
    """The Python of the environment that has a framework. Its Keras runs on TensorFlow."""
    if framework == "keras":
        need("keras")
        return sys.executable
    return str(torch_python())


def environment(**variables: str) -> dict[str, str]:
    return without_keras_choice(PYTHONPATH=python_path(ROOT / "converter", ROOT)) | variables


def finish(process: subprocess.Popen[str]) -> str:
    """Waits for a process, which must succeed, and returns its output."""
    output, errors = process.communicate()
    assert process.returncode == 0, errors[-3000:]
    return output


def start(command: list[str], **variables: str) -> subprocess.Popen[str]:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=ROOT, env=environment(**variables), text=True, **pipes)


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("evaluate")
    from tests.trainers.shapes import write_shapes

    folder = tmp_path_factory.mktemp("shapes")
    write_shapes(folder, IMAGES)
    return folder


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("evaluate")
    from tests.trainers.shapes import write_shapes

    folder = tmp_path_factory.mktemp("few")
    write_shapes(folder, 64)
    return folder


def state_in(folder: Path) -> dict[str, Any]:
    with np.load(folder / CHECKPOINT) as archive:
        return dict(archive)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_it_learns_and_a_killed_training_continues_to_the_same_weights(
    framework: str, shapes: Path, tmp_path: Path
) -> None:
    program = [python_of(framework), "-m", "examples.train", f"--framework={framework}", f"--data={shapes}", *TRAINING]
    lines = finish(start([*program, f"--output={tmp_path / 'whole'}"])).splitlines()
    (accuracy,) = [line for line in lines if line.startswith("accuracy on")]
    assert accuracy.startswith("accuracy on 200 images: ")
    # A random choice would be right in 25 % of cases. CPUs round in different ways: on one the network reaches 77.5 %,
    # on others more than 80 %.
    assert float(accuracy.split()[-1].rstrip("%")) >= 60
    # Rounding flips hardly any sign, so the file and the framework's network predict the same classes.
    found = re.fullmatch(r"(\d+) of 200 images right before, (\d+) in the runtime; 200 have the same class", lines[-1])
    assert found is not None, lines[-1]
    assert found[1] == found[2]
    assert (tmp_path / "whole" / "labels.txt").read_text().split() == ["circle", "cross", "square", "triangle"]

    killed = [*program, f"--output={tmp_path / 'killed'}", "--no-convert"]
    process = start(killed)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("step 35 of 72"):
            process.send_signal(signal.SIGKILL)
            break
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    output = finish(start(killed))
    assert "continuing after step 30 of 72" in output
    whole, continued = state_in(tmp_path / "whole"), state_in(tmp_path / "killed")
    assert whole.keys() == continued.keys()
    for name, value in whole.items():
        np.testing.assert_array_equal(continued[name], value, err_msg=name)
    if framework == "torch":
        check_logs(tmp_path / "killed" / "logs")


def check_logs(folder: Path) -> None:
    """Checks that TensorBoard sees the numbers of each step once, although the killed training had written some of
    them."""
    code = (
        "import sys; from tensorboard.backend.event_processing.event_accumulator import EventAccumulator as E;"
        "e = E(sys.argv[1]); e.Reload(); print(*[s.step for s in e.Scalars('loss')])"
    )
    output = finish(start([python_of("torch"), "-c", code, str(folder)]))
    assert output.split() == [str(step) for step in range(1, 73)]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def processes(framework: str, python: str, images: Path, output: Path, count: int) -> list[subprocess.Popen[str]]:
    """Starts a training in `count` processes, as the documentation of the framework says."""
    program = ["-m", "tests.trainers.train_processes", framework, str(images), str(output)]
    if framework == "torch":
        launcher = ["-m", "torch.distributed.run", f"--nproc-per-node={count}", f"--master-port={free_port()}"]
        return [start([python, *(launcher if count > 1 else []), *program])]
    variables = {"KERAS_BACKEND": "jax", "XLA_FLAGS": FAST_COMPILATION}
    if count == 1:
        return [start([python, *program], **variables)]
    address = f"127.0.0.1:{free_port()}"
    return [
        start(
            [python, *program],
            **variables,
            KERAS_DISTRIBUTION_JOB_ADDRESSES=address,
            KERAS_DISTRIBUTION_NUM_PROCESSES=str(count),
            KERAS_DISTRIBUTION_PROCESS_ID=str(number),
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_two_processes_have_the_gradients_of_one(framework: str, few: Path, tmp_path: Path) -> None:
    need("loopback")
    python = python_of("torch")
    for count in (1, 2):
        folder = tmp_path / str(count)
        outputs = [finish(process) for process in processes(framework, python, few, folder, count)]
        assert sum(output.count("accuracy on 16 images") for output in outputs) == 1
        assert (folder / CHECKPOINT).is_file()
    one, two = (dict(np.load(tmp_path / count / "gradients.npz")) for count in ("1", "2"))
    assert one.keys() == two.keys()
    assert len(one) > 15
    for name, expected in one.items():
        assert np.abs(expected).max() > 0, name
        distance = np.linalg.norm(two[name] - expected) / np.linalg.norm(expected)
        assert distance < 1e-4, (name, distance)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_engine(framework: str, few: Path) -> None:
    suite = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-W", "ignore", "tests/trainers/train_suite.py"]
    finish(start([python_of(framework), *suite], LITEBNN_FRAMEWORK=framework, LITEBNN_IMAGES=str(few)))
