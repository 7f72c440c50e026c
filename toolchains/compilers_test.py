import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolchains import compilers
from toolchains.compilers import find_gcc, find_zig
from toolchains.probes import find_program
from toolchains.targets import ToolkitError, find_target


@pytest.mark.parametrize(
    ("target", "package"),
    [("rpi4", "g++-aarch64-linux-gnu"), ("rpi3", "g++-arm-linux-gnueabihf"), ("host", r"g\+\+$")],
)
def test_a_missing_compiler_names_its_package(monkeypatch: pytest.MonkeyPatch, target: str, package: str) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(ToolkitError, match=f"is missing: apt install {package.replace('g++', 'g[+][+]')}"):
        find_gcc(find_target(target))


def test_cxx_names_the_hosts_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler -m64")
    with pytest.raises(ToolkitError, match="no-such-compiler"):
        find_gcc(find_target("host"))


@pytest.mark.parametrize("content", ["junk", "#!/no/such/interpreter\n"])
def test_cxx_that_cannot_run_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str) -> None:
    program = tmp_path / "compiler"
    program.write_text(content)
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    with pytest.raises(ToolkitError, match=rf"^{program} does not run: "):
        find_gcc(find_target("host"))


def test_a_missing_cmake_says_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "find_program", lambda name: "")
    with pytest.raises(ToolkitError, match="^cmake is missing: apt install cmake$"):
        compilers._cmake()


def test_nothing_is_installed_where_cmake_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "ziglang_program", lambda: "")
    monkeypatch.setattr(compilers, "find_program", lambda name: "")
    monkeypatch.setattr(subprocess, "run", lambda command, **options: pytest.fail(f"ran {command}"))
    with pytest.raises(ToolkitError, match="cmake is missing"):
        find_zig(find_target("rpi4"))


def test_ziglang_is_installed_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[str] = []

    def pip(command, **options) -> subprocess.CompletedProcess[str]:
        if command[1:3] == ["-m", "pip"]:
            installed.extend(command)
        return subprocess.CompletedProcess(command, 0, "0.15.2\n", "")

    monkeypatch.setattr(compilers, "ziglang_program", lambda: "/somewhere/zig" if installed else "")
    monkeypatch.setattr(compilers, "_cmake", lambda: "cmake")
    monkeypatch.setattr(subprocess, "run", pip)
    compiler = find_zig(find_target("rpi4"))
    assert installed[0] == sys.executable
    assert "--require-hashes" in installed
    assert compiler.description == "zig 0.15.2"
    assert compiler.cmake_arguments["LITEBNN_CPU"] == "cortex_a72"
    assert compiler.cmake_arguments["LITEBNN_GENERIC_CPU"] == "generic"


@pytest.mark.parametrize(("version", "is_replaced"), [("0.15.2", False), ("0.14.1", True)])
def test_another_zig_than_the_locked_one_is_replaced(
    monkeypatch: pytest.MonkeyPatch, version: str, is_replaced: bool
) -> None:
    installed: list[list[str]] = []
    monkeypatch.setattr(compilers, "ziglang_program", lambda: "/somewhere/zig")
    monkeypatch.setattr(compilers, "_cmake", lambda: "cmake")
    monkeypatch.setattr(compilers.pypi, "install", lambda locked: installed.append(locked.requirement))
    run = subprocess.CompletedProcess([], 0, f"{version}\n", "")
    monkeypatch.setattr(subprocess, "run", lambda command, **options: run)
    find_zig(find_target("rpi4"))
    assert installed == (["ziglang==0.15.2"] if is_replaced else [])


def test_a_failing_pip_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, "", "WARNING: no network\nERROR: No matching distribution found\n")
    monkeypatch.setattr(compilers, "ziglang_program", lambda: "")
    monkeypatch.setattr(subprocess, "run", lambda command, **options: failed)
    with pytest.raises(ToolkitError, match=r"^cannot install ziglang==\S+: ERROR: No matching distribution found$"):
        find_zig(find_target("rpi4"))


def test_zigs_libraries_lack_only_what_litebnn_does_not_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    used = {"libcxx/src/string.cpp", "libcxx/src/filesystem/used.cpp", "std/std.zig"}
    for path in (tmp_path / "ziglang" / "lib" / name for name in (*compilers.UNUSED_LIBCXX, *used)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content\n")
    monkeypatch.setattr(compilers, "BUILD", tmp_path / "build")
    monkeypatch.setattr(compilers, "_zig_version", lambda: "0.15.2")
    variables = compilers.zig_variables(str(tmp_path / "ziglang" / "zig"))
    copy = Path(variables["ZIG_LIB_DIR"])
    walk = os.walk(copy, followlinks=True)
    files = {Path(folder, name).relative_to(copy).as_posix() for folder, _, names in walk for name in names}
    assert files == used.union(compilers.UNUSED_LIBCXX)
    assert {name for name in files if (copy / name).read_text()} == used
    assert compilers.zig_variables(str(tmp_path / "ziglang" / "zig")) == variables
    (tmp_path / "ziglang" / "lib" / "libcxx" / "include").mkdir()
    repaired = compilers.zig_variables(str(tmp_path / "ziglang" / "zig"))
    assert (Path(repaired["ZIG_LIB_DIR"]) / "libcxx" / "include").is_dir()


@pytest.mark.parametrize("cause", ["no links", "no folder", "no build folder"])
def test_zig_uses_its_own_libraries_where_they_cannot_be_copied(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cause: str
) -> None:
    if cause != "no folder":
        (tmp_path / "ziglang" / "lib" / "std").mkdir(parents=True)

    def refuse(*arguments: object) -> None:
        raise OSError("a required privilege is not held")

    monkeypatch.setattr(compilers, "BUILD", tmp_path / "build")
    monkeypatch.setattr(compilers, "_zig_version", lambda: "0.15.2")
    if cause == "no links":
        monkeypatch.setattr(Path, "symlink_to", refuse)
    if cause == "no build folder":
        (tmp_path / "build").touch()
    assert compilers.zig_variables(str(tmp_path / "ziglang" / "zig")) == {}
    assert list((tmp_path / "build").rglob("*")) in ([], [tmp_path / "build" / "zig-lib"])


@pytest.mark.needs("cross")
def test_the_locked_zig_has_the_files_that_are_left_out() -> None:
    folder = Path(compilers.ziglang_program()).parent / "lib"
    assert [name for name in compilers.UNUSED_LIBCXX if not (folder / name).is_file()] == []


@pytest.mark.parametrize("variable", ["MSVC=1", "CMAKE_CXX_SIMULATE_ID=MSVC"])
def test_msvc_is_refused_with_a_line(variable: str) -> None:
    script = compilers.CMAKE_FILES / "refuse_msvc.cmake"
    run = subprocess.run([find_program("cmake"), f"-D{variable}", "-P", script], capture_output=True, text=True)
    assert run.returncode != 0
    assert "MSVC cannot build litebnn: expected clang or zig for MinGW" in " ".join(run.stderr.split())
