"""Runs Windows programs under Wine, with LiteRT for Windows and the parts of Microsoft's runtime that Wine lacks."""

import os
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

from toolchains.build import locked
from toolchains.compilers import find_clang_tool
from toolchains.fetch import pypi
from toolchains.fetch.lock import find
from toolchains.needs import WINE
from toolchains.probes import find_program
from toolchains.runtime_library import fetch, library_in
from toolchains.targets import BUILD, ROOT, find_target

TARGET = "windows-x86_64"
FOLDER = BUILD / "wine"
# The only DLL that LiteRT needs and Wine lacks.
THREADS = "vcruntime140_threads.dll"


def runtime() -> Path:
    """A folder with LiteRT for Windows and the DLLs that it needs under Wine."""
    library = library_in(fetch(TARGET))
    folder = FOLDER / "runtime"
    with locked(FOLDER):
        if not (folder / THREADS).is_file():
            folder.mkdir(exist_ok=True)
            choice = ("--platform=win_amd64", "--python-version=3.11")
            wheel = pypi.download(find("msvc-runtime"), FOLDER, *choice)
            with zipfile.ZipFile(wheel) as archive:
                (member,) = (name for name in archive.namelist() if name.endswith(f"/data/{THREADS}"))
                (folder / THREADS).write_bytes(archive.read(member))
        if not (folder / library.name).is_file():
            shutil.copy2(library, folder)
    return folder


def compile_program(source: Path, folder: Path) -> Path:
    """Compiles a C++ program of the tests for Windows with clang, together with the code that loads libraries."""
    target, program = find_target(TARGET), folder / f"{source.stem}.exe"
    command = [
        *(find_clang_tool("clang++"), f"--target={target.triple}", "-std=c++17", "-O1", "-fuse-ld=lld", "-static"),
        *("-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{ROOT / 'ops'}", f"-I{ROOT / 'programs'}"),
        *("-o", program, source, ROOT / "ops" / "kernels" / "platform" / "loaded_library_windows.cc"),
        "-lpthread",
    ]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return program


def windows_path(path: Path) -> str:
    """The Windows form of a path, for programs under Wine."""
    return "Z:" + str(path)


def run(command: Sequence[str | Path], cwd: Path, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Runs a Windows program in a folder, where it also finds its DLLs."""
    variables = {"WINEPREFIX": str(FOLDER / "prefix"), "WINEDEBUG": "-all", "DISPLAY": "", "WINEARCH": "win64"}
    # Without these settings, Wine would ask to install .NET and a browser, which need network access.
    variables["WINEDLLOVERRIDES"] = "mscoree,mshtml="
    FOLDER.mkdir(parents=True, exist_ok=True)
    wine = next(filter(None, map(find_program, WINE)))
    return subprocess.run([wine, *command], cwd=cwd, env=os.environ | variables, capture_output=True, input=stdin)
