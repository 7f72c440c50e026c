from __future__ import annotations

import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litebnn import cli
from litebnn.flatbuffer import read_model
from tests.evaluate.data_sets import class_folders
from tests.needs import need
from tests.support.commands import refused
from tests.support.float_models import FloatModel, op_names, sign_weights

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"


def archive(name: str, content: str) -> bytes:
    """Writes a .zip file with one member."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr(name, content)
    return file.getvalue()


def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out, source = tmp_path / "out.tflite", GOLDEN / "1x1.float.tflite"
    out.write_bytes(b"before")
    cases: dict[Path, bytes] = {
        tmp_path / "truncated.tflite": source.read_bytes()[:3000],
        tmp_path / "text.tflite": b"hello" * 100,
        tmp_path / "empty.h5": b"",
        tmp_path / "broken.h5": b"\x89HDF\r\n\x1a\n" + bytes(100),
        tmp_path / "broken.keras": b"PK\x05\x06" + bytes(18),
        tmp_path / "list.keras": archive("metadata.json", "[]"),
    }
    for path, content in cases.items():
        path.write_bytes(content)
        message = refused(capsys, "convert", path, "-o", out)
        assert str(path) in message
        assert "unpack" not in message
    assert "No such file" in refused(capsys, "convert", tmp_path / "none.tflite", "-o", out)
    assert "no saved_model.pb" in refused(capsys, "convert", tmp_path, "-o", out)
    assert "no folder" in refused(capsys, "convert", source, "-o", tmp_path / "nowhere" / "out.tflite")
    for no_file in (tmp_path, Path("/dev/null")):
        assert "is no file" in refused(capsys, "convert", source, "-o", no_file)
    assert "-o/--output: expected a name, not an empty one" in refused(capsys, "convert", source, "-o", "")
    assert "-o" in refused(capsys, "convert", source)
    assert "invalid choice" in refused(capsys, "convert", source, "-o", out, "--inference-input-type", "int4")
    assert "is not quantized" in refused(capsys, "convert", source, "-o", out, "--inference-input-type", "int8")
    assert "cannot be read" in refused(capsys, "convert", source, "-o", out, "--representative-data", source)
    assert "cannot be read: File name too long" in refused(capsys, "convert", "x" * 5000, "-o", out)
    assert out.read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["out.tflite", *(path.name for path in cases)])


@pytest.mark.parametrize("samples", [b"", archive("a.npy", "x"), archive("a.npy", "x")[:60], np.float32(3)])
def test_samples_that_are_none(capsys: pytest.CaptureFixture[str], tmp_path: Path, samples: Any) -> None:
    path = tmp_path / "samples.npy"
    if isinstance(samples, bytes):
        path.write_bytes(samples)
    else:
        np.save(path, samples)
    source, out = GOLDEN / "1x1.float.tflite", tmp_path / "out.tflite"
    assert str(path) in refused(capsys, "convert", source, "-o", out, "--representative-data", path)


def test_the_output_may_be_the_input_or_the_target_of_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "model.tflite", tmp_path / "link.tflite"
    path.write_bytes((GOLDEN / "1x1.float.tflite").read_bytes())
    link.symlink_to(path)
    assert cli.main(["convert", str(path), "-o", str(link)]) == 0
    assert link.is_symlink()
    assert "LceBconv2d" in op_names(path.read_bytes())


@pytest.mark.usefixtures("library")
def test_the_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    arguments = ["convert", str(GOLDEN / "quant_dense.float.tflite"), "-o", str(out), "--verify"]
    assert cli.main([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["bytes_after"] == out.stat().st_size
    assert [layer["kind"] for layer in report["layers"]] == ["dense", "dense"]
    assert report["layers"][0]["macs"] == 640 * 48
    assert report["binary_macs"] == report["macs"]
    assert cli.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "2 of 2 layers" in printed
    assert "48 input channels: make them a multiple of 32" in printed


@pytest.mark.usefixtures("library")
def test_low_bit_weights(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source, out = tmp_path / "source.tflite", tmp_path / "out.tflite"
    model = FloatModel()
    weights = np.random.default_rng(0).integers(-1, 2, (16, 64)).astype(np.float32)
    source.write_bytes(model.finish(model.dense(model.input(1, 64), weights)))
    assert cli.main(["convert", str(source), "-o", str(out), "--low-bit-weights", "int2"]) == 0
    assert "its weights are INT2" in capsys.readouterr().out
    assert op_names(out.read_bytes()) == ["DEQUANTIZE", "FULLY_CONNECTED"]
    assert cli.main(["convert", str(source), "-o", str(out), "--low-bit-weights", "int4", "--dynamic-range"]) == 0
    assert op_names(out.read_bytes()) == ["FULLY_CONNECTED"]


def test_the_report_as_a_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source, out, page = GOLDEN / "quant_dense.float.tflite", tmp_path / "out.tflite", tmp_path / "report.html"
    assert cli.main(["convert", str(source), "-o", str(out), "--report", str(page)]) == 0
    written = page.read_text(encoding="utf-8")
    assert "<h1>out.<wbr>tflite</h1>" in written
    assert "2 of 2 layers and 100.0% of" in written
    assert "2 of 2 layers" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.tflite", "report.html"]


def test_a_report_that_cannot_be_written_leaves_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model, out = tmp_path / "model.tflite", tmp_path / "out.tflite"
    model.write_bytes((GOLDEN / "1x1.float.tflite").read_bytes())
    before = model.read_bytes()
    arguments = ["convert", model, "-o", out, "--report"]
    assert "no folder" in refused(capsys, *arguments, tmp_path / "nowhere" / "report.html")
    for no_file in (tmp_path, Path("/dev/null")):
        assert "is no file" in refused(capsys, *arguments, no_file)
    assert "--report: expected a name, not an empty one" in refused(capsys, *arguments, "")
    for taken in (model, out, tmp_path / "." / "out.tflite"):
        assert "expected another name for the .html file" in refused(capsys, *arguments, taken)
    samples = tmp_path / "samples.npz"
    samples.touch()
    data = ["convert", model, "-o", samples, "--representative-data", samples]
    assert "expected another name for the .tflite file" in refused(capsys, *data)
    samples.unlink()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for name in [name for name in sys.modules if name.startswith("litebnn.report.page")]:
        monkeypatch.delitem(sys.modules, name)
    assert "pip install 'litebnn[report]'" in refused(capsys, *arguments, tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["model.tflite"]
    assert model.read_bytes() == before


@pytest.mark.usefixtures("library")
def test_data_sets_give_ranges_and_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    need("evaluate")
    model, rng = FloatModel(), np.random.default_rng(0)
    x = model.conv(model.input(1, 28, 28, 1), rng.standard_normal((32, 5, 5, 1)).astype(np.float32), stride=(4, 4))
    y = model.conv(model.sign(x), sign_weights(rng, 8, 3, 3, 32))
    (tmp_path / "float.tflite").write_bytes(model.finish(y))
    folder = class_folders(tmp_path / "images")
    (folder / "7" / "bad.png").write_bytes(b"no image")
    monkeypatch.chdir(tmp_path)
    command = ["convert", "float.tflite", "-o", "int8.tflite", "--workers=0", "--preprocess=[-1,1]"]
    data = ["--representative-data=images", "--verify-data=tests.evaluate.data_sets:noise_batches"]
    assert cli.main([*command, *data]) == 0
    assert "images/7/bad.png is left out: it is no image that Pillow knows" in capsys.readouterr().err
    assert cli.main([*command, "--representative-data=images", "--preprocess=x"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("litebnn: ")
    assert "representative_dataset: preprocess is x, expected auto, none" in line


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("option", ["--representative-dataset", "--representative-data", "--verify-data"])
@pytest.mark.parametrize("kind", ["npy", "npz in order", "npz by name", "npz of images", "npz with labels"])
def test_samples_are_files_of_arrays_or_data_sets(
    option: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    inputs = [model.input(1, 6, 6, 32), *([model.input(1, 6, 6, 32)] if kind == "npz by name" else [])]
    x = inputs[0] if len(inputs) == 1 else model.elementwise("SUB", *inputs)
    source, out, data = tmp_path / "source.tflite", tmp_path / "out.tflite", tmp_path / f"samples.{kind[:3]}"
    source.write_bytes(model.finish(model.conv(model.sign(x), sign_weights(rng, 8, 3, 3, 32))))
    samples = rng.standard_normal((3, 6, 6, 32)).astype(np.float32)
    if kind == "npy":
        np.save(data, samples)
    elif kind == "npz in order":
        np.savez(data, x=samples)
    elif kind == "npz by name":
        np.savez(data, **{tensor.name: samples for tensor in reversed(inputs)})
    elif kind == "npz of images":
        np.savez(data, images=rng.integers(0, 256, samples.shape).astype(np.uint8))
    else:
        np.savez(data, images=samples, labels=np.arange(3))
    is_data_set = "images" in kind or "labels" in kind
    arguments = ["convert", str(source), "-o", str(out), option, str(data), *(["--workers=0"] * is_data_set)]
    assert cli.main([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["verification"] is not None) == (option == "--verify-data")
    assert ("DEQUANTIZE" in op_names(out.read_bytes())) == (option != "--verify-data")


def test_verifying_twice_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = GOLDEN / "ste_tern_not_binary.float.tflite", tmp_path / "out.tflite"
    assert cli.main(["convert", str(source), "-o", str(out), "--verify", "--verify-data=nowhere"]) == 0
    first, *_ = capsys.readouterr().err.splitlines()
    assert first.startswith("litebnn: warning: --verify has no effect beside --verify-data")


@pytest.mark.usefixtures("library")
def test_what_assume_nonzero_says_is_verified_unless_turned_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = FloatModel()
    weights = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)
    source, out = tmp_path / "source.tflite", tmp_path / "out.tflite"
    source.write_bytes(model.finish(model.conv(model.elementwise("SIGN", model.input(1, 6, 6, 32)), weights)))
    arguments = ["convert", str(source), "-o", str(out), "--assume-nonzero"]
    assert cli.main(arguments) == 0
    assert "; verified, the outputs differ by" in capsys.readouterr().out
    assert cli.main([*arguments, "--no-verify"]) == 0
    assert "verified" not in capsys.readouterr().out
    line = refused(capsys, *arguments, "--no-verify", "--verify-data", "x.npy")
    assert line == "litebnn: --no-verify and --verify-data exclude each other"


@pytest.mark.parametrize("name", ["r.txt", "report", "page.tflite"])
def test_a_report_is_no_other_kind_of_file(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, page = GOLDEN / "1x1.float.tflite", tmp_path / name
    message = f"litebnn: --report {page}: expected a name that ends in .html or .htm"
    assert refused(capsys, "convert", source, "-o", tmp_path / "out.tflite", "--report", page) == message
    assert refused(capsys, "inspect", source, "--report", page) == message
    times = tmp_path / "times.txt"
    line = refused(capsys, "inspect", source, "--model-explorer", times)
    assert line == f"litebnn: --model-explorer {times}: expected a name that ends in .json"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("source", ["residual.lce.tflite", "ste_tern_not_binary.float.tflite"])
@pytest.mark.parametrize("option", ["--verify", "--verify-data=nowhere"])
def test_what_stays_as_it_is_is_said_not_to_be_verified(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, source: str, option: str
) -> None:
    out = tmp_path / "out.tflite"
    assert cli.main(["convert", str(GOLDEN / source), "-o", str(out)]) == 0
    assert "verif" not in capsys.readouterr().err
    assert cli.main(["convert", str(GOLDEN / source), "-o", str(out), option]) == 0
    assert out.read_bytes() == (GOLDEN / source).read_bytes()
    *_, line = capsys.readouterr().err.splitlines()
    assert line == "litebnn: warning: nothing is verified: the result is the source itself"


@pytest.mark.parametrize(
    ("stated", "grid"),
    [("-1,1", (2 / 255, 0)), ("[0,1]", (1 / 255, -128)), ("none", (1.0, -128)), ("51/102", (255 / 102 / 255, -77))],
)
def test_a_stem_without_samples(
    stated: str, grid: tuple[float, int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model, source, out = FloatModel(), tmp_path / "source.tflite", tmp_path / "out.tflite"
    x = model.conv(model.input(1, 8, 8, 3), np.random.default_rng(0).standard_normal((32, 3, 3, 3)).astype(np.float32))
    source.write_bytes(model.finish(model.conv(model.sign(x), np.ones((8, 1, 1, 32), np.float32)), x))
    options = ["--stem=int8", f"--input-range={stated}", "--inference-input-type=uint8"]
    assert cli.main(["convert", str(source), "-o", str(out), *options]) == 0
    assert "it is int8 for inputs from" in capsys.readouterr().out
    [pixels] = read_model(out.read_bytes()).graphs[0].inputs
    scale, zero_point = pixels.per_tensor_quantization or (0.0, 0)
    assert (pixels.type, zero_point - 128) == ("UINT8", grid[1])
    assert scale == pytest.approx(grid[0])


def test_mistakes_about_a_stem_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source, out = GOLDEN / "1x1.float.tflite", tmp_path / "out.tflite"
    command = ["convert", source, "-o", out]
    for text in ("auto", "os:getcwd", "1", "1,2,3", "1/0"):
        line = refused(capsys, *command, "--stem=int8", f"--input-range={text}")
        assert line.startswith(f"litebnn: --input-range is {text}, expected MIN,MAX, none, [-1,1], [0,1], zoo, or MEAN")
    assert "expected (min, max) with min < max" in refused(capsys, *command, "--stem=int8", "--input-range=1,-1")
    assert "stem: expected a CONV_2D" in refused(capsys, *command, "--stem=int8", "--input-range=-1,1")
    assert not out.exists()
