"""Fetches the libraries of the example programs to build/runtime/TARGET: LiteRT and stb_image.

Usage:

    python -m toolchains.runtime_library --target=rpi4

The folder gets `libLiteRt.so` and `include/`. Nothing is compiled: the library comes from the wheel ai-edge-litert, and
stb_image.h from the public npm registry. The hashes of both are checked. The option `--tflite-dir` takes the user's own
TensorFlow Lite C library instead, for CPUs without a wheel of LiteRT.
"""

import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from toolchains.command_line import parser, run
from toolchains.fetch import pypi
from toolchains.fetch.lock import find
from toolchains.fetch.npm import take_files
from toolchains.targets import BUILD, SYSTEMS, Target, ToolkitError, find_system_target

LITERT = find("ai-edge-litert")
LITERT_VERSION = LITERT.version
# The platform tags of LiteRT's wheels. The keys are processors, or targets whose system is not Linux.
LITERT_WHEELS = {
    "x86_64": "manylinux_2_27_x86_64",
    "aarch64": "manylinux_2_27_aarch64",
    "windows-x86_64": "win_amd64",
    "macos-arm64": "macosx_12_0_arm64",
}

C_LIBRARY = "libtensorflowlite_c.so"
C_API = Path("tensorflow/lite/c/c_api.h")
HEADERS = (
    "tensorflow/lite",
    "tensorflow/compiler/mlir/lite",
)  # folders of the C API's headers; newer versions use both

TFLITE = find("tflite")
TFLITE_LIBRARY = {"x86_64": f"cc_deps/linux_amd64/{C_LIBRARY}", "aarch64": f"cc_deps/linux_arm64/{C_LIBRARY}"}
TFLITE_INCLUDE = "cc_deps/include"

STB = find("stb_image")
STB_IMAGE = "cpp/tools/mtmd/stb/stb_image.h"


def runtime_folder(target: str) -> Path:
    """The folder of the runtime library of `target`: build/runtime/TARGET."""
    return BUILD / "runtime" / target


def fetch(target: str, tflite_dir: Path | None = None) -> Path:
    """Makes the folder build/runtime/TARGET, with `include/` and `libLiteRt.so` or `libtensorflowlite_c.so`.

    Args:
        target: a row of targets.toml.
        tflite_dir: the folder of the user's own build of TensorFlow Lite's C library. It holds the library, and the
            headers directly or in `include/`, as in a TensorFlow source tree. The default is LiteRT for the target's
            CPU.

    Returns:
        The path of the folder. Without `tflite_dir`, a second call finds the finished folder and returns at once.

    Raises:
        ToolkitError: the target is unknown, LiteRT has no wheel for its CPU, `tflite_dir` lacks a file, or a download
            failed or has a wrong hash.

    Example:
        >>> fetch("rpi4")  # doctest: +SKIP
        PosixPath('.../build/runtime/rpi4')
    """
    row = find_system_target(target)
    if tflite_dir is None:
        return _fill(runtime_folder(target), f"{LITERT}", lambda work: _take_litert(row, work))
    own = tflite_dir
    return _fill(runtime_folder(target), "", lambda work: _take_own(own, work))


def fetch_c_library(target: str) -> Path:
    """Makes build/runtime/TARGET-tflite-2.9, with TensorFlow Lite's C library of 2022, and returns it.

    This library is the oldest runtime with which litebnn is tested. It runs in emulators that are too old for LiteRT.

    Raises:
        ToolkitError: as for `fetch`.
    """
    row = find_system_target(target)
    library = c_library_of(row)
    files = {library: C_LIBRARY, TFLITE_INCLUDE: "include"}
    folder = runtime_folder(f"{target}-tflite-2.9")
    return _fill(folder, f"{TFLITE}", lambda work: take_files(TFLITE, files, work))


def c_library_of(target: Target) -> str:
    """The path of the C library for a target inside its npm package.

    Raises:
        ToolkitError: no such library is published for the target's CPU.
    """
    library = TFLITE_LIBRARY.get(_processor(target))
    if library is None:
        raise ToolkitError(f"no C library is published for {target.name} ({_processor(target)})")
    return library


def library_in(folder: Path) -> Path:
    """The runtime's library in a folder that `fetch` has made."""
    names = [*(system.litert for system in SYSTEMS.values()), C_LIBRARY]
    return next(folder / name for name in names if (folder / name).is_file())


def _processor(target: Target) -> str:
    """The target's key in the tables of runtimes: its CPU, or its own name if its system is not Linux."""
    is_linux = target.system == "Linux" if target.triple else sys.platform == "linux"
    if not is_linux:
        return target.name if target.triple else ""
    return target.processor or platform.machine()


def _fill(folder: Path, contents: str, take: Callable[[Path], None]) -> Path:
    """Makes a folder with the files that the function `take` writes, and with stb_image. The text `contents` identifies
    these files. If the folder was already made from the same `contents`, it is left as it is.
    """
    origin = folder / "ORIGIN"
    wanted = f"{contents}\n{STB}\n"
    folder.parent.mkdir(parents=True, exist_ok=True)
    # The lock prevents two processes from replacing the same folder at once.
    with FileLock(BUILD / ".runtime.lock"):
        if contents and origin.is_file() and origin.read_text(encoding="utf-8") == wanted:
            return folder
        with _replacing(folder) as work:
            take(work)
            take_files(STB, {STB_IMAGE: "include/stb_image.h"}, work)
            (work / "ORIGIN").write_text(wanted, encoding="utf-8")
    return folder


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """Yields an empty folder. At the end it replaces `folder`, unless there was an error."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
        work = Path(temporary) / "new"
        work.mkdir()
        yield work
        if folder.exists():
            folder.rename(Path(temporary) / "old")
        work.rename(folder)


def _take_litert(target: Target, work: Path) -> None:
    tag = LITERT_WHEELS.get(_processor(target))
    if tag is None:
        raise ToolkitError(
            f"there is no LiteRT for {target.name} ({target.triple or platform.machine()}): build TensorFlow Lite's "
            "C library as docs/board.md says and name its folder with --tflite-dir"
        )
    with tempfile.TemporaryDirectory(prefix="litebnn") as temporary:
        unpacked = Path(temporary) / "unpacked"
        choice = (f"--platform={tag}", "--python-version=3.11", f"--target={unpacked}")
        pypi.install(LITERT, *choice, what=f"{LITERT.requirement} for {tag}")
        shutil.copy2(unpacked / "ai_edge_litert" / target.names.litert, work)
    version = work / "include" / "litert_version.h"
    version.parent.mkdir()
    version.write_text(f'#define LITERT_VERSION "{LITERT_VERSION}"\n', encoding="utf-8")


def _take_own(tflite_dir: Path, work: Path) -> None:
    library = next((path for path in (tflite_dir / C_LIBRARY, tflite_dir / "lib" / C_LIBRARY) if path.is_file()), None)
    if library is None:
        raise ToolkitError(f"--tflite-dir={tflite_dir} has no {C_LIBRARY}, nor has its folder lib")
    include = next((path for path in (tflite_dir / "include", tflite_dir) if (path / C_API).is_file()), None)
    if include is None:
        raise ToolkitError(f"--tflite-dir={tflite_dir} has no {C_API}, nor has its folder include")
    shutil.copy2(library, work / C_LIBRARY)
    for header in (header for part in HEADERS for header in (include / part).rglob("*.h")):
        copy = work / "include" / header.relative_to(include)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(header, copy)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    own = parser("toolchains.runtime_library", __doc__)
    own.add_argument("--tflite-dir", type=Path, help="folder with your own build of the C library and its headers")
    return run(own, lambda **options: print(fetch(**options)), arguments)


if __name__ == "__main__":
    sys.exit(main())
