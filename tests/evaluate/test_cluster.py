"""Tests evaluation with real schedulers and workers on the loopback interface. Some workers are killed while they
run."""

import errno
import importlib
import os
import re
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from litebnn import cli
from litebnn.evaluate.run import evaluate_models
from tests.evaluate.data_sets import MODEL, class_folders, counted, expected_counts, noise, npz
from tests.needs import imported
from tests.support.float_models import FloatModel
from tests.trainers.environments import python_path
from toolchains.targets import ROOT

dask = imported("dask", "evaluate")
psutil = imported("psutil", "evaluate")
distributed = imported("distributed", "evaluate")
pytestmark = [pytest.mark.deep, pytest.mark.usefixtures("library"), pytest.mark.needs("loopback")]


class Cluster:
    """A scheduler with a worker, which may be killed and started again at the same address."""

    def __init__(self, logs: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._logs = logs
        self._processes: list[subprocess.Popen[bytes]] = []

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        # Workers import this test module by its name to find its functions.
        environment = os.environ | {"PYTHONPATH": python_path(ROOT)}
        with (self._logs / f"{len(self._processes)}.log").open("wb") as log:
            process = subprocess.Popen([sys.executable, "-m", *words], stdout=log, stderr=log, env=environment)
        self._processes.append(process)
        return process

    def start(self, threads: int = 1) -> None:
        where = ["--host=127.0.0.1", f"--port={self.port}", "--no-dashboard"]
        self.scheduler = self._start("distributed.cli.dask_scheduler", *where)
        self.add_worker(threads)

    def add_worker(self, threads: int = 1) -> None:
        limits = ["--no-nanny", "--no-dashboard", f"--nthreads={threads}", "--death-timeout=60"]
        self._start("distributed.cli.dask_worker", self.address, "--host=127.0.0.1", *limits)

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    made.start()
    yield made
    made.stop()


def workers_of_this_process() -> list[int]:
    children = psutil.Process().children(recursive=True)
    return [child.pid for child in children if "spawn_main" in " ".join(child.cmdline())]


def killing_once(sample: np.ndarray) -> np.ndarray:
    """A preprocessing function. In whichever worker it is called first, it kills the worker's process."""
    with suppress(FileExistsError):
        Path(os.environ["KILLED"]).touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)
    return (sample / 127.5 - 1).astype(np.float32)


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed worker and a damaged image do not change the results for undamaged images. The evaluation reports each
    of the two events in one line, which is a warning by default."""
    monkeypatch.setenv("KILLED", str(tmp_path / "killed"))
    folder = class_folders(tmp_path / "images", 120)
    (folder / "7" / "bad.png").write_bytes(b"no image")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = evaluate_models(MODEL, folder, preprocess=killing_once, workers=2, batch_size=4)
    assert counted(found) == expected_counts(*noise(120))
    assert (tmp_path / "killed").exists()
    told = sorted(str(one.message) for one in caught if one.filename == __file__)
    assert len(told) == 2
    assert told[0].startswith(f"{folder / '7' / 'bad.png'} is left out: ")
    assert re.fullmatch(r"the worker process at tcp://127\.0\.0\.1:\d+ ended: what it was at runs again", told[1])
    assert workers_of_this_process() == []


def test_convert_says_that_a_worker_was_killed(tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.setenv("KILLED", str(tmp_path / "killed"))
    monkeypatch.chdir(ROOT)
    model, source = FloatModel(), tmp_path / "float.tflite"
    flat = model.reshape(model.input(1, 28, 28, 1), 1, 784)
    source.write_bytes(model.finish(model.dense(flat, np.ones((10, 784), np.float32))))
    data = ["--representative-data=tests.evaluate.data_sets:noise_batches", f"--preprocess={__name__}:killing_once"]
    assert cli.main(["convert", str(source), "-o", str(tmp_path / "int8.tflite"), *data, "--workers=2"]) == 0
    *_, line = capfd.readouterr().err.splitlines()
    ended = r"litebnn: warning: the worker process at tcp://127\.0\.0\.1:\d+ ended: what it was at runs again"
    assert re.fullmatch(ended, line)


def test_a_scheduler_that_is_killed_and_started_again_loses_nothing(cluster: Cluster, tmp_path: Path) -> None:
    data, killed, told = npz(tmp_path / "a.npz", 120), [], []

    def kill_scheduler(done: int, total: int | None) -> None:
        if done >= 20 and not killed:
            killed.append(done)
            cluster.scheduler.kill()
            cluster.scheduler.wait()
            cluster.start()

    found = evaluate_models(
        MODEL, data, scheduler=cluster.address, batch_size=4, progress=kill_scheduler, on_warning=told.append,
        partial=tmp_path / "a.partial",
    )  # fmt: skip
    assert counted(found) == expected_counts(*noise(120))
    assert len(killed) == 1
    assert [line.partition(" is gone")[0] for line in told] == [f"the scheduler at {cluster.address}"]
    again = evaluate_models(MODEL, data, workers=0, batch_size=4, partial=tmp_path / "a.partial")
    assert counted(again) == counted(found)


def test_a_cluster_without_workers_is_waited_for_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILLED", str(tmp_path / "killed"))
    cluster, told = Cluster(tmp_path), []

    def on_warning(line: str) -> None:
        told.append(line)
        if "no workers left" in line:
            cluster.add_worker()

    try:
        cluster.start()
        data = npz(tmp_path / "a.npz", 40)
        found = evaluate_models(MODEL, data, preprocess=killing_once, scheduler=cluster.address, on_warning=on_warning)
    finally:
        cluster.stop()
    assert counted(found) == expected_counts(*noise(40))
    ended, waiting = told
    assert ended.endswith("ended: what it was at runs again")
    assert waiting == f"the scheduler at {cluster.address} has no workers left: waiting for one"


def test_a_scheduler_that_goes_while_it_is_asked_loses_nothing(cluster: Cluster, tmp_path: Path, monkeypatch) -> None:
    ask, asked, told = distributed.Client.nthreads, [], []

    def reset_once(client: "distributed.Client") -> dict[str, int]:
        asked.append(client)
        if len(asked) == 3:
            raise distributed.comm.CommClosedError("Connection reset by peer")
        return ask(client)

    monkeypatch.setattr(distributed.Client, "nthreads", reset_once)
    data = npz(tmp_path / "a.npz", 40)
    found = evaluate_models(MODEL, data, scheduler=cluster.address, batch_size=4, on_warning=told.append)
    assert counted(found) == expected_counts(*noise(40))
    assert [line.partition(" is gone")[0] for line in told] == [f"the scheduler at {cluster.address}"]


def a_batch_that_kills(sample: np.ndarray) -> np.ndarray:
    """A recipe that ends the process in which it runs."""
    os.kill(os.getpid(), signal.SIGKILL)
    return sample


def refused(sample: np.ndarray) -> np.ndarray:
    raise ValueError(f"a sample of {sample.shape}\nis refused")


def failing(sample: np.ndarray) -> np.ndarray:
    raise KeyError("not there")


def a_disk_that_fails(sample: np.ndarray) -> np.ndarray:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_worker_has_the_version_of_a_function_that_evaluating_starts_with(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    images, labels = noise(20)
    for value in (127.5, -63.75):
        (tmp_path / "my_recipe.py").write_text(f"def scaled(sample):\n    return sample / {value} - 1\n")
        sys.modules.pop("my_recipe", None)
        importlib.invalidate_caches()
        options = {"preprocess": "my_recipe:scaled", "scheduler": cluster.address}
        found = evaluate_models(MODEL, lambda: [(images, labels)], **options)
        expected = evaluate_models(MODEL, lambda: [(images / value - 1, labels)], preprocess="none", workers=0)  # noqa: B023
        assert counted(found) == counted(expected)


def test_a_batch_of_a_function_goes_to_workers_and_mistakes_there_are_one_line(cluster: Cluster) -> None:
    images, labels = noise(50)

    def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, 50, 8):
            yield images[start : start + 8], labels[start : start + 8]

    found = evaluate_models(MODEL, batches, scheduler=cluster.address)
    assert counted(found) == expected_counts(images, labels)
    for recipe, message in (
        (refused, r"a sample of \(28, 28, 1\) is refused"),
        (failing, f"{__name__}:failing fails: KeyError: 'not there'"),
        # The error names the batch that fails first. Any batch may be the first.
        (a_disk_that_fails, r"batch \d fails: OSError: Input/output error"),
    ):
        with pytest.raises(ValueError, match=f"^{message}$"):
            evaluate_models(MODEL, batches, preprocess=recipe, scheduler=cluster.address)
    with distributed.Client(cluster.address) as client:
        plugins = client.run(lambda dask_worker: list(dask_worker.plugins))
    assert not [name for names in plugins.values() for name in names if name.startswith("litebnn")]


def test_a_batch_that_ends_every_worker_is_one_line() -> None:
    once = dask.config.set({"distributed.scheduler.allowed-failures": 0})
    with once, pytest.raises(ValueError, match="batch 0 ends the processes that it runs in"):
        evaluate_models(
            MODEL, lambda: [noise(2)], preprocess=a_batch_that_kills, workers=1, on_warning=lambda line: None
        )


def test_a_scheduler_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("litebnn.evaluate.dask_cluster._CONNECT_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionError, match=f"^no scheduler answers at tcp://127.0.0.1:{port}: ") as error:
        evaluate_models(MODEL, lambda: [noise(2)], scheduler=f"tcp://127.0.0.1:{port}")
    assert "\n" not in str(error.value)
