"""Tests that the wrappers of an exported network follow the rules of Arduino, PlatformIO, Zephyr and ESP-IDF."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import litebnn
from litebnn.micro import PACKAGES
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


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def sources(folder: Path) -> set[str]:
    return {f"src/{path.name}" for path in (folder / "src").glob("*.c")}


def test_arduinos_rules(folder: Path) -> None:
    """The rules of arduino-lint, whose numbers the comments give.

    LP017, LP018 and LP048 (Arduino's index), LP022 (tags in git), LP033 and LP035 (spelling), and LP042 (does the
    address answer?) are not checked here. LP013 applies only to Arduino's own libraries.
    """
    lines = (folder / "library.properties").read_text().splitlines()
    # The rules LP005, LP006, LP028, LP047, LP053 to LP055 of arduino-lint: library.properties has exactly these fields.
    found = dict(line.split("=", 1) for line in lines)
    assert set(found) == {*REQUIRED, "includes", "dot_a_linkage"}
    # The rules LP007, LP008, LP019, LP023 to LP026, LP031, LP032, LP034, LP037, LP040, LP043, LP044, LP056 of
    # arduino-lint: no field is empty.
    assert all(found.values())
    # The rules LP009 to LP012 and LP014 to LP016 of arduino-lint: the library's name has a valid form.
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_.\-]{0,15}", found["name"])
    assert not re.search("arduino|library", found["name"], re.IGNORECASE)
    assert re.fullmatch(r"\d+\.\d+\.\d+", found["version"])  # LP020, LP021
    assert "arduino" not in found["maintainer"].lower()  # LP027, LP057
    assert found["sentence"] not in found["paragraph"]  # LP036
    assert found["category"] in CATEGORIES  # LP038, LP039
    assert found["url"].startswith("https://")  # LP041
    assert found["architectures"] == "*"  # LP045, LP046
    assert found["dot_a_linkage"] == "true"  # LP049; LP050 asks for src/
    # The rules LS001, LS008, LP051 and LP052 of arduino-lint: there is a header with the library's name.
    assert (folder / "src" / found["includes"]).is_file()
    assert found["includes"] == f"{found['name']}.h"
    names = {path.name for path in folder.iterdir()}
    # The rules LS004, LS006, LS009 to LS012, LP001 to LP003, LD001, LD002, LD004 to LD006 of arduino-lint: names in the
    # library's folder.
    assert {"src", "library.properties", "README.md", "LICENSE", "examples"} <= names
    assert not {name.lower() for name in names} & {
        "example",
        "source",
        "extra",
        "utility",
        ".gitmodules",
        ".development",
    }
    assert not (folder / "src" / "library.properties").exists()  # LP004
    assert not any(
        path.suffix in (".exe", ".a", ".o") or path.is_symlink() for path in folder.rglob("*")
    )  # LS005, LS007
    assert not any("rduino.h" in path.read_text() for path in folder.rglob("*.[chi]*"))  # LC001, SC001
    # The rules LD003 and SS001 to SS005 of arduino-lint: sketches are in examples/, each in a folder of its name.
    [sketch] = folder.rglob("*.ino")
    assert sketch == folder / "examples" / sketch.stem / sketch.name
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,62}", sketch.stem)
    assert f"#include <{found['includes']}>" in sketch.read_text()
    assert re.fullmatch(r"net_1_run\tKEYWORD2\n", (folder / "keywords.txt").read_text())


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


# Stand-ins for CMake functions of ESP-IDF and Zephyr, which add the exported library to a program for this machine.
STAND_INS = {
    "esp-idf": """
set(ESP_PLATFORM 1)
function(idf_component_register)
  cmake_parse_arguments(COMPONENT "" "" "SRCS;INCLUDE_DIRS" ${ARGN})
  add_library(network STATIC ${COMPONENT_SRCS})
  target_include_directories(network PUBLIC ${COMPONENT_INCLUDE_DIRS})
  set(COMPONENT_LIB network PARENT_SCOPE)
endfunction()
add_subdirectory(${FOLDER} network)
""",
    "zephyr": """
set(CONFIG_LITEBNN_NET_1 y)
macro(zephyr_library_named name)
  add_library(${name} STATIC)
  add_library(network ALIAS ${name})
endmacro()
macro(zephyr_library_sources)
  target_sources(net_1 PRIVATE ${ARGN})
endmacro()
macro(zephyr_library_compile_options)
  target_compile_options(net_1 PRIVATE ${ARGN})
endmacro()
macro(zephyr_include_directories)
  target_include_directories(net_1 PUBLIC ${ARGN})
endmacro()
add_subdirectory(${FOLDER}/zephyr network)
""",
}


@pytest.mark.deep
@pytest.mark.needs("cmake", "gcc", "make")
@pytest.mark.parametrize("framework", STAND_INS)
def test_a_frameworks_build_takes_the_folder(framework: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.20)\nproject(board C)\n{STAND_INS[framework]}"
        "add_executable(selftest ${FOLDER}/main.c)\ntarget_link_libraries(selftest PRIVATE network)\n"
    )
    run("cmake", f"-DFOLDER={folder}", "-S", tmp_path, "-B", tmp_path / "build")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "selftest").endswith("passed\n")


# PlatformIO would fetch the list of known licenses from GitHub, which this machine may not reach. Therefore the test
# replaces that list.
PACK_FOR_PLATFORMIO = """
import sys
from platformio.package.manifest.schema import ManifestSchema
from platformio.package.pack import PackagePacker

ManifestSchema.load_spdx_licenses = staticmethod(lambda: {"licenses": [{"licenseId": "Apache-2.0"}]})
print(PackagePacker(sys.argv[1]).pack(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment's programs: those of PlatformIO and ESP-IDF's component manager, and Kconfig's parser."""
    made = tmp_path_factory.mktemp("tools") / "venv"
    run(sys.executable, "-m", "venv", made)
    run(made / "bin" / "pip", "install", "--quiet", "--no-compile", "platformio", "idf-component-manager", "kconfiglib")
    return made / "bin"


@pytest.mark.long
@pytest.mark.needs("pypi")
def test_platformio_packs_it(folder: Path, tools: Path, tmp_path: Path) -> None:
    run(tools / "python", "-c", PACK_FOR_PLATFORMIO, folder, tmp_path)
    with tarfile.open(tmp_path / "net_1-1.0.0.tar.gz") as archive:
        assert sources(folder) | {"library.json", "LICENSE", "src/net_1.h"} <= set(archive.getnames())


@pytest.mark.long
@pytest.mark.needs("pypi")
def test_esp_idfs_component_manager_packs_it(folder: Path, tools: Path, tmp_path: Path) -> None:
    component = tmp_path / "net_1"
    shutil.copytree(folder, component)
    run(tools / "compote", "component", "pack", "--name", "net_1", cwd=component)
    with tarfile.open(component / "dist" / "net_1_1.0.0.tgz") as archive:
        packed = {name.removeprefix("./") for name in archive.getnames()}
    assert sources(folder) | {"idf_component.yml", "CMakeLists.txt", "LICENSE", "src/net_1.h"} <= packed


@pytest.mark.long
@pytest.mark.needs("pypi")
def test_kconfigs_parser_reads_zephyrs_option(folder: Path, tools: Path) -> None:
    program = "import kconfiglib, sys; print(kconfiglib.Kconfig(sys.argv[1]).syms['LITEBNN_NET_1'].str_value)"
    assert run(tools / "python", "-c", program, folder / "zephyr" / "Kconfig") == "y\n"


def test_no_placeholder_is_left(folder: Path) -> None:
    for path in folder.rglob("*"):
        assert not path.is_file() or not re.search(r"@[A-Z_]+@", path.read_text()), path
