import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from litebnn import cli
from tests.support.commands import refused
from tests.support.float_models import FloatModel, sign_weights

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"
MODEL = GOLDEN / "bitpacked_chain.lce.tflite"


def test_inspect_shows_every_op_totals_and_what_the_times_are_worth(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", str(MODEL)]) == 0
    out = capsys.readouterr().out
    assert "LceBconv2d" in out
    assert "bits" in out
    assert "an estimate, at most" in out
    assert " all " in out


@pytest.mark.parametrize("name", ["bitpacked_chain.lce", "bitpacked_chain.float"])
def test_json_is_all_that_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", "--json", str(GOLDEN / f"{name}.tflite")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["name"] == f"{name}.tflite"
    assert found["totals"]["seconds"]["host"] == pytest.approx(sum(row["seconds"]["host"] for row in found["ops"]))
    assert found["boards"][0]["name"] == "host"


def test_the_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert cli.main(["inspect", str(MODEL), "--report", str(page)]) == 0
    assert "<dt>Time, estimated</dt>" in page.read_text(encoding="utf-8")
    assert "LceBconv2d" in capsys.readouterr().out
    assert "expected another name for the .html file" in refused(capsys, "inspect", str(page), "--report", str(page))
    assert "expected another name for the .html file" in refused(capsys, "summary", str(page), "--report", str(page))


def test_weights_are_written_beside_the_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    assert cli.main(["inspect", "--json", str(MODEL), "--weights", str(path)]) == 0
    layers = [row for row in json.loads(capsys.readouterr().out)["ops"] if row["op"] == "LceBconv2d"]
    with np.load(path) as weights:
        assert [array.shape[:2] for array in weights.values()] == [tuple(row["filter_shape"][:2]) for row in layers]
        assert all(set(np.unique(array)) == {-1, 1} for array in weights.values())
        assert all("/quant_conv2d" in name for name in list(weights)[:-1])
    assert [file.name for file in tmp_path.iterdir()] == ["weights.npz"]


@pytest.mark.parametrize(
    ("model", "weights", "said"),
    [
        ("bitpacked_chain.lce.tflite", "weights.txt", "--weights .*weights.txt: expected a name that ends in .npz"),
        ("bitpacked_chain.lce.tflite", "nowhere/weights.npz", "nowhere is no folder to write weights.npz to"),
        ("bitpacked_chain.float.tflite", "weights.npz", "has no binary layers"),
    ],
)
def test_weights_that_cannot_be_written_are_one_line(
    model: str, weights: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = refused(capsys, "inspect", GOLDEN / model, "--weights", tmp_path / weights)
    assert re.match(f"litebnn: .*{said}", line)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"hello" * 100, MODEL.read_bytes()[:-500]])
def test_what_is_no_model_is_one_line(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    assert refused(capsys, "inspect", "--json", path).startswith(f"litebnn: {path}: ")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module:network", "no_such_module"),
        ("networks_of_a_test.py:text", "expected the module that it holds, networks_of_a_test:text"),
        ("networks_of_a_test:nothing", "nothing"),
        ("networks_of_a_test:fails", "RuntimeError: no such data"),
        ("networks_of_a_test:text", "expected a Keras model, got str"),
        ("no_such_file.keras", "no_such_file.keras"),
    ],
)
def test_what_cannot_be_built_is_one_line(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "networks_of_a_test.py").write_text(
        "def fails():\n    raise RuntimeError('no such data\\nmore')\n\ndef text():\n    return 'a network'\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "networks_of_a_test", raising=False)
    assert said in refused(capsys, "summary", name)


def test_summary_of_a_file_is_that_of_what_it_becomes(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["summary", "--json", str(GOLDEN / "bitpacked_chain.float.tflite")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["totals"]["macs"]["binary"] > 0
    assert "LceBconv2d" in {row["op"] for row in found["ops"]}


def test_summary_says_why_layers_are_not_binary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.input(1, 6, 6, 8)
    for _ in range(6):
        x = model.conv(x, rng.standard_normal((8, 1, 1, 8)))
    binary = model.conv(model.sign(x), sign_weights(rng, 32, 1, 1, 8))
    source, page = tmp_path / "network.tflite", tmp_path / "page.html"
    source.write_bytes(model.finish(model.elementwise("RELU", binary)))
    assert cli.main(["summary", str(source), "--report", str(page)]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("· not binary")]
    reason = "its input is not the output of a sign"
    assert line.startswith(f"· not binary: {reason} (")
    assert line.endswith(", 2 others)")
    assert "Layers that are not binary" in page.read_text(encoding="utf-8")
    assert cli.main(["summary", str(source), "--json"]) == 0
    layers = json.loads(capsys.readouterr().out)["layers"]
    assert [layer["reasons"] for layer in layers if not layer["binary"]] == [[reason]] * 6
    assert cli.main(["inspect", str(source), "--json"]) == 0
    assert "layers" not in json.loads(capsys.readouterr().out)


def test_shapes_are_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["summary", "a:b", "--input-shape=1,x"])
    assert "1,x is no shape" in capsys.readouterr().err
    assert "--input-shape is for a PyTorch module" in refused(capsys, "summary", MODEL, "--input-shape=1,3,32,32")
    assert "--input-shape is for a PyTorch module, and fractions:Fraction gives a Fraction" in refused(
        capsys, "summary", "fractions:Fraction", "--input-shape=1,3,32,32"
    )


def test_estimated_times_are_written_for_model_explorer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "times.json"
    assert cli.main(["inspect", str(MODEL), "--model-explorer", str(path)]) == 0
    assert json.loads(path.read_text())["results"]["0"]["value"] > 0
    path.unlink()
    assert "nothing is estimated for moon: expected one of host, rpi3, rpi4, rpi5" in refused(
        capsys, "inspect", str(MODEL), "--model-explorer", str(path), "--board=moon"
    )
    assert not path.exists()
    model, empty = FloatModel(), tmp_path / "empty.tflite"
    empty.write_bytes(model.finish(model.input(1, 4)))
    assert cli.main(["inspect", str(empty), "--model-explorer", str(path)]) == 0
    assert json.loads(path.read_text())["results"] == {}
    assert "--model-explorer writes, which is not given" in refused(capsys, "inspect", str(MODEL), "--board=rpi4")


def test_the_times_for_model_explorer_do_not_replace_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(MODEL.read_bytes())
    assert "expected another name for the .json file" in refused(
        capsys, "inspect", str(model), "--model-explorer", str(model)
    )
    assert model.read_bytes() == MODEL.read_bytes()
