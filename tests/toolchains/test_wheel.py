"""Tests the wheel for this machine's platform: its contents, and its installation by pip in an empty environment."""

import json
import os
import platform
import subprocess
import sys
import venv
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from packaging.requirements import Requirement

from hatch_build import LibraryHook
from litebnn.micro import folder
from litebnn.micro.folder import sources
from tests.needs import need
from toolchains.release import archives
from toolchains.release.products import Product
from toolchains.targets import ROOT, find_target, load_targets
from toolchains.wheel import TARGET_VARIABLE, build_wheel, write_c_sources


@pytest.fixture(scope="module")
def wheel() -> Path:
    name = platform.machine()
    if sys.platform != "linux" or name not in load_targets():
        pytest.skip(f"no wheels for {sys.platform} on {name}")
    need("pypi")
    return build_wheel(name)


def test_an_installed_package_has_the_c_sources_of_the_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = sources()
    assert {PurePosixPath("LICENSE"), PurePosixPath("bconv2d.c")} <= set(expected)
    write_c_sources(tmp_path / "sources.zip")
    monkeypatch.setattr(folder, "__file__", str(tmp_path / "folder.py"))
    assert sources.__wrapped__() == expected


@pytest.mark.deep
def test_contents(wheel: Path) -> None:
    assert wheel.name.endswith(f"-py3-none-manylinux_2_28_{platform.machine()}.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith("/WHEEL"))
    assert "litebnn/lib/liblitebnn.so" in names
    assert {"litebnn/report/costs.json", "litebnn/report/guidelines.json"} <= set(names)
    assert "litebnn/__init__.py" in names
    assert [name for name in names if name.endswith("_test.py") or name.startswith("tests")] == []
    assert "Root-Is-Purelib: false" in metadata
    assert f"Tag: py3-none-manylinux_2_28_{platform.machine()}" in metadata


@pytest.mark.deep
@pytest.mark.needs("release")
@pytest.mark.parametrize("check", ["version", "size", "exports", "licenses", "bill"])
def test_it_is_as_a_release_promises(wheel: Path, check: str) -> None:
    product = Product("wheel", find_target(platform.machine()))
    assert getattr(archives, check)(product, wheel)


@pytest.mark.parametrize(
    ("cxx", "installed", "brings_compiler"),
    [("", "g++", False), ("", "gfortran", True), ("here -m64", "here", False), ("no-such-compiler", "g++", False)],
)
def test_pip_brings_a_compiler_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cxx: str, installed: str, brings_compiler: bool
) -> None:
    (tmp_path / installed).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", cxx)
    metadata = ProjectMetadata(str(ROOT), PluginManager())
    hook = LibraryHook(str(ROOT), {}, None, metadata, str(tmp_path), "wheel")
    assert any(requirement.startswith("ziglang") for requirement in hook.dependencies()) == brings_compiler


@pytest.mark.parametrize(
    ("target", "runtimes"),
    [
        ("rpi3", {"tflite-runtime>=2.14", "numpy<2"}),
        ("armv7", {"tflite-runtime>=2.14", "numpy<2"}),
        ("rpi4", {"ai-edge-litert>=1.2"}),
        ("x86_64", {"ai-edge-litert>=1.2"}),
    ],
)
def test_a_wheel_asks_for_its_platforms_runtime_whatever_the_kernel_says(
    monkeypatch: pytest.MonkeyPatch, target: str, runtimes: set[str]
) -> None:
    monkeypatch.setenv(TARGET_VARIABLE, target)
    texts = ProjectMetadata(str(ROOT), PluginManager()).core.dependencies
    assert runtimes == set(texts) - {"flatbuffers>=23.5.26", "numpy>=1.23", "rich>=13", "shtab>=1.9"}


@pytest.mark.parametrize(
    ("machine", "runtime"), [("armv7l", "tflite-runtime"), ("aarch64", "ai-edge-litert"), ("x86_64", "ai-edge-litert")]
)
def test_elsewhere_the_machine_decides(monkeypatch: pytest.MonkeyPatch, machine: str, runtime: str) -> None:
    monkeypatch.delenv(TARGET_VARIABLE, raising=False)
    requirements = map(Requirement, ProjectMetadata(str(ROOT), PluginManager()).core.dependencies)
    asked = {
        each.name for each in requirements if not each.marker or each.marker.evaluate({"platform_machine": machine})
    }
    assert asked == {"numpy", "flatbuffers", "rich", "shtab", runtime}


@pytest.mark.deep
def test_auditwheel_finds_nothing_foreign(wheel: Path) -> None:
    need("auditwheel")
    run = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    said = " ".join(run.stdout.split())
    tag = said.split('consistent with the following platform tag: "manylinux_')[1].split('"')[0]
    assert tuple(map(int, tag.split("_")[:2])) <= (2, 28)


@pytest.mark.deep
def test_clean_environment(wheel: Path, tmp_path: Path) -> None:
    venv.EnvBuilder(with_pip=True).create(tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    installed = subprocess.run(
        [*pip, "install", "--quiet", "--only-binary=:all:", wheel], capture_output=True, text=True
    )
    assert installed.returncode == 0, installed.stderr
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LITEBNN_LIBRARY")}
    run = subprocess.run(
        [python, ROOT / "tests" / "emulated" / "check_wheel.py", ROOT / "tests" / "golden"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout.strip().splitlines()[-1])
    assert report["library"] == "lib/liblitebnn.so"
    assert report["runtime"] == "ai_edge_litert.interpreter"
    assert not report["tensorflow"]
    assert max(report["relative_errors"].values()) <= 1e-4
    listed = subprocess.run([*pip, "list", "--format=json"], capture_output=True, text=True, check=True)
    names = {package["name"].lower().replace("_", "-") for package in json.loads(listed.stdout)}
    assert "ai-edge-litert" in names
    assert not names & {"tensorflow", "keras", "larq", "tflite-runtime"}
