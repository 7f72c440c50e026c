"""Tests the Docker toolchain with a real engine: the image, and a library built in it."""

import os
import subprocess

import pytest

from tests.needs import need
from toolchains.binaries import exported_names, floors
from toolchains.build import build
from toolchains.container import LOCAL_BASE, build_image, connect, image_name, run_in_container
from toolchains.needs import missing
from toolchains.targets import BUILD, ROOT

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def image() -> str:
    need("docker-engine", "pypi")
    client = connect()
    if not client.images.list(name=LOCAL_BASE) and not missing("debootstrap") and os.getuid() == 0:
        subprocess.run([ROOT / "docker" / "base_image.sh"], check=True)
    return build_image()


def test_the_image_is_built_once(image: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert image == image_name(connect()) == build_image()
    assert capsys.readouterr().out == ""


def test_rpi4(image: str) -> None:
    library = build("rpi4", "docker")
    assert 17 <= int(floors(library)["GLIBC"].split(".")[1]) <= 28
    assert exported_names(library) == exported_names(build("rpi4", "zig"))
    assert library.stat().st_uid == os.getuid()
    assert {path.stat().st_uid for path in (BUILD / "rpi4" / "docker").rglob("*")} == {os.getuid()}


def test_only_build_is_written(image: str) -> None:
    log = BUILD / "container.log"
    with log.open("w", encoding="utf-8") as file:
        outside = run_in_container(["touch", str(ROOT / "docker" / "new")], file)
        inside = run_in_container(["touch", str(BUILD / "new")], file)
    assert outside != 0
    assert "Read-only file system" in log.read_text(encoding="utf-8")
    assert not (ROOT / "docker" / "new").exists()
    assert inside == 0
    (BUILD / "new").unlink()
    log.unlink()
