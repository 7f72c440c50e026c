"""The wrappers of an exported network follow the rules of Arduino, PlatformIO, Zephyr and ESP-IDF."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import litebnn
from litebnn.micro.settings import PACKAGES
from toolchains.targets import ROOT

pytestmark = pytest.mark.usefixtures("library")
MODEL = ROOT / "tests" / "golden" / "1x1.lce.tflite"
# The categories that arduino-lint accepts: https://arduino.github.io/arduino-cli/latest/library-specification/.
CATEGORIES = (
    *("Display", "Communication", "Signal Input/Output", "Sensors", "Device Control", "Timing", "Data Storage"),
    *("Data Processing", "Other"),
)
REQUIRED = ("name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages") / "net_1"
    litebnn.export_c(MODEL, folder, name="net_1", packages=list(PACKAGES))
    return folder


def sources(folder: Path) -> set[str]:
    return {f"src/{path.name}" for path in (folder / "src").glob("*.c")}


def test_arduinos_rules(folder: Path) -> None:
    lines = (folder / "library.properties").read_text().splitlines()
    found = dict(line.split("=", 1) for line in lines)
    assert all(found.get(key) for key in REQUIRED)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.\-]{0,62}", found["name"])
    assert not found["name"].lower().startswith("arduino")
    assert re.fullmatch(r"\d+\.\d+\.\d+", found["version"])
    assert found["category"] in CATEGORIES
    assert found["url"].startswith("https://")
    assert found["sentence"].endswith(".")
    assert (folder / "src" / found["includes"]).is_file()
    assert (folder / "README.md").is_file()
    examples = [path for path in (folder / "examples").iterdir() if path.is_dir()]
    assert examples
    for example in examples:
        # Arduino requires a sketch to have the name of its folder.
        assert f"#include <{found['includes']}>" in (example / f"{example.name}.ino").read_text()
    assert re.fullmatch(r"net_1_run\tKEYWORD2\n", (folder / "keywords.txt").read_text())
    assert not {path.name.lower() for path in folder.iterdir()} & {"example", "source", "extra"}
    assert not any(path.suffix in (".exe", ".a", ".o") or path.is_symlink() for path in folder.rglob("*"))


def test_platformios_manifest(folder: Path) -> None:
    manifest = json.loads((folder / "library.json").read_text())
    assert manifest["name"] == "net_1"
    assert re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])
    assert (folder / manifest["build"]["srcDir"] / manifest["headers"]).is_file()


def test_zephyrs_module(folder: Path) -> None:
    module = (folder / "zephyr" / "module.yml").read_text()
    assert re.search(r"^build:\n  cmake: zephyr\n  kconfig: zephyr/Kconfig$", module, re.MULTILINE)
    listed = re.findall(r"\.\./(src/[\w.]+\.c)", (folder / "zephyr" / "CMakeLists.txt").read_text())
    assert set(listed) == sources(folder)
    assert "config LITEBNN_NET_1\n" in (folder / "zephyr" / "Kconfig").read_text()


def test_esp_idfs_component(folder: Path) -> None:
    text = (folder / "CMakeLists.txt").read_text()
    component = text[text.index("if(ESP_PLATFORM)") : text.index("endif()")]
    assert set(re.findall(r"src/[\w.]+\.c", component)) == sources(folder)
    assert "idf_component_register(SRCS" in component
    assert re.search(r'^version: "\d+\.\d+\.\d+"$', (folder / "idf_component.yml").read_text(), re.MULTILINE)


def test_no_placeholder_is_left(folder: Path) -> None:
    for path in folder.rglob("*"):
        assert not path.is_file() or not re.search(r"@[A-Z_]+@", path.read_text()), path
