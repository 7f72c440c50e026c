from pathlib import Path

import pytest

from toolchains import choice
from toolchains.choice import find_compiler
from toolchains.compilers import Compiler
from toolchains.targets import TOOLCHAINS, Target, ToolkitError, find_target, load_targets


def finder(name: str, reason: str = ""):
    def find(target: Target) -> Compiler:
        if reason:
            raise ToolkitError(reason)
        return Compiler(name, name, {}, "cmake", "ninja")

    return find


def found_with(monkeypatch: pytest.MonkeyPatch, target: str, **reasons: str) -> str:
    """The toolchain that "auto" selects for a target, if the toolchains in `reasons` are unavailable."""
    finders = {name: finder(name, reasons.get(name, "")) for name in TOOLCHAINS}
    monkeypatch.setattr(choice, "FINDERS", finders)
    return find_compiler(find_target(target), "auto").name


def test_auto_takes_gcc_then_zig_then_docker_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    assert found_with(monkeypatch, "host") == "gcc"
    assert found_with(monkeypatch, "host", gcc="none") == "zig"
    assert found_with(monkeypatch, "host", gcc="none", zig="no network") == "docker"


@pytest.mark.parametrize("target", [name for name, row in load_targets().items() if row.triple])
def test_auto_does_not_depend_on_what_else_is_installed(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    first, *others = find_target(target).toolchains
    assert first in ("zig", "ndk") or (first, others, find_target(target).is_bare_metal) == ("gcc", [], True)
    assert found_with(monkeypatch, target) == first
    assert found_with(monkeypatch, target, **dict.fromkeys(others, "none")) == first
    with pytest.raises(ToolkitError, match="^no network") as caught:
        found_with(monkeypatch, target, **{first: "no network"})
    assert all(other in str(caught.value) for other in others)


def test_auto_says_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(ToolkitError, match="no compiler for host: no gcc; no network; no engine"):
        found_with(monkeypatch, "host", gcc="no gcc", zig="no network", docker="no engine")


def test_auto_takes_no_other_compiler_than_cxx_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setitem(choice.FINDERS, "zig", finder("zig"))
    with pytest.raises(ToolkitError, match="^no-such-compiler, which CXX names, is missing: apt install g[+][+]$"):
        find_compiler(find_target("host"), "auto")
    monkeypatch.setitem(choice.FINDERS, "gcc", finder("gcc", "CXX is for the host only"))
    assert find_compiler(find_target("rpi4"), "auto").name == "zig"


@pytest.mark.parametrize(
    ("target", "toolchain", "message"),
    [
        ("rpi4", "msvc", "no toolchain is called 'msvc'; the toolchains are auto, gcc, clang, zig, docker, ndk"),
        ("rpi4", "ndk", "rpi4 is built with --toolchain=zig or gcc or docker, not with --toolchain"),
        *(
            ("android-arm64", name, f"built with --toolchain=ndk, not with --toolchain={name}")
            for name in ("gcc", "zig")
        ),
    ],
)
def test_a_toolchain_that_the_target_has_not_is_refused(target: str, toolchain: str, message: str) -> None:
    with pytest.raises(ToolkitError, match=message):
        find_compiler(find_target(target), toolchain)


def test_every_toolchain_has_a_finder() -> None:
    assert tuple(choice.FINDERS) == TOOLCHAINS


def test_android_without_an_ndk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ANDROID_NDK_HOME", raising=False)
    with pytest.raises(ToolkitError, match="set ANDROID_NDK_HOME to its folder"):
        find_compiler(find_target("android-arm64"), "auto")
    monkeypatch.setenv("ANDROID_NDK_HOME", str(tmp_path))
    with pytest.raises(ToolkitError, match=r"is no Android NDK: it has no build/cmake/android\.toolchain\.cmake"):
        find_compiler(find_target("android-arm64"), "auto")


@pytest.mark.parametrize("toolchain", ["auto", "ndk"])
def test_android_with_an_ndk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, toolchain: str) -> None:
    toolchain_file = tmp_path / "build" / "cmake" / "android.toolchain.cmake"
    toolchain_file.parent.mkdir(parents=True)
    toolchain_file.touch()
    monkeypatch.setenv("ANDROID_NDK_HOME", str(tmp_path))
    compiler = find_compiler(find_target("android-arm64"), toolchain)
    assert compiler.name == "ndk"
    assert compiler.cmake_arguments["CMAKE_TOOLCHAIN_FILE"] == str(toolchain_file)
    assert compiler.cmake_arguments["ANDROID_ABI"] == "arm64-v8a"
