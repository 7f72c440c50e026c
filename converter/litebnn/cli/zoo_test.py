"""Tests `litebnn zoo`: the list, and the options that it refuses before anything is fetched or built."""

import json
from pathlib import Path

import pytest

from litebnn import cli
from litebnn.zoo.networks import NETWORKS, figures


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LITEBNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LITEBNN_ZOO_MIRROR", "http://127.0.0.1:9")
    monkeypatch.setattr("litebnn.zoo.fetch._PAUSE", 0.0)


def test_the_list_has_each_network(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["zoo"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].split("  ")[0] == "network"
    assert [line.split()[0] for line in lines[1 : len(NETWORKS) + 1]] == [each.command for each in NETWORKS.values()]
    quicknet = next(line for line in lines if line.startswith("quicknet "))
    assert quicknet.split()[1:7] == ["63.3", "84.6", "1.85", "G", "29.7", "M"]


def test_json_has_the_figures_and_the_address(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["zoo", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)["birealnet"]
    assert found["bytes"] == figures()["BiRealNet"].bytes
    assert found["weights"].endswith("/birealnet-v0.3.0/birealnet_weights.h5")
    assert set(found["seconds"]) == {"rpi3", "rpi4", "rpi5"}


def test_every_network_has_figures() -> None:
    assert list(figures()) == list(NETWORKS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resnet50", "-o", "a.tflite"], 'the zoo has no network "resnet50", expected one of quicknetsmall, quicknet,'),
        (["quicknet"], "-o is missing: expected the name of a .tflite file to write quicknet to"),
        (["-o", "a.tflite"], "--output is for one network, which is not named"),
        (["quicknet", "-o", "nowhere/a.tflite"], "nowhere is no folder to write a.tflite to"),
        (["quicknet", "-o", "a.tflite", "--labels", "l.txt"], "--labels is for --weights of your own"),
        (["quicknet", "-o", "a.tflite", "--weights=random", "--labels=empty.txt"], "empty.txt has no labels"),
        (["quicknet", "-o", "a.tflite", "--weights=random", "--labels=b.txt"], "b.txt is no text in UTF-8: "),
        (["quicknet", "-o", "a.tflite"], "cannot fetch http://127.0.0.1:9/quicknet-v1.0/quicknet_weights.h5: "),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("l.txt").write_text("a\nb\n")
    Path("empty.txt").write_text("\n\n")
    Path("b.txt").write_bytes(b"\xff\n")
    assert cli.main(["zoo", *arguments]) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"litebnn: {message}")
    assert not Path("a.tflite").exists()
