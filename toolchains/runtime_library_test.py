import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from toolchains import runtime_library
from toolchains.runtime_library import fetch, main
from toolchains.targets import ToolkitError


def pack(folder: Path, package: runtime_library.Package, files: list[str]) -> runtime_library.Package:
    """Writes an archive as the registry has it, each file holding its own path; returns the package with its hash."""
    archive = folder / f"{package.name}-{package.version}.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in files:
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(name)
            tar.addfile(member, io.BytesIO(name.encode()))
    return replace(package, sha256=hashlib.sha256(archive.read_bytes()).hexdigest())


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A registry of our own in a folder; the built folders go to another one."""
    shelf = tmp_path / "registry"
    shelf.mkdir()
    tflite_files = [*runtime_library.TFLITE_LIBRARY.values(), f"cc_deps/include/{runtime_library.C_API}", "README.md"]
    monkeypatch.setattr(runtime_library, "TFLITE", pack(shelf, runtime_library.TFLITE, tflite_files))
    monkeypatch.setattr(runtime_library, "STB", pack(shelf, runtime_library.STB, [runtime_library.STB_IMAGE]))
    monkeypatch.setattr(runtime_library, "REGISTRY", shelf.as_uri())
    monkeypatch.setattr(runtime_library, "BUILD", tmp_path / "build")
    monkeypatch.setattr(runtime_library.shutil, "which", lambda name: None)  # no npm
    for package in (runtime_library.TFLITE, runtime_library.STB):
        folder = shelf / package.name / "-"
        folder.mkdir(parents=True)
        (shelf / f"{package.name}-{package.version}.tgz").rename(folder / f"{package.name}-{package.version}.tgz")
    return shelf


def own_build(folder: Path, include: str = "include") -> Path:
    header = folder / include / runtime_library.C_API
    header.parent.mkdir(parents=True)
    header.write_text("own header")
    (folder / runtime_library.LIBRARY).write_text("own library")
    return folder


def test_takes_the_library_of_the_targets_cpu(registry):
    folder = fetch("rpi4")
    assert (folder / runtime_library.LIBRARY).read_text() == "cc_deps/linux_arm64/libtensorflowlite_c.so"
    assert (folder / "include" / runtime_library.C_API).is_file()
    assert (folder / "include/stb_image.h").read_text() == runtime_library.STB_IMAGE
    assert not (folder / "README.md").exists()


def test_a_second_fetch_needs_no_registry(registry):
    folder = fetch("x86_64")
    registry.rename(registry.with_name("gone"))
    assert fetch("x86_64") == folder


def test_an_altered_package_is_refused_and_the_former_folder_stays(registry, monkeypatch):
    folder = fetch("rpi4")
    monkeypatch.setattr(runtime_library, "TFLITE", replace(runtime_library.TFLITE, sha256="0" * 64))
    with pytest.raises(ToolkitError, match=r"^tfjs-tflite-node 0\.0\.2 is not as published: sha256 .*, not 0000"):
        fetch("rpi4")
    assert (folder / runtime_library.LIBRARY).is_file()
    assert [path.name for path in folder.parent.iterdir()] == ["rpi4"]


def test_a_registry_out_of_reach_is_one_line(registry, capsys):
    registry.rename(registry.with_name("gone"))
    assert main(["--target=rpi4"]) == 1
    assert capsys.readouterr().err.startswith("error: cannot fetch tfjs-tflite-node 0.0.2 from ")


@pytest.mark.parametrize("target", ["rpi3", "armv7", "android-arm64"])
def test_a_cpu_without_a_published_library_points_to_tflite_dir(registry, target):
    with pytest.raises(ToolkitError, match=rf"^no C library is published for {target}.*--tflite-dir$"):
        fetch(target)


@pytest.mark.parametrize("include", ["include", "."])
def test_own_library_replaces_the_published_one(registry, tmp_path, include):
    fetch("rpi4")
    folder = fetch("rpi4", own_build(tmp_path / "own", include))
    assert (folder / runtime_library.LIBRARY).read_text() == "own library"
    assert (folder / "include" / runtime_library.C_API).read_text() == "own header"
    assert (folder / "include/stb_image.h").is_file()


def test_own_library_serves_any_target(registry, tmp_path):
    assert fetch("rpi3", own_build(tmp_path / "own")).name == "rpi3"


@pytest.mark.parametrize("missing", [runtime_library.LIBRARY, runtime_library.C_API])
def test_own_build_that_lacks_something_is_named(registry, tmp_path, missing):
    own = own_build(tmp_path / "own")
    next(path for path in own.rglob(Path(missing).name)).unlink()
    with pytest.raises(ToolkitError, match=rf"^--tflite-dir=.*own has no {missing}"):
        fetch("rpi4", own)


@pytest.mark.parametrize("says", ["npm error code E404", "npm ERR! code E404"])
def test_npm_says_why_it_fails(registry, tmp_path, monkeypatch, says):
    npm = tmp_path / "npm"
    npm.write_text(f"#!/bin/sh\necho 'npm warn old' >&2\necho '{says}' >&2\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.undo()
    monkeypatch.setattr(runtime_library, "BUILD", tmp_path / "build")
    monkeypatch.setenv("PATH", str(tmp_path))
    # The script's interpreter is named by its path, so this PATH is enough.
    with pytest.raises(ToolkitError, match=rf"^npm cannot fetch tfjs-tflite-node 0\.0\.2: {says}$"):
        fetch("rpi4")


def test_a_folder_that_cannot_be_written_is_one_line(registry, tmp_path, capsys):
    (tmp_path / "build").write_text("a file")
    assert main(["--target=rpi4"]) == 1
    assert capsys.readouterr().err.splitlines() == [f"error: [Errno 20] Not a directory: '{tmp_path}/build/runtime'"]
