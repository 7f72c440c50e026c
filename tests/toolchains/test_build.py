"""Tests the build driver end to end: all targets, symbols and dependencies, repeated builds, failures,
interruptions."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import need
from tests.support.libraries import check_library
from toolchains.binaries import exported_names, floors, needed_libraries, requirements
from toolchains.build import build
from toolchains.compilers import find_zig
from toolchains.targets import ROOT, find_target, load_targets

LINUX = [name for name, target in load_targets().items() if target.glibc]


@pytest.mark.deep
@pytest.mark.parametrize("name", LINUX)
def test_a_target_with_gcc(name: str) -> None:
    need(f"{find_target(name).triple}-g++")
    check_library(build(name, "gcc", programs=False))


@pytest.mark.deep
def test_a_library_of_zig_runs_on_old_systems() -> None:
    need("pypi", "binutils")
    # The emulated wheel for a Raspberry Pi 4 contains the same library, so one of the two tests compiles nothing.
    library = build("aarch64", "zig", programs=False)
    check_library(library)
    assert list(floors(library)) == ["GLIBC"]
    assert 17 <= int(floors(library)["GLIBC"].removeprefix("2.")) <= 28
    lines = subprocess.run(["readelf", "-V", library], capture_output=True, text=True, check=True).stdout.split()
    versions = {tuple(map(int, word[6:].split("."))) for word in lines if word.startswith("GLIBC_2")}
    assert ".".join(map(str, max(versions))) == floors(library)["GLIBC"]


@pytest.mark.deep
@pytest.mark.parametrize("name", LINUX)
def test_zig_knows_a_targets_cpu(name: str, tmp_path: Path) -> None:
    need("pypi")
    arguments = find_zig(find_target(name)).cmake_arguments
    (tmp_path / "a.cc").write_text("int a;\n")
    options = ["-target", arguments["LITEBNN_ZIG_TARGET"], f"-mcpu={arguments['LITEBNN_CPU']}", "-c", "a.cc"]
    run = subprocess.run(
        [arguments["LITEBNN_ZIG"], "c++", *options], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_what_makes_a_library_old_can_be_told(tmp_path: Path) -> None:
    source, library = tmp_path / "a.c", tmp_path / "a.so"
    # On x86-64, memcpy got a new symbol version in glibc 2.14.
    source.write_text("#include <string.h>\nvoid* copy(void* a, void* b, size_t n) { return memcpy(a, b, n); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    assert exported_names(library) == ["copy"]
    assert needed_libraries(library) == ["libc.so.6"]
    assert tuple(map(int, floors(library)["GLIBC"].split("."))) >= (2, 2, 5)
    source.write_text("data\n")
    assert (floors(source), requirements(source)) == ({}, "")


@pytest.mark.needs("g++")
def test_what_a_program_asks_of_the_c_plus_plus_library_can_be_told(tmp_path: Path) -> None:
    source, program = tmp_path / "a.cc", tmp_path / "a"
    source.write_text("#include <string>\nint main(int n, char** v) { return std::string(v[0], n) < v[0]; }\n")
    subprocess.run(["g++", "-o", program, source], check=True)
    assert list(floors(program)) == ["GLIBC", "GLIBCXX"]
    assert (
        requirements(program)
        == f"needs GLIBC {floors(program)['GLIBC']} and GLIBCXX {floors(program)['GLIBCXX']} or newer"
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one source file that the toolkit builds like litebnn."""
    shutil.copytree(ROOT / "toolchains", tmp_path / "toolchains")
    (tmp_path / "converter" / "litebnn").mkdir(parents=True)
    (tmp_path / "converter" / "litebnn" / "__init__.py").write_text('__version__ = "1.0"\n')
    write_source(tmp_path, "1")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\n"
        "project(small LANGUAGES C CXX)\n"
        "add_custom_command(OUTPUT started DEPENDS version.cc COMMAND sh ${CMAKE_SOURCE_DIR}/before.sh)\n"
        "add_custom_target(before DEPENDS started)\n"
        "add_library(litebnn SHARED version.cc)\n"
        "add_dependencies(litebnn before)\n"
    )
    (tmp_path / "before.sh").write_text("touch started\n")
    return tmp_path


def write_source(project: Path, value: str) -> None:
    (project / "version.cc").write_text(f'extern "C" int version() {{ return {value}; }}\n')


def start(project: Path, *arguments: str) -> subprocess.Popen[str]:
    # SIGINT is set to its default, because the background processes of a shell, and their children, ignore SIGINT.
    command = ["env", "--default-signal=INT", sys.executable, "-m", "toolchains.build", *arguments]
    return subprocess.Popen(
        command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def run(project: Path, *arguments: str) -> tuple[int, str, str]:
    """Runs the build driver, and returns exit code, stdout and stderr."""
    process = start(project, *arguments)
    out, err = process.communicate()
    return process.returncode, out, err


def test_a_build_says_one_line_a_step(project: Path) -> None:
    code, out, err = run(project)
    assert (code, err) == (0, "")
    steps = [line.split(" with ")[0] for line in out.splitlines()]
    assert steps[:2] == ["host: configuring", "host: compiling"]
    assert len(steps) == 3
    assert steps[2].startswith("host: build/host/liblitebnn.so, ")
    assert "CMake" not in out


@pytest.mark.deep
def test_an_unchanged_rerun_compiles_nothing(project: Path) -> None:
    assert run(project)[0] == 0
    (compiled,) = (project / "build" / "host" / "gcc").rglob("version.cc.o")
    before = compiled.stat().st_mtime_ns
    assert run(project)[0] == 0
    assert compiled.stat().st_mtime_ns == before
    write_source(project, "2")
    assert run(project)[0] == 0
    assert compiled.stat().st_mtime_ns > before


@pytest.mark.deep
def test_other_flags_build_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "version.cc").write_text('extern "C" int NAME() { return 1; }\n')
    for name in ("former", "latter"):
        monkeypatch.setenv("CXXFLAGS", f"-DNAME={name}")
        assert run(project)[0] == 0
        assert exported_names(project / "build" / "host" / "liblitebnn.so") == [name]


@pytest.mark.deep
def test_a_moved_checkout_builds_again(project: Path) -> None:
    assert run(project)[0] == 0
    moved = project.rename(project.with_name("moved"))
    code, _, err = run(moved)
    assert (code, err) == (0, "")


def test_a_failed_build_leaves_the_former_library(project: Path) -> None:
    assert run(project)[0] == 0
    library = project / "build" / "host" / "liblitebnn.so"
    former = library.read_bytes()
    write_source(project, "undeclared")
    code, _, err = run(project)
    assert code == 1
    assert err.count("\n") == 1
    assert err.startswith("error: compiling host failed with code ")
    assert "undeclared" in err
    assert err.rstrip().endswith("all of it: build/host/gcc.log")
    assert "undeclared" in (project / "build" / "host" / "gcc.log").read_text()
    assert library.read_bytes() == former


def test_a_failure_to_configure_says_why(project: Path) -> None:
    with (project / "CMakeLists.txt").open("a") as file:
        file.write('message(FATAL_ERROR "no such thing")\n')
    code, _, err = run(project)
    assert code == 1
    assert "no such thing" in err
    assert err.count("\n") == 1


@pytest.mark.deep
def test_an_interrupted_build_leaves_the_former_library(project: Path) -> None:
    assert run(project)[0] == 0
    library = project / "build" / "host" / "liblitebnn.so"
    former = library.read_bytes()
    # The build creates one file when it begins, and then waits for a second file, which never appears.
    began, go_on = project / "began", project / "go_on"
    os.mkfifo(began)
    os.mkfifo(go_on)
    (project / "before.sh").write_text(f"echo yes > {began}\nread answer < {go_on}\ntouch started\n")
    write_source(project, "3")
    process = start(project)
    assert began.read_text() == "yes\n"
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err == "error: interrupted\n"
    assert library.read_bytes() == former
    (project / "before.sh").write_text("touch started\n")
    assert run(project)[0] == 0
    assert library.read_bytes() != former


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target=rpi9"], "no target is called 'rpi9'; the targets are host, x86_64, aarch64, rpi4, "),
        (["--toolchain=msvc"], "no toolchain is called 'msvc'; the toolchains are auto, gcc, clang, zig, docker, ndk"),
        (["--target=android-arm64"], "android-arm64 is built with the Android NDK: set ANDROID_NDK_HOME"),
    ],
)
def test_a_mistake_is_one_line(project: Path, arguments: list[str], message: str) -> None:
    code, out, err = run(project, *arguments)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1
