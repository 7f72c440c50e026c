"""Finds the compilers on this machine, and gives their arguments for CMake."""

import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from toolchains.fetch import pypi
from toolchains.fetch.lock import find
from toolchains.needs import missing, needs, toolchain_needs, with_pip
from toolchains.probes import NDK_FILE, cxx_program, find_program, versions
from toolchains.targets import BUILD, ROOT, Target, ToolkitError, find_target

# A function that runs a command in the project's folder, writes its output to the file, and returns its exit code.
Runner = Callable[[Sequence[str], TextIO], int]

# The folder of the kernels for microcontrollers, which is a CMake project of its own.
MICRO = ROOT / "ops" / "micro"
CMAKE_FILES = ROOT / "toolchains" / "cmake"

# Neither the op library nor any example program uses these files of zig's libc++. They take more than half of the time
# in which zig compiles libc++, before it first links for a family of CPUs. A program that needs one of them cannot be
# linked, so the C++ tests are built by other compilers. The file no_demangler.cc replaces the last of these files.
UNUSED_LIBCXX = (
    "libcxx/src/atomic.cpp",
    "libcxx/src/barrier.cpp",
    "libcxx/src/bind.cpp",
    "libcxx/src/charconv.cpp",
    "libcxx/src/filesystem/directory_entry.cpp",
    "libcxx/src/filesystem/directory_iterator.cpp",
    "libcxx/src/filesystem/filesystem_clock.cpp",
    "libcxx/src/filesystem/filesystem_error.cpp",
    "libcxx/src/filesystem/operations.cpp",
    "libcxx/src/filesystem/path.cpp",
    "libcxx/src/fstream.cpp",
    "libcxx/src/ios.cpp",
    "libcxx/src/ios.instantiations.cpp",
    "libcxx/src/iostream.cpp",
    "libcxx/src/locale.cpp",
    "libcxx/src/memory_resource.cpp",
    "libcxx/src/ostream.cpp",
    "libcxx/src/print.cpp",
    "libcxx/src/random.cpp",
    "libcxx/src/random_shuffle.cpp",
    "libcxx/src/regex.cpp",
    "libcxx/src/ryu/d2fixed.cpp",
    "libcxx/src/ryu/d2s.cpp",
    "libcxx/src/ryu/f2s.cpp",
    "libcxx/src/strstream.cpp",
    "libcxx/src/valarray.cpp",
    "libcxx/src/vector.cpp",
    "libcxxabi/src/cxa_demangle.cpp",
)


def run_in_process(command: Sequence[str], log: TextIO, **variables: str) -> int:
    """Runs `command` on this machine, with extra environment variables."""
    environment = os.environ | variables
    return subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT).returncode


@dataclass(frozen=True)
class Compiler:
    """A compiler for a target.

    `name` is the name of the toolchain, `description` that of the compiler, and `cmake_arguments` are CMake's
    definitions for the compiler. `cmake` and `ninja` are the programs ("" for none), and `run` executes them. `source`
    is the folder of the CMake project.
    """

    name: str
    description: str
    cmake_arguments: Mapping[str, str]
    cmake: str
    ninja: str
    run: Runner = field(default=run_in_process, compare=False)
    source: Path = ROOT

    def configure(self, folder: Path, build_type: str = "Release", **options: str) -> list[str]:
        """The command that configures `folder` as a build of the project, with the CMake definitions `options`."""
        definitions = {**self.cmake_arguments, "CMAKE_BUILD_TYPE": build_type, **options}
        generator = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={self.ninja}"] if self.ninja else ["-G", "Unix Makefiles"]
        return [
            *(self.cmake, "-S", str(self.source), "-B", str(folder), *generator),
            *(f"-D{name}={value}" for name, value in definitions.items()),
        ]

    def compile(self, folder: Path, *products: str) -> list[str]:
        """The command that builds `products`, by default all, in a configured folder."""
        chosen = ["--target", *products] if products else []
        return [self.cmake, "--build", str(folder), "--parallel", str(os.cpu_count() or 1), *chosen]


def _cmake() -> str:
    program = find_program("cmake")
    if not program:
        raise ToolkitError(f"cmake is missing: {needs()['cmake'].install}")
    return program


def _version(compiler: str) -> str:
    """The first line that the compiler prints for --version, without the compiler's folder."""
    try:
        run = subprocess.run([compiler, "--version"], capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise ToolkitError(f"{compiler} does not run: {error.strerror}") from error
    return run.stdout.splitlines()[0] if run.returncode == 0 and run.stdout else Path(compiler).name


def find_gcc(target: Target) -> Compiler:
    """The GNU cross compiler called TRIPLE-g++. For this machine, it is the compiler that CMake would take (CXX, c++,
    g++ or clang++).

    Raises:
        ToolkitError: the compiler is missing or does not run. The message names the package that contains it.
    """
    if target.triple:
        program = f"{target.triple}-g++"
        arguments = {
            "CMAKE_TOOLCHAIN_FILE": str(CMAKE_FILES / ("bare_metal.cmake" if target.is_bare_metal else "gcc.cmake")),
            "LITEBNN_TRIPLE": target.triple,
            "LITEBNN_PROCESSOR": target.processor,
            "LITEBNN_CPU_FLAGS": " ".join(target.gcc_flags),
        }
        found, install = shutil.which(program) or "", needs()[program].install
    else:
        named = " ".join(os.environ.get("CXX", "").split()[:1])
        program = f"{named}, which CXX names," if named else "c++"
        arguments = {}
        found, install = cxx_program(), needs()["c++"].install
    if not found:
        raise ToolkitError(f"{program} is missing: {install}")
    source = MICRO if target.is_bare_metal else ROOT
    return Compiler("gcc", _version(found), arguments, _cmake(), find_program("ninja"), source=source)


def find_clang(target: Target | None = None) -> Compiler:
    """The newest Clang among those called clang++ and clang++-VERSION, by default for this machine.

    Raises:
        ToolkitError: there is no Clang, or it lacks the headers and libraries of the target's system.
    """
    program = find_clang_tool("clang++")
    arguments = {"CMAKE_C_COMPILER": find_clang_tool("clang"), "CMAKE_CXX_COMPILER": program}
    if target is not None and target.triple:
        lacking = [reason for name in toolchain_needs(target, "clang") if (reason := missing(name))]
        if lacking:
            raise ToolkitError(lacking[0])
        arguments |= {
            "CMAKE_TOOLCHAIN_FILE": str(CMAKE_FILES / "clang.cmake"),
            "LITEBNN_TRIPLE": target.triple,
            "LITEBNN_SYSTEM": target.system,
            "LITEBNN_PROCESSOR": target.processor,
        }
    return Compiler("clang", _version(program), arguments, _cmake(), find_program("ninja"))


def find_clang_tool(name: str) -> str:
    """The path of a program of clang or LLVM. If there are several versions, called NAME-VERSION, the newest is taken.

    Raises:
        ToolkitError: no program has this name.
    """
    found = next(filter(None, map(find_program, versions(name))), "")
    if not found:
        raise ToolkitError(f"{name} is missing: {needs()['clang'].install}")
    return found


def ziglang_program() -> str:
    """The path of the zig program of the Python package ziglang; "" if the package is not installed."""
    package = importlib.util.find_spec("ziglang")
    folders = package.submodule_search_locations if package else None
    return shutil.which("zig", path=folders[0]) or "" if folders else ""


def _zig_version() -> str:
    """The version of the installed zig; "" if zig is not installed."""
    program = ziglang_program()
    return subprocess.run([program, "version"], capture_output=True, text=True).stdout.strip() if program else ""


def _with_empty_files(folder: Path, copy: Path, empty: Collection[str]) -> None:
    """Makes a copy of `folder` by symbolic links, in which the files with the relative paths `empty` are empty."""
    copy.mkdir()
    for entry in folder.iterdir():
        inside = [path.removeprefix(f"{entry.name}/") for path in empty if path.startswith(f"{entry.name}/")]
        if entry.name in empty:
            (copy / entry.name).touch()
        elif inside:
            _with_empty_files(entry, copy / entry.name, inside)
        else:
            (copy / entry.name).symlink_to(entry)


def zig_variables(program: str) -> dict[str, str]:
    """The environment variables with which the zig at the path `program` leaves out the files UNUSED_LIBCXX.

    ZIG_LIB_DIR names a copy, by symbolic links, of the folder of zig's libraries. In the copy, these files are empty.
    The result is empty if this system makes no such links, or if zig keeps its libraries in another folder.
    """
    original = Path(program).parent / "lib"
    folders = {original / parent for name in UNUSED_LIBCXX for parent in Path(name).parents}
    # The entries are a part of the copy's name, because a copy of an incomplete folder lacks what is added later.
    entries = sorted(str(entry) for folder in folders for entry in folder.glob("*"))
    content = "\n".join((_zig_version(), *entries, *UNUSED_LIBCXX))
    copy = BUILD / "zig-lib" / hashlib.sha256(content.encode()).hexdigest()[:16]
    if not copy.is_dir():
        # The last step also fails if another build has made the copy at the same time.
        with contextlib.suppress(OSError):
            copy.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=copy.parent) as folder:
                _with_empty_files(original, Path(folder) / copy.name, UNUSED_LIBCXX)
                (Path(folder) / copy.name).replace(copy)
    return {"ZIG_LIB_DIR": str(copy)} if copy.is_dir() else {}


def _run_zig(command: Sequence[str], log: TextIO) -> int:
    """Runs `command` on this machine. In it, zig compiles only the files of libc++ that litebnn uses."""
    variables = {} if "ZIG_LIB_DIR" in os.environ else zig_variables(ziglang_program())
    return run_in_process(command, log, **variables)


def find_zig(target: Target) -> Compiler:
    """The compiler of the PyPI package ziglang. If the installed version is not the locked one, the locked one is
    installed first.

    Raises:
        ToolkitError: zig is missing and cannot be installed, or cmake is missing.
    """
    cmake = _cmake()
    zig = find("ziglang")
    if _zig_version() != zig.version:
        print(f"installing {zig.requirement} into {sys.prefix}", flush=True)
        pypi.install(zig)
        importlib.invalidate_caches()
    program, version = ziglang_program(), _zig_version()
    if not version:
        raise ToolkitError(
            f"the Python package ziglang has no program `zig` here: {with_pip('pip install --force-reinstall ziglang')}"
        )
    return Compiler("zig", f"zig {version}", zig_arguments(target, program), cmake, find_program("ninja"), _run_zig)


def zig_arguments(target: Target, program: str) -> dict[str, str]:
    """CMake's definitions for building for `target` with the zig at the path `program`."""
    return {
        "CMAKE_TOOLCHAIN_FILE": str(CMAKE_FILES / "zig.cmake"),
        "LITEBNN_ZIG": program,
        "LITEBNN_ZIG_TARGET": target.zig_name,
        "LITEBNN_SYSTEM": target.system,
        "LITEBNN_PROCESSOR": target.processor,
        "LITEBNN_CPU": target.zig_cpu,
        "LITEBNN_GENERIC_CPU": find_target(target.family).zig_cpu,
    }


def find_ndk(target: Target) -> Compiler:
    """Clang of the Android NDK in the folder that ANDROID_NDK_HOME names.

    Raises:
        ToolkitError: the variable ANDROID_NDK_HOME is unset, or names a folder without an NDK.
    """
    folder = os.environ.get("ANDROID_NDK_HOME", "")
    if not folder:
        raise ToolkitError(f"{target.name} is built with the Android NDK: set ANDROID_NDK_HOME to its folder")
    toolchain_file = Path(folder) / NDK_FILE
    if not toolchain_file.is_file():
        raise ToolkitError(
            f"ANDROID_NDK_HOME={folder} is no Android NDK: it has no {toolchain_file.relative_to(folder)}"
        )
    arguments = {
        "CMAKE_TOOLCHAIN_FILE": str(toolchain_file),
        "ANDROID_ABI": target.ndk_abi,
        "ANDROID_PLATFORM": f"android-{target.ndk_platform}",
        "ANDROID_STL": "c++_static",
    }
    return Compiler("ndk", f"Android NDK in {folder}", arguments, _cmake(), find_program("ninja"))
