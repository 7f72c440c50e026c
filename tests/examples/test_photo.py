"""Tests `invoke photo`, from weights to a picture of the result."""

from pathlib import Path

import pytest

from examples.photo import __main__ as photo
from litebnn.flatbuffer.metadata import read_metadata
from tests.needs import imported

Image = imported("PIL.Image", "photo")


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(photo, "OUTPUT", tmp_path / "photo")
    monkeypatch.setenv("LITEBNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LITEBNN_ZOO_MIRROR", "http://127.0.0.1:9")
    monkeypatch.setattr("litebnn.zoo.fetch._PAUSE", 0.0)


@pytest.mark.deep
@pytest.mark.needs("keras")
def test_a_photograph_is_classified_and_drawn(
    tmp_path: Path, library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert photo.main(["--network=quicknetsmall", "--weights=random"]) == 0
    printed = capsys.readouterr().out
    assert "The weights are random" in printed
    metadata = read_metadata((tmp_path / "photo" / "quicknetsmall.tflite").read_bytes())
    assert metadata is not None
    assert sum(label in printed for label in metadata.labels) >= 5
    with Image.open(tmp_path / "photo" / "quicknetsmall.png") as picture:
        assert picture.width == 480
        assert picture.height > 400


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--network=resnet50"], 'the zoo has no network "resnet50"'),
        (["--image=nowhere.jpg"], "[Errno 2] No such file or directory"),
        ([f"--image={__file__}"], f"{__file__} is no image that Pillow knows"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert photo.main(arguments) == 1
    assert capsys.readouterr().err.startswith(f"photo: {message}")


@pytest.mark.deep
@pytest.mark.needs("keras")
def test_without_a_network_it_says_what_to_fetch(capsys: pytest.CaptureFixture[str]) -> None:
    assert photo.main([]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("photo: cannot fetch http://127.0.0.1:9/quicknet-v1.0/quicknet_weights.h5: ")
    assert "put it at" in line
