"""Tests the comparison of float32, int8 and 1-bit networks in a short form: one framework, one epoch, small digits."""

import io
import sys
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from examples.mnist.data import bundled_digits
from litebnn.report.macs import Macs
from tests.needs import imported
from tests.support.programs import host_programs

command = imported("examples.compare.__main__", "compare")
makers = imported("examples.compare.makers", "compare")

CONVOLUTION_1 = 26 * 26 * 32 * 9
OTHER_LAYERS = 11 * 11 * 64 * 32 * 9 + 3 * 3 * 64 * 64 * 9 + 576 * 64 + 64 * 10


@pytest.mark.deep
@pytest.mark.needs("keras", "demo")
def test_all_forms_are_made_measured_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "BENCHMARK_MODEL", host_programs() / "benchmark_model")
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")  # the maker sets it, for this test alone
    printed = io.StringIO()
    results = command.compare(["keras"], bundled_digits(), None, 4, Console(file=printed, width=160), tmp_path)
    assert list(results) == [("keras", form) for form in makers.FORMS]
    real, after, trained, binary = results.values()
    assert real.macs == Macs(0, 0, CONVOLUTION_1 + OTHER_LAYERS)
    assert after.macs == trained.macs == Macs(0, CONVOLUTION_1 + OTHER_LAYERS, 0)
    assert binary.macs == Macs(OTHER_LAYERS, 0, CONVOLUTION_1)
    assert binary.bytes * 4 < min(after.bytes, trained.bytes) < real.bytes
    assert all(figures.accuracy > 0.5 for figures in results.values())
    assert "the 1-bit file is " in printed.getvalue()
    with Image.open(tmp_path / "compare.png") as picture:
        assert picture.width > 1000
    files = {path.name for path in tmp_path.iterdir() if path.suffix == ".tflite"}
    assert files == {makers.file_name("keras", form) for form in makers.FORMS}


def test_a_framework_that_crashes_shows_its_log_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "python").write_text(f'#!/bin/sh\nshift 2\nexec {sys.executable} -S -m examples.compare.makers "$@"\n')
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(command, "TORCH_PYTHON", tmp_path / "python")
    monkeypatch.setattr(command, "OUTPUT", tmp_path / "output")
    monkeypatch.setattr(command.compare, "__defaults__", (tmp_path / "output",))
    assert command.main(["--frameworks=torch"]) == 1
    *log, line = capsys.readouterr().err.splitlines()
    assert log[0].startswith("Traceback")
    assert line == f"compare: torch: {log[-1]}"
    assert list((tmp_path / "output").iterdir()) == []


def test_a_missing_environment_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "TORCH_PYTHON", tmp_path / "python")
    assert command.main(["--frameworks=torch"]) == 1
    assert f"there is no {tmp_path / 'python'}: python3 bootstrap.py compare" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["--frameworks=jax", "--frameworks=", "--epochs=0", "--epochs=few"])
def test_wrong_options_are_errors(capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    with pytest.raises(SystemExit) as end:
        command.main([wrong])
    assert end.value.code == 2
    assert wrong.partition("=")[0] in capsys.readouterr().err.splitlines()[-1]


def test_missing_data_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([f"--mnist={tmp_path}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"compare: {tmp_path} has neither")
