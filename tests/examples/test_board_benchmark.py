"""Tests litebnn-board-benchmark of the unpacked bundle, on this machine."""

import json
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest

import litebnn
from bench.board_models import LAYERS, NETWORKS, board_models
from tests.support.programs import error_of, host_programs, run
from toolchains.boards.table import page
from toolchains.bundle import bundle


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    host_programs()
    place = tmp_path_factory.mktemp("a board's folder")
    with tarfile.open(bundle("host")) as tar:
        tar.extractall(place)
    return place / "litebnn-host"


def test_one_command_writes_a_json_and_a_page(unpacked: Path, tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    done = run([unpacked / "litebnn-board-benchmark"], output=output, num_runs=2)
    assert done.returncode == 0, done.stderr
    found = json.loads(output.read_text())
    golden = found["golden"]
    assert len(golden) > 20
    assert all(one["is_right"] for one in golden)
    assert len(found["layer"]) == len(LAYERS)
    assert {one["name"] for one in found["network"]} == set(NETWORKS)
    assert all(one["median_ms"] >= one["min_ms"] > 0 for one in (*found["layer"], *found["network"]))
    assert found["before"].keys() == found["after"].keys()
    assert found["before"]["kernel"].startswith("Linux ")
    text = output.with_suffix(".md").read_text()
    assert "WRONG" not in text
    assert all(f"| {one['name']} |" in text for kind in ("golden", "layer", "network") for one in found[kind])
    assert f"| [{found['before']['board'] or 'results'}](results.json) |" in page([output])
    # A second run changes nothing but the times.
    run([unpacked / "litebnn-board-benchmark"], output=output, num_runs=1)
    again = json.loads(output.read_text())
    for kind in ("golden", "layer", "network"):
        assert [one["output_hash"] for one in again[kind]] == [one["output_hash"] for one in found[kind]]


def test_a_board_that_computes_something_else_is_found_out(unpacked: Path, tmp_path: Path) -> None:
    wanted = unpacked / "board_models" / "golden" / "bias.out"
    content = wanted.read_bytes()
    try:
        wanted.write_bytes((np.frombuffer(content, np.float32) + np.float32(0.5)).tobytes())
        done = run([unpacked / "litebnn-board-benchmark"], output=tmp_path / "results.json", num_runs=1)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith("error: this board computes something else: see ")
        wrong = [
            one["name"] for one in json.loads((tmp_path / "results.json").read_text())["golden"] if not one["is_right"]
        ]
        assert wrong == ["bias"]
    finally:
        wanted.write_bytes(content)


def test_what_cannot_be_written_is_one_line(unpacked: Path) -> None:
    assert error_of(run([unpacked / "litebnn-board-benchmark"], output="/proc/nowhere.json")) == (
        "cannot write /proc/nowhere.json"
    )


@pytest.mark.usefixtures("library")
def test_networks_have_quicknets_shape_and_scores_that_differ() -> None:
    for name in NETWORKS:
        interpreter = litebnn.Interpreter(board_models() / "network" / f"{name}.tflite")
        images = np.random.default_rng(0).uniform(-1, 1, (2, 224, 224, 3)).astype(np.float32)
        scores = interpreter.predict(images)
        assert scores.shape == (2, 1000)
        assert 0.1 < scores.std() < 100
        assert np.argmax(scores[0]) != np.argmin(scores[1])


def test_the_state_of_a_board_is_told_by_any_shell(unpacked: Path) -> None:
    for shell in ("sh", "bash"):
        done = subprocess.run([shell, unpacked / "board_state.sh"], capture_output=True, text=True, check=True)
        names = [line.partition("=")[0] for line in done.stdout.splitlines()]
        assert {"cpu", "cores", "kernel", "clock_mhz", "governor", "temperature_c", "throttled"} <= set(names)
        assert done.stderr == ""
