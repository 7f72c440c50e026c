import json
from pathlib import Path

import pytest

from litebnn import cli
from tests.evaluate.data_sets import MODEL, class_folders, expected_counts, noise, npz
from tests.needs import need

pytestmark = pytest.mark.usefixtures("library")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_json_has_all_figures(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", str(MODEL), "--data", str(npz(Path("a.npz"))), "--workers=0", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    expected = expected_counts(*noise(100))
    assert found["samples"] == expected.pop("samples")
    assert {name: found["models"][0][name] for name in expected} == expected
    assert found["images_per_second"] > 0


def test_two_models_are_a_table(capfd: pytest.CaptureFixture[str]) -> None:
    need("evaluate")
    class_folders(Path("images"))
    Path("images/7/bad.png").write_bytes(b"bad")
    assert cli.main(["evaluate", str(MODEL), str(MODEL), "--data=images", "--workers=0"]) == 0
    out, err = capfd.readouterr()
    lines = out.splitlines()
    top_1 = f"{100 * expected_counts(*noise(20))['top_1']:.2f} %"
    assert lines[0].split() == ["model", "top-1", "top-5", "ms/image", "same", "as", "1", "same", "as", "2"]
    assert all(line.split(str(MODEL))[1].strip().startswith(top_1) for line in lines[1:3])
    assert lines[-1].startswith("20 images, 1 left out, ")
    assert err == "litebnn: images/7/bad.png is left out: it is no image that Pillow knows\n"


def test_an_interrupted_command_says_how_to_go_on(capfd, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("my_data.py").write_text(
        "from tests.evaluate.data_sets import noise\n"
        "def batches():\n    yield noise(20)\n    yield noise(10)\n    raise KeyboardInterrupt\n"
    )
    assert cli.main(["evaluate", str(MODEL), "--data=my_data:batches", "--workers=0", "--partial=p"]) == 130
    first, second = capfd.readouterr().err.splitlines()
    assert first == "litebnn: the results of 30 samples are kept in p, where the same command goes on"
    assert second == "litebnn: interrupted"


def test_mistakes_are_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["--data=nowhere"], "nowhere is no file or folder: expected"),
        (["--data=a.npz", "--preprocess=zooo"], "preprocess is zooo, expected"),
    ):
        npz(Path("a.npz"))
        assert cli.main(["evaluate", str(MODEL), "--workers=0", *arguments]) == 1
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith(f"litebnn: {message}")
