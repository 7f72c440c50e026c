import hashlib
import io
import os
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from toolchains import runtime_library
from toolchains.fetch import npm
from toolchains.fetch.lock import Locked
from toolchains.runtime_library import fetch, fetch_c_library, library_in, main, runtime_folder
from toolchains.targets import ToolkitError


def pack(folder: Path, package: Locked, files: list[str]) -> Locked:
    """Writes an archive as the npm registry has it. Each file in the archive contains its own path. Returns the
    package with its hash.
    """
    archive = folder / f"{package.package}-{package.version}.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in files:
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(name)
            tar.addfile(member, io.BytesIO(name.encode()))
    return replace(package, sha256=(hashlib.sha256(archive.read_bytes()).hexdigest(),))


def pack_wheel(folder: Path, platform: str) -> str:
    """Writes a wheel of LiteRT with a fake library, which contains the platform's name. Returns the wheel's hash."""
    name, version = "ai_edge_litert", runtime_library.LITERT_VERSION
    wheel = folder / f"{name}-{version}-cp311-cp311-{platform}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}/libLiteRt.so", platform)
        archive.writestr(f"{name}-{version}.dist-info/METADATA", f"Name: ai-edge-litert\nVersion: {version}\n")
        tag = f"Root-Is-Purelib: false\nTag: cp311-cp311-{platform}\n"
        archive.writestr(f"{name}-{version}.dist-info/WHEEL", f"Wheel-Version: 1.0\n{tag}")
        archive.writestr(f"{name}-{version}.dist-info/RECORD", "")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """Replaces the registries of pip and npm by files in a folder. The fetched libraries go to another folder."""
    shelf = tmp_path / "registry"
    shelf.mkdir()
    hashes = tuple(pack_wheel(shelf, tag) for tag in runtime_library.LITERT_WHEELS.values())
    monkeypatch.setattr(runtime_library, "LITERT", replace(runtime_library.LITERT, sha256=hashes))
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    tflite_files = [*runtime_library.TFLITE_LIBRARY.values(), f"cc_deps/include/{runtime_library.C_API}", "README.md"]
    monkeypatch.setattr(runtime_library, "TFLITE", pack(shelf, runtime_library.TFLITE, tflite_files))
    monkeypatch.setattr(runtime_library, "STB", pack(shelf, runtime_library.STB, [runtime_library.STB_IMAGE]))
    monkeypatch.setattr(npm, "NPM", shelf.as_uri())
    monkeypatch.setattr(runtime_library, "BUILD", tmp_path / "build")
    monkeypatch.setattr(npm.shutil, "which", lambda name: None)  # no npm
    for package in (runtime_library.TFLITE, runtime_library.STB):
        folder = shelf / package.package / "-"
        folder.mkdir(parents=True)
        (shelf / f"{package.package}-{package.version}.tgz").rename(folder / f"{package.package}-{package.version}.tgz")
    return shelf


def own_build(folder: Path, include: str = "include") -> Path:
    header = folder / include / runtime_library.C_API
    header.parent.mkdir(parents=True)
    header.write_text("own header")
    (folder / runtime_library.C_LIBRARY).write_text("own library")
    return folder


def test_takes_the_library_of_the_targets_cpu_out_of_the_wheel(registry):
    folder = fetch("rpi4")
    assert library_in(folder) == folder / "libLiteRt.so"
    assert library_in(folder).read_text() == "manylinux_2_27_aarch64"
    version = f'#define LITERT_VERSION "{runtime_library.LITERT_VERSION}"\n'
    assert (folder / "include/litert_version.h").read_text() == version
    assert (folder / "include/stb_image.h").read_text() == runtime_library.STB_IMAGE


def test_a_second_fetch_needs_no_registry(registry):
    folder = fetch("x86_64")
    registry.rename(registry.with_name("gone"))
    assert fetch("x86_64") == folder


def test_an_altered_wheel_is_refused_and_the_former_folder_stays(registry, monkeypatch):
    folder = fetch("rpi4")
    monkeypatch.setattr(runtime_library, "LITERT", replace(runtime_library.LITERT, sha256=("0" * 64,)))
    with pytest.raises(ToolkitError, match=r"^cannot install ai-edge-litert==.* for .*_aarch64: ERROR: THESE PACKAGES"):
        fetch("rpi4")
    assert library_in(folder).is_file()
    assert [path.name for path in folder.parent.iterdir()] == ["rpi4"]


def test_an_altered_package_is_refused(registry, monkeypatch):
    monkeypatch.setattr(runtime_library, "STB", replace(runtime_library.STB, sha256=("0" * 64,)))
    with pytest.raises(ToolkitError, match=r"^llama\.rn 0\.12\.9 is not as published: sha256 .*, not 0000"):
        fetch("rpi4")


def test_a_registry_out_of_reach_is_one_line(registry, capsys):
    registry.rename(registry.with_name("gone"))
    assert main(["--target=rpi4"]) == 1
    line, *others = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: cannot install ai-edge-litert=={runtime_library.LITERT_VERSION} for manylinux_")
    assert others == []


@pytest.mark.parametrize("target", ["rpi3", "armv7", "android-arm64"])
def test_a_cpu_without_a_wheel_points_to_tflite_dir(registry, target):
    with pytest.raises(ToolkitError, match=rf"^there is no LiteRT for {target}.*--tflite-dir$"):
        fetch(target)


def test_the_c_library_of_2022_has_a_folder_of_its_own(registry):
    folder = fetch_c_library("rpi4")
    assert library_in(folder).read_text() == "cc_deps/linux_arm64/libtensorflowlite_c.so"
    assert (folder / "include" / runtime_library.C_API).is_file()
    assert not (folder / "README.md").exists()
    assert folder != runtime_folder("rpi4")
    with pytest.raises(ToolkitError, match="^no C library is published for armv7"):
        fetch_c_library("armv7")


@pytest.mark.parametrize("include", ["include", "."])
def test_own_library_replaces_the_published_one(registry, tmp_path, include):
    fetch("rpi4")
    folder = fetch("rpi4", own_build(tmp_path / "own", include))
    assert library_in(folder).read_text() == "own library"
    assert (folder / "include" / runtime_library.C_API).read_text() == "own header"
    assert (folder / "include/stb_image.h").is_file()


def test_own_library_serves_any_target(registry, tmp_path):
    assert fetch("rpi3", own_build(tmp_path / "own")).name == "rpi3"


@pytest.mark.parametrize("missing", [runtime_library.C_LIBRARY, runtime_library.C_API])
def test_own_build_that_lacks_something_is_named(registry, tmp_path, missing):
    own = own_build(tmp_path / "own")
    next(path for path in own.rglob(Path(missing).name)).unlink()
    with pytest.raises(ToolkitError, match=rf"^--tflite-dir=.*own has no {missing}"):
        fetch("rpi4", own)


@pytest.mark.parametrize("says", ["npm error code E404", "npm ERR! code E404"])
def test_npm_says_why_it_fails(registry, tmp_path, monkeypatch, says):
    program = tmp_path / "npm"
    program.write_text(f"#!/bin/sh\necho 'npm warn old' >&2\necho '{says}' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.undo()
    monkeypatch.setattr(runtime_library, "BUILD", tmp_path / "build")
    monkeypatch.setenv("PATH", str(tmp_path))
    # The script needs no PATH of its own, because its interpreter has an absolute path.
    with pytest.raises(ToolkitError, match=rf"^npm cannot fetch tfjs-tflite-node 0\.0\.2: {says}$"):
        fetch_c_library("rpi4")


def test_a_folder_that_cannot_be_written_is_one_line(registry, tmp_path, capsys):
    (tmp_path / "build").write_text("a file")
    assert main(["--target=rpi4"]) == 1
    assert capsys.readouterr().err.splitlines() == [f"error: [Errno 20] Not a directory: '{tmp_path}/build/runtime'"]
