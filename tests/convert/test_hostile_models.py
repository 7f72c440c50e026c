"""Tests that malicious models raise only the converter's own errors, and take time and memory in proportion to the
file."""

import cProfile
import io
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn import cli
from litebnn.errors import Defect
from litebnn.flatbuffer import write_model
from litebnn.graph import Graph, Tensor, constant
from litebnn.rules.phases import PHASES
from tests.support.float_models import FloatModel, sign_weights

pytestmark = pytest.mark.filterwarnings("ignore:no binary layer")
HOSTILE = "\x1b[31m[/red]\n\r\udc80\x07[bold]x"


def binary_dense(model: FloatModel) -> Tensor:
    return model.dense(model.sign(model.input(1, 64)), sign_weights(np.random.default_rng(0), 8, 64))


def test_what_is_computed_from_constants_is_not_without_limits() -> None:
    """The model has a thousand constants of a million elements each, in a file of 400 kB."""
    model = FloatModel()
    condition = model.elementwise("GREATER", model.input(1, 1000, 1000), model.const(0), type="BOOL")
    shape, minus = model.const([1, 1000, 1000], np.int32), model.const(-1.0)
    wide = [model.op("BROADCAST_TO", [model.const(i), shape], (1, 1000, 1000)) for i in range(1000)]
    picked = [model.op("SELECT_V2", [condition, each, minus], (1, 1000, 1000)) for each in wide]
    source = model.finish(binary_dense(model), *picked)
    tracemalloc.start()
    try:
        with pytest.raises(litebnn.ConversionError, match="far more is computed from the model's constants"):
            litebnn.convert_tflite(source)
        assert tracemalloc.get_traced_memory()[1] < 1 << 29
    finally:
        tracemalloc.stop()


def test_passes_that_come_to_no_end_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = 0

    def always(graph: Graph, notes: object) -> bool:
        nonlocal rounds
        rounds += 1
        assert rounds < 1000
        return True

    monkeypatch.setitem(PHASES, "canonical", (always,))
    model = FloatModel()
    y = binary_dense(model)
    for _ in range(4):
        y = model.elementwise("NEG", y)
    with pytest.raises(Defect, match='comes to no end in the phase "canonical"'):
        litebnn.convert_tflite(model.finish(y))


def rounded(model: FloatModel, x: Tensor) -> Tensor:
    return model.op("ROUND", [x], x.dims)


def transposed(model: FloatModel, x: Tensor) -> Tensor:
    return model.transpose(model.elementwise("NEG", x), 0, 2, 1)


def shuffled(model: FloatModel, x: Tensor) -> Tensor:
    return model.reshape(model.transpose(model.reshape(model.sign(x), 1, 4, 2, 2), 0, 1, 3, 2), 1, 4, 4)


def normalized(model: FloatModel, x: Tensor) -> Tensor:
    return model.elementwise("ADD", model.elementwise("MUL", x, model.const(2.0)), model.const(1.5))


@pytest.mark.deep
@pytest.mark.parametrize(
    "step",
    [
        rounded,  # the rounding of each op was searched again for every op after it
        transposed,  # a round of the rules moved each TRANSPOSE past one op
        shuffled,  # a round of the rules moved a shuffle across one sign
        normalized,  # each was evaluated far from thresholds, each sum compared with all others
    ],
)
def test_a_row_of_ops_takes_calls_in_proportion(step: Callable[[FloatModel, Tensor], Tensor]) -> None:
    def calls(count: int) -> int:
        model = FloatModel()
        y = model.input(1, 4, 4)
        for _ in range(count):
            y = step(model, y)
        source = model.finish(binary_dense(model), y)
        with cProfile.Profile() as profile:
            litebnn.convert_tflite(source)
        return sum(entry.callcount for entry in profile.getstats())

    calls(10)  # imports and caches are not counted
    # For a model with four times as many ops, the conversion may make about four times as many function calls. A
    # quadratic search would make 16 times as many.
    assert calls(160) < 6 * calls(40)


def test_a_concatenation_is_charged_for_before_it_is_made() -> None:
    model = FloatModel()
    part = model.op("BROADCAST_TO", [model.const(1), model.const([1000, 1000], np.int32)], (1000, 1000))
    many = model.op("CONCATENATION", [part] * 10_000, (1, 1000), axis=0)
    source = model.finish(binary_dense(model), model.op("ADD", [model.input(1, 1000), many], (10_000_000, 1000)))
    with pytest.raises(litebnn.ConversionError, match="far more is computed"):
        litebnn.convert_tflite(source)


@pytest.mark.usefixtures("library")
def test_verifying_does_not_ask_for_tebibytes() -> None:
    model = FloatModel()
    y = model.elementwise("ADD", model.input(1, 600_000, 1_000_000, 32), model.const(1.0))
    source = model.finish(binary_dense(model), y)
    assert litebnn.convert_tflite(source)
    with pytest.raises(litebnn.ConversionError, match="expected less than 2 GiB"):
        litebnn.convert_tflite(source, verify=True)


@pytest.mark.usefixtures("library")
def test_a_tensor_that_nobody_computes() -> None:
    model = FloatModel()
    lost = Tensor("lost", "FLOAT32", (1, 8))
    y = model.op("ADD", [model.input(1, 8), lost], (1, 8))
    source = model.finish(binary_dense(model), y)
    with pytest.raises(litebnn.ConversionError, match="cannot be run: Input tensor .* lacks data"):
        litebnn.convert_tflite(source, verify=True)
    with pytest.raises(ValueError, match="^the model cannot be run: Input tensor .* lacks data$"):
        litebnn.Interpreter(source).predict([np.zeros((1, 8), np.float32), np.zeros((1, 64), np.float32)])


def hostile_names() -> bytes:
    model = FloatModel()
    y = binary_dense(model)
    z = model.conv(model.sign(model.input(1, 4, 4, 31)), np.ones((8, 3, 3, 31), np.float32) * 3)
    for tensor in model.graph.all_tensors():
        tensor.name = HOSTILE + tensor.name
    return model.finish(y, z)


def is_plain(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def test_names_reach_neither_report_nor_message_as_they_are(tmp_path: Path) -> None:
    source = hostile_names()
    _, report = litebnn.convert_tflite(source, return_report=True)
    assert [layer.binary for layer in report.layers] == [True, True]
    assert is_plain(str(report))
    assert "\\x1b[31m[/red]\\n" in report.layers[0].name or "\\x1b[31m[/red]\\n" in str(report)
    path = tmp_path / "a\x1b[1m[red].tflite"
    path.write_bytes(source)
    for flags in ([], ["--json"]):
        with redirect_stdout(io.StringIO()) as out:
            assert cli.main(["convert", str(path), "-o", str(tmp_path / "out.tflite"), *flags]) == 0
        assert is_plain(out.getvalue())


def test_names_in_what_the_command_prints_when_it_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = FloatModel()
    model.input(1, 64).name = HOSTILE
    model.graph.inputs[0].buffer = constant("c", np.zeros((1, 64), np.float32)).buffer
    path = tmp_path / "a\x1b[1m\n.tflite"
    path.write_bytes(write_model(model.model(binary_dense(model))))
    assert cli.main(["convert", str(path), "-o", str(tmp_path / "out.tflite")]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.isprintable()
    assert "is a constant" in line


@pytest.mark.usefixtures("library")
def test_names_in_what_the_interpreter_raises() -> None:
    model = FloatModel()
    y = binary_dense(model)
    model.graph.inputs[0].name = HOSTILE.replace("\udc80", "")
    interpreter = litebnn.Interpreter(model.finish(y))
    for wrong in (np.zeros((1, 64)), np.zeros((1, 63), np.float32), {"other": 0}):
        with pytest.raises(ValueError, match="input") as caught:
            interpreter.predict(wrong)
        assert str(caught.value).isprintable()


def test_mistakes_in_the_words_of_a_command_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["convert", HOSTILE, HOSTILE])
    assert is_plain(capsys.readouterr().err)


def test_what_the_callers_own_functions_raise_comes_through() -> None:
    model = FloatModel()
    source = model.finish(binary_dense(model))

    class Own(Exception):
        pass

    def fails(*_: object) -> None:
        raise Own

    for options in ({"progress": fails}, {"representative_dataset": fails}):
        with pytest.raises(Own):
            litebnn.convert_tflite(source, **options)


def command(*words: str | Path, **streams: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "litebnn", *words], text=True, **streams)


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    model = FloatModel()
    path = tmp_path / "sound.tflite"
    path.write_bytes(model.finish(binary_dense(model)))
    return path


def test_a_file_of_five_gigabytes_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "large.tflite"
    path.write_bytes(b"\x1c\0\0\0TFL3")
    os.truncate(path, 5 * 10**9)
    assert cli.main(["convert", str(path), "-o", str(tmp_path / "out.tflite")]) == 1
    assert capsys.readouterr().err == f"litebnn: {path} has 5,000,000,000 bytes, expected 4 GiB at most\n"
    for load in (litebnn.convert_tflite, litebnn.Interpreter):
        with pytest.raises(ValueError, match="5,000,000,000 bytes, expected 4 GiB at most"):
            load(path)
    with pytest.raises(litebnn.ConversionError, match="is no regular file"):
        litebnn.convert_tflite("/dev/zero")


@pytest.mark.parametrize("words", ["--help", "convert --help", "--version"])
def test_help_that_nobody_reads_to_its_end(words: str) -> None:
    run = subprocess.run(["bash", "-c", f"{sys.executable} -m litebnn {words} | true"], capture_output=True)
    assert run.stderr == b""


@pytest.mark.deep
@pytest.mark.parametrize("flags", [(), ("--json",)])
@pytest.mark.parametrize("streams", ["1>&-", "2>&-", "0<&- 1>&- 2>&-", "| true", "1>/dev/full"])
def test_streams_that_are_closed(sound: Path, tmp_path: Path, streams: str, flags: tuple[str, ...]) -> None:
    out = tmp_path / "out.tflite"
    words = [sys.executable, "-m", "litebnn", "convert", str(sound), "-o", str(out), *flags]
    shell = ["bash", "-c", f'set -o pipefail; "$@" {streams}', "bash", *words]
    run = subprocess.run(shell, capture_output=True, text=True)
    assert "Traceback" not in run.stderr
    assert "Exception ignored" not in run.stderr
    assert len(run.stderr.splitlines()) <= 1
    assert run.returncode == (1 if streams == "1>/dev/full" else run.returncode)
    assert run.returncode in (0, 1)
    assert litebnn.convert_tflite(out) == out.read_bytes()


def test_a_terminal_that_cannot_show_every_letter(sound: Path, tmp_path: Path) -> None:
    run = command(
        *("convert", sound, "-o", tmp_path / "out.tflite"),
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert re.search(r"[\d,]+ -> [\d,]+", run.stdout)
