import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn import cli
from tests.support.commands import refused
from tests.support.float_models import FloatModel, any_size_model

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"
FLOAT, BINARY = (str(GOLDEN / f"int8_qat.{kind}.tflite") for kind in ("float", "lce"))


@pytest.mark.usefixtures("library")
def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", FLOAT, BINARY, "--runs", "1"]) == 0
    heads, first, second, _, output, count, *_, layers = capsys.readouterr().out.rstrip().split("\n", 8)
    assert " ".join(heads.split()) == "bytes binary MACs int8 MACs float MACs median ms peak MiB"
    assert first.split()[:2] == [FLOAT, f"{Path(FLOAT).stat().st_size:,}"]
    assert len(second.split()) == 7
    assert "of its largest value in 4 samples; the largest value is the same in " in output
    assert "3 of the 6 layers that both models have differ, these first:" in count
    assert " signs " in layers


@pytest.mark.usefixtures("library")
def test_the_exit_code_tells_whether_the_outputs_differ(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def code(*options: str | Path) -> int:
        return cli.main(["compare", FLOAT, BINARY, "--runs", "0", "--samples", "1", *map(str, options)])

    assert code("--tolerance", "0.5") == 0
    capsys.readouterr()
    assert code("--tolerance", "1e-6", "--json") == 2
    found = json.loads(capsys.readouterr().out)
    assert found["models"] == [FLOAT, BINARY]
    assert found["difference"] == found["outputs"][0]["difference"] > 1e-6
    assert found["measurements"] == []
    assert found["layers"][0]["layer"] == "model/add/add"


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("name", ["inputs.npy", "inputs.npz"])
def test_inputs_come_from_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    [shape] = litebnn.Interpreter(FLOAT).input_shapes
    samples = np.random.default_rng(0).standard_normal((3, *shape[1:])).astype(np.float32)
    write = np.save if name.endswith("y") else lambda path, array: np.savez(path, any_name=array)
    write(tmp_path / name, samples)
    assert cli.main(["compare", FLOAT, BINARY, "--runs", "0", "--json", "--input", str(tmp_path / name)]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 3


@pytest.mark.usefixtures("library")
def test_models_of_images_of_any_size(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("float.tflite", "binary.tflite", "images.npy")]
    for path, content in zip(paths, (any_size_model(), litebnn.convert_tflite(any_size_model())), strict=False):
        path.write_bytes(content)
    np.save(paths[2], np.random.default_rng(0).standard_normal((3, 20, 9, 3)).astype(np.float32))
    models = [str(path) for path in paths[:2]]
    for options, shape in (([], [1, 64, 64, 3]), (["--input", str(paths[2])], [1, 20, 9, 3])):
        assert cli.main(["compare", *models, "--runs", "1", "--json", *options]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["difference"] < 1e-4
        assert [one["input_shapes"] for one in found["measurements"]] == [[shape], [shape]]


def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    told = partial(refused, capsys, "compare")
    text = tmp_path / "text.tflite"
    text.write_text("hello" * 100)
    assert f"litebnn: {text}: not a .tflite file" in told(FLOAT, text)
    unsound = tmp_path / "unsound.tflite"
    model = FloatModel()
    unsound.write_bytes(model.finish(model.op("RESHAPE", [model.input(4, 8), model.const([3, 8], np.int32)], (3, 8))))
    assert told(FLOAT, unsound).startswith(f"litebnn: {unsound}: op 0 (RESHAPE): ")
    none = tmp_path / "none.tflite"
    assert told(FLOAT, none) == f"litebnn: {none}: No such file or directory"
    assert f"{text} cannot be read as .npy or .npz" in told(FLOAT, BINARY, "--input", text)
    assert "different outputs" in told(FLOAT, GOLDEN / "1x1.lce.tflite")
    assert "no whole number" in told(FLOAT, BINARY, "--samples", "0")
    for number in ("little", "-1", "nan", "inf"):
        assert f"{number} is no number of at least 0" in refused(
            capsys, "compare", FLOAT, BINARY, f"--tolerance={number}"
        )
