import json
import re
import shutil
from functools import partial
from pathlib import Path

import pytest

from litebnn import cli
from litebnn.report.units import amount
from tests.support.commands import refused
from tests.support.float_models import any_size_model

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"
RESIDUAL = str(GOLDEN / "residual.lce.tflite")


@pytest.mark.deep
@pytest.mark.usefixtures("library")
def test_models_threads_and_the_float_model(capsys: pytest.CaptureFixture[str]) -> None:
    options = [RESIDUAL, str(GOLDEN / "bias.lce.tflite"), "--threads", "1-2", "--runs", "1", "--peer"]
    assert cli.main(["benchmark", *options, "--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)["measurements"]
    assert "larq-compute-engine is not installed and left out" in printed.err
    assert [(Path(one["model"]).name, one["runtime"], one["threads"]) for one in found] == [
        (f"{name}.{kind}.tflite", runtime, threads)
        for name in ("residual", "bias")
        for threads in (1, 2)
        for kind, runtime in (("lce", "litebnn"), ("float", "xnnpack"))
    ]


@pytest.mark.usefixtures("library")
def test_what_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    same = tmp_path / "residual.lce.tflite"
    shutil.copy(RESIDUAL, same)
    assert cli.main(["benchmark", RESIDUAL, str(same), "--runs", "1", "--isa", "portable"]) == 0
    heads, first, second, *ops = capsys.readouterr().out.splitlines()
    assert " ".join(heads.split()) == "model runtime threads median ms p90 p99 times load ms model MiB peak MiB"
    assert first.split()[0] == RESIDUAL
    assert first.split()[6] == "1.00"
    assert second.split()[:3] == [str(same), "litebnn", "1"]
    assert f"{RESIDUAL} in litebnn, op by op" in ops
    assert sum("LceBconv2d" in line for line in ops) == 4
    assert sum(bool(re.search(r"^ *\d+\.\d{3} +\d+\.\d% +all ops", line)) for line in ops) == 2


@pytest.mark.usefixtures("library")
def test_ops_and_the_runtime_itself_add_up_to_the_median(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The network is so small that the runtime's own time is a visible share of a run."""
    page = tmp_path / "report.html"
    options = ["--runs", "5", "--threads", "1-2", "--peer", "--report", str(page)]
    assert cli.main(["benchmark", RESIDUAL, *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["measurements"]
    assert len(found) == 4
    for one in found:
        together = sum(op["seconds"] for op in one["ops"]) + one["runtime_seconds"]
        assert together == pytest.approx(one["seconds"]["p50"], rel=1e-6)
    figures = re.findall(r"<dt>Time, measured</dt>\s*<dd class=\"value\">([^<]*)<", page.read_text(encoding="utf-8"))
    assert figures == [amount(one["seconds"]["p50"], "s") for one in found if one["runtime"] == "litebnn"]

    assert cli.main(["benchmark", RESIDUAL, "--runs", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    shares = [
        re.search(rf"(\d+\.\d)% +{row}$", line.strip()) for line in lines for row in ("all ops", "the runtime itself")
    ]
    assert sum(float(share[1]) for share in shares if share) == pytest.approx(100, abs=0.11)


@pytest.mark.usefixtures("library")
def test_node_data_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    assert cli.main(["benchmark", RESIDUAL, "--runs", "1", "--threads", "2,1", "--model-explorer", str(path)]) == 0
    data = json.loads(path.read_text())
    assert data["name"].startswith("ms measured on 2 threads")
    assert list(data["results"]) == [str(place) for place in range(6)]
    assert all(result["value"] >= 0 for result in data["results"].values())
    assert data["results"]["1"]["bgColor"] != data["results"]["2"]["bgColor"]


@pytest.mark.usefixtures("library")
def test_a_page_shows_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert cli.main(["benchmark", RESIDUAL, "--runs", "1", "--threads", "2,1", "--report", str(path)]) == 0
    page = path.read_text(encoding="utf-8")
    assert page.count("<dt>Time, measured</dt>") == 2
    assert '<option value="this machine, 2 threads">' in page
    assert "litebnn benchmark, the median of" in page
    shown = re.search(
        r'data-place="this machine, 2 threads">\s*<dt>Time, measured</dt>\s*<dd class="value">([^<]*)<', page
    )
    assert shown is not None
    assert re.fullmatch(r"[\d.]+ [mµn]?s", shown[1])


def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    told = partial(refused, capsys, "benchmark")
    text = tmp_path / "text.tflite"
    text.write_text("hello" * 100)
    assert f"{text}: not a .tflite file" in told(text)
    assert "No such file" in told(tmp_path / "none.tflite")
    assert "--target is for a board: name it with --host" in told(RESIDUAL, "--target", "rpi4")
    assert "--isa is for this machine" in told(RESIDUAL, "--host", "pi", "--isa", "portable")
    free = tmp_path / "free.tflite"
    free.write_bytes(any_size_model())
    assert "takes inputs of any size, [(1, -1, -1, 3)]: give their shapes (--input-shape)" in refused(
        capsys, "benchmark", free
    )
    assert "takes inputs [(1, -1, -1, 3)], not [(1, 9, 9, 4)]" in refused(
        capsys, "benchmark", free, "--input-shape=1,9,9,4"
    )
    assert "a,b is no shape" in told(free, "--input-shape=a,b")
    assert "--input-shape is for this machine" in refused(
        capsys, "benchmark", free, "--host", "pi", "--input-shape=1,9,9,3"
    )
    for threads in ("0", "2-1", "257", "a", "1,,2", ""):
        assert "expected 4, 1,2,4 or 1-4" in told(RESIDUAL, "--threads", threads)
    assert "no whole number" in told(RESIDUAL, "--runs", "0")
    assert "--peer" in told(RESIDUAL, "--float", RESIDUAL)
    page = tmp_path / "report.html"
    assert "--report is for one model" in told(RESIDUAL, RESIDUAL, "--report", page)
    assert "expected another name" in told(text, "--report", text)
    assert "expected another name" in told(RESIDUAL, "--report", page, "--model-explorer", page)
    assert "expected another name" in told(text, "--model-explorer", text)
    with_float = (RESIDUAL, "--peer", "--float", text)
    assert "expected another name" in told(*with_float, "--model-explorer", text)
    assert "1 times, expected once for each of 2" in refused(
        capsys, "benchmark", RESIDUAL, text, "--peer", "--float", RESIDUAL
    )
    assert f"there is no {tmp_path / 'text.float.tflite'}" in told(text, "--peer")
    where = tmp_path / "nowhere" / "times.json"
    assert "is no folder to write times.json to" in told(RESIDUAL, "--model-explorer", where)
    assert "for one model, not 2" in refused(
        capsys, "benchmark", RESIDUAL, RESIDUAL, "--model-explorer", tmp_path / "times.json"
    )
    assert not (tmp_path / "times.json").exists()
    with_peer = (RESIDUAL, "--peer", "--peer-python")
    assert "cannot be started" in told(*with_peer, tmp_path / "python")
    assert "has no larq-compute-engine" in told(*with_peer, "/bin/false")
