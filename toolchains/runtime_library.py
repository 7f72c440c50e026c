"""Brings what the example programs are built on into build/runtime/TARGET: TensorFlow Lite's C library and stb_image.

    python -m toolchains.runtime_library --target=rpi4

leaves `libtensorflowlite_c.so` and `include/` there. Nothing is compiled: both come from the public npm registry, by
name and version, and are held against the hashes below. `--tflite-dir` takes a C library of the user's own instead.
"""

import hashlib
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from toolchains.command_line import parser, run
from toolchains.targets import BUILD, Target, ToolkitError, find_target

LIBRARY = "libtensorflowlite_c.so"
C_API = Path("tensorflow/lite/c/c_api.h")
HEADERS = ("tensorflow/lite", "tensorflow/compiler/mlir/lite")  # where the C API's headers lie, newer ones in both
REGISTRY = "https://registry.npmjs.org"  # where npm is not installed; npm has its own setting


@dataclass(frozen=True)
class Package:
    """A package of the npm registry."""

    name: str
    version: str
    sha256: str


# This package carries TensorFlow Lite's C library 2.9.0 and its headers, for x86-64 and aarch64.
TFLITE = Package("tfjs-tflite-node", "0.0.2", "3be1632328a76a2475e5b6833253763c802c859433becb4d879ee1860e3b5284")
TFLITE_LIBRARY = {"x86_64": f"cc_deps/linux_amd64/{LIBRARY}", "aarch64": f"cc_deps/linux_arm64/{LIBRARY}"}
TFLITE_INCLUDE = "cc_deps/include"

# stb has no package of its own. This one carries stb_image.h 2.30 as its author published it.
STB = Package("llama.rn", "0.12.9", "7069fbf1db95f07cfd9bfbbd0d160be5c0d329c5985868e00c3248338598bca5")
STB_IMAGE = "cpp/tools/mtmd/stb/stb_image.h"


def runtime_folder(target: str) -> Path:
    """Where the runtime library of `target` lies: build/runtime/TARGET."""
    return BUILD / "runtime" / target


def fetch(target: str, tflite_dir: Path | None = None) -> Path:
    """Makes build/runtime/TARGET, with `include/` and `libtensorflowlite_c.so`.

    Args:
        target: a row of targets.toml.
        tflite_dir: folder of the user's own build of the C library: the library itself, and the headers in `include/`
            or beside it (a TensorFlow source tree will do). By default the published build for the target's CPU.

    Returns:
        The folder. Without `tflite_dir`, a second call finds it there and returns at once.

    Raises:
        ToolkitError: no such target, no published library for its CPU, `tflite_dir` lacks something, or the download
            failed or is not what it should be.

    Example:
        >>> fetch("rpi4")  # doctest: +SKIP
        PosixPath('.../build/runtime/rpi4')
    """
    row = find_target(target)
    folder = runtime_folder(target)
    origin = folder / "ORIGIN"
    wanted = f"{TFLITE}\n{STB}\n"
    if tflite_dir is None and origin.is_file() and origin.read_text(encoding="utf-8") == wanted:
        return folder
    with _replacing(folder) as work:
        if tflite_dir is None:
            _take_published(row, work)
        else:
            wanted = f"{tflite_dir.resolve()}\n"
            _take_own(tflite_dir, work)
        _take(STB, {STB_IMAGE: "include/stb_image.h"}, work)
        (work / "ORIGIN").write_text(wanted, encoding="utf-8")
    return folder


def published_library(target: Target) -> str:
    """Where the published package has the target's C library; "" where it has none."""
    return "" if target.ndk_abi else TFLITE_LIBRARY.get(target.processor or platform.machine(), "")


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """Yields an empty folder that takes the place of `folder` if all goes well."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
        work = Path(temporary) / "new"
        work.mkdir()
        yield work
        if folder.exists():
            folder.rename(Path(temporary) / "old")
        work.rename(folder)


def _take_published(target: Target, work: Path) -> None:
    library = published_library(target)
    if not library:
        raise ToolkitError(
            f"no C library is published for {target.name} ({target.triple or platform.machine()}): "
            "build one as docs/board.md says and name its folder with --tflite-dir"
        )
    _take(TFLITE, {library: LIBRARY, TFLITE_INCLUDE: "include"}, work)


def _take_own(tflite_dir: Path, work: Path) -> None:
    library = next((path for path in (tflite_dir / LIBRARY, tflite_dir / "lib" / LIBRARY) if path.is_file()), None)
    if library is None:
        raise ToolkitError(f"--tflite-dir={tflite_dir} has no {LIBRARY}, nor has its folder lib")
    include = next((path for path in (tflite_dir / "include", tflite_dir) if (path / C_API).is_file()), None)
    if include is None:
        raise ToolkitError(f"--tflite-dir={tflite_dir} has no {C_API}, nor has its folder include")
    shutil.copy2(library, work / LIBRARY)
    for header in (header for part in HEADERS for header in (include / part).rglob("*.h")):
        copy = work / "include" / header.relative_to(include)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(header, copy)


def _take(package: Package, files: dict[str, str], work: Path) -> None:
    """Copies files and folders out of a package: `files` maps its paths to those in `work`."""
    with tempfile.TemporaryDirectory(prefix="litebnn") as temporary:
        archive = _download(package, Path(temporary))
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        if digest != package.sha256:
            raise ToolkitError(
                f"{package.name} {package.version} is not as published: sha256 {digest}, not {package.sha256}"
            )
        with tarfile.open(archive) as tar:
            for member in filter(tarfile.TarInfo.isfile, tar):
                for source, target in files.items():
                    inside = f"package/{source}"
                    content = tar.extractfile(member)
                    if content and (member.name == inside or member.name.startswith(f"{inside}/")):
                        path = work / (target + member.name.removeprefix(inside))
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_bytes(content.read())


def _download(package: Package, folder: Path) -> Path:
    """The package's archive: from npm's configured registry where npm is installed, else from the public one."""
    archive = folder / f"{package.name}-{package.version}.tgz"
    what = f"{package.name} {package.version}"
    if shutil.which("npm"):
        command = ["npm", "pack", "--silent", f"{package.name}@{package.version}"]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if run.returncode or not archive.is_file():
            reason = next((line for line in run.stderr.splitlines() if "npm err" in line.lower()), "no archive came")
            raise ToolkitError(f"npm cannot fetch {what}: {reason.strip()}")
        return archive
    try:
        with urllib.request.urlopen(f"{REGISTRY}/{package.name}/-/{archive.name}", timeout=60) as answer:
            archive.write_bytes(answer.read())
    except (urllib.error.URLError, OSError) as error:
        raise ToolkitError(f"cannot fetch {what} from {REGISTRY}: {error}") from error
    return archive


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    own = parser("toolchains.runtime_library", __doc__)
    own.add_argument("--tflite-dir", type=Path, help="folder with your own build of the C library and its headers")
    return run(own, lambda **options: print(fetch(**options)), arguments)


if __name__ == "__main__":
    sys.exit(main())
