import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from toolchains import bundle as bundling
from toolchains.binaries import requirements
from toolchains.bundle import main, pack
from toolchains.targets import find_target


@pytest.fixture
def target():
    return find_target("rpi4")


def test_packs_one_folder_that_anyone_can_use(target, tmp_path):
    program, data = tmp_path / "program", tmp_path / "data"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    data.write_text("data")
    data.chmod(0o600)
    archive = pack(target, [program, data], tmp_path / "dist")
    assert archive == tmp_path / "dist" / "litebnn-rpi4.tar.gz"
    with tarfile.open(archive) as tar:
        members = {member.name: (oct(member.mode), member.uid, member.uname) for member in tar}
    assert members == {
        "litebnn-rpi4/program": ("0o755", 0, "root"),
        "litebnn-rpi4/data": ("0o644", 0, "root"),
        "litebnn-rpi4/README": ("0o644", 0, "root"),
    }


def test_the_readme_has_five_lines(target):
    assert len(bundling.readme(target, []).splitlines()) == 5


def test_the_readme_says_what_each_product_needs(target, tmp_path):
    program, data = Path(sys.executable).resolve(), tmp_path / "data"
    data.write_text("data")
    with tarfile.open(pack(target, [program, data], tmp_path / "dist")) as tar:
        readme = tar.extractfile("litebnn-rpi4/README").read().decode()
    assert readme.splitlines()[-1] == f"{program.name} {requirements(program)}"
    assert "GLIBC 2." in readme


def test_a_failure_leaves_the_former_archive_and_nothing_else(target, tmp_path):
    data = tmp_path / "data"
    data.write_text("data")
    before = pack(target, [data], tmp_path / "dist").read_bytes()
    with pytest.raises(FileNotFoundError):
        pack(target, [data, tmp_path / "missing"], tmp_path / "dist")
    assert [path.read_bytes() for path in (tmp_path / "dist").iterdir()] == [before]


def test_a_target_without_litert_is_one_line(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("toolchains.runtime_library.BUILD", tmp_path)
    assert main(["--target=armv7"]) == 1
    assert capsys.readouterr().err.startswith("error: there is no LiteRT for armv7 ")


def test_an_unknown_target_lists_the_known(capsys):
    assert main(["--target=rpi"]) == 1
    assert capsys.readouterr().err.startswith("error: no target is called 'rpi'; the targets are host, ")


def test_targets_differ_in_their_archives(target, tmp_path):
    data = tmp_path / "data"
    data.write_text("data")
    assert pack(replace(target, name="rpi5"), [data], tmp_path / "dist").name == "litebnn-rpi5.tar.gz"
