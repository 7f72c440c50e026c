import importlib
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.needs import need
from toolchains import container
from toolchains.container import connect, find_docker, image_name
from toolchains.targets import ROOT, ToolkitError, find_target


def test_no_engine_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need("docker")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    refusal = r"^no Docker engine answers; is it started, and may you use it\? \(.*\): apt install docker\.io && .*$"
    with pytest.raises(ToolkitError, match=refusal):
        connect()


def forget_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "docker"]:
        monkeypatch.delitem(sys.modules, name)


def test_the_package_goes_before_the_folder_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    need("docker")
    forget_docker(monkeypatch)
    monkeypatch.syspath_prepend(str(ROOT))
    assert Path(str(importlib.import_module("docker").__file__)).parent != container.RECIPE


def test_the_folder_does_not_pass_for_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_docker(monkeypatch)
    standard_library = [path for path in sys.path if "site-packages" not in path]
    monkeypatch.setattr(sys, "path", [str(ROOT), *standard_library])
    assert importlib.import_module("docker").__file__ is None
    with pytest.raises(ToolkitError, match=r"pip install 'litebnn\[docker\]'"):
        connect()


def test_the_host_is_not_the_container() -> None:
    with pytest.raises(ToolkitError, match="host is this machine, not the container"):
        find_docker(find_target("host"))


def engine(*bases: str, **functions: Any) -> Any:
    """A client of an engine that has base images of these identifiers, and no other image."""
    images = [SimpleNamespace(id=base) for base in bases]
    listed = SimpleNamespace(list=lambda name: images if name == container.LOCAL_BASE else [], **functions)
    return SimpleNamespace(images=listed, version=lambda: {"Arch": "amd64"})


def test_the_image_is_named_after_its_recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_bytes((container.RECIPE / "Dockerfile").read_bytes())
    before = image_name(engine())
    monkeypatch.setattr(container, "RECIPE", tmp_path)
    assert image_name(engine()) == before
    (tmp_path / "Dockerfile").write_text("FROM another\n")
    assert image_name(engine()) != before
    (tmp_path / "Dockerfile").write_bytes((ROOT / "docker" / "Dockerfile").read_bytes())
    zig = container.find("ziglang")
    monkeypatch.setattr(container, "find", lambda name: replace(zig, version="0.1"))
    assert image_name(engine()) != before


def test_another_base_image_gives_another_name() -> None:
    names = {image_name(engine(*bases)) for bases in ([], ["sha256:1"], ["sha256:2"])}
    assert len(names) == 3


@pytest.mark.parametrize("is_local", [True, False])
def test_a_base_image_of_this_machine_is_preferred(
    is_local: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    need("docker")
    asked: list[Any] = []

    def build(**options: Any) -> tuple[Any, list[Any]]:
        asked.append(options["buildargs"])
        return SimpleNamespace(attrs={"Size": 1}), []

    client = engine(*["sha256:1"] * is_local, build=build)
    monkeypatch.setattr(container, "connect", lambda: client)
    monkeypatch.setattr(container, "_unpack_compiler", lambda context, cpu: None)
    monkeypatch.setattr(container, "BUILD", tmp_path)
    assert container.build_image() == image_name(client)
    assert asked == [{"BASE": container.LOCAL_BASE} if is_local else {}]


def test_the_base_image_has_the_name_that_is_looked_for() -> None:
    script = (container.RECIPE / "base_image.sh").read_text(encoding="utf-8")
    assert f"\nimage={container.LOCAL_BASE}\n" in script
    assert "\nARG BASE=" in (container.RECIPE / "Dockerfile").read_text(encoding="utf-8")
