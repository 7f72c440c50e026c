"""Packs everything that a board needs into one archive: dist/litebnn-TARGET.tar.gz.

python -m toolchains.bundle --target=rpi4
"""

import io
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from toolchains.boards.models import board_models
from toolchains.boards.state import SCRIPT
from toolchains.build import LIBRARY, PROGRAMS, build
from toolchains.command_line import parser, run
from toolchains.elf import needs
from toolchains.runtime_library import fetch, library_in, runtime_folder
from toolchains.targets import ROOT, Target, find_system_target

EXAMPLES = ROOT / "examples" / "label_image"
MODEL, LABELS, IMAGE = "digits.tflite", "labels.txt", "digit.bmp"

README = f"""\
litebnn for {{name}} ({{description}}): programs, the runtime's library and litebnn's op library.
Name a digit: ./label_image --tflite_model {MODEL} --labels {LABELS} --image {IMAGE} --lcompute 1
Measure a model: ./benchmark_model --graph={MODEL} --lcompute=1 --use_xnnpack=1 --enable_op_profiling=1
Measure the board, and return what it writes: ./litebnn-board-benchmark
Your own programs load {LIBRARY} as a delegate or link it; `--help` lists the flags of each program.
"""
NEEDS = """\

What they ask of the board's system (its own versions: `ldd --version`, and the names in its libstdc++.so.6):
"""


def bundle(target: str, toolchain: str = "auto") -> Path:
    """Fetches and builds missing parts, and packs all.

    Args:
        target: a row of targets.toml.
        toolchain: as for `toolchains.build.build`.

    Returns:
        The path of the archive, dist/litebnn-TARGET.tar.gz, which has one folder, litebnn-TARGET. An existing archive
        is unchanged if anything fails.

    Raises:
        ToolkitError: as for `fetch` (there is no LiteRT for the target's CPU) and `build`.

    Example:
        >>> bundle("rpi4")  # doctest: +SKIP
        PosixPath('.../dist/litebnn-rpi4.tar.gz')
    """
    row = find_system_target(target)
    if not runtime_folder(target).is_dir():
        fetch(target)
    products = build(target, toolchain).parent
    files = [products / name for name in (*PROGRAMS, library_in(runtime_folder(target)).name, LIBRARY)]
    files += [EXAMPLES / name for name in (MODEL, LABELS, IMAGE)] + [ROOT / "LICENSE", SCRIPT, board_models()]
    return pack(row, files, ROOT / "dist")


def pack(target: Target, files: list[Path], folder: Path) -> Path:
    """Packs files and folders, and the README, into FOLDER/litebnn-TARGET.tar.gz; returns its path."""
    name = f"litebnn-{target.name}"
    folder.mkdir(parents=True, exist_ok=True)
    floors = {file.name: needs(file) for file in files if file.is_file()}
    asks = "".join(f"{file} {words}\n" for file, words in floors.items() if words)
    readme = README.format(name=target.name, description=target.description) + (NEEDS + asks if asks else "")
    content = readme.encode()
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}.") as temporary:
        unfinished = Path(temporary) / f"{name}.tar.gz"
        with tarfile.open(unfinished, "w:gz") as tar:
            for file in files:
                tar.add(file, f"{name}/{file.name}", filter=_without_owner)
            member = tarfile.TarInfo(f"{name}/README")
            member.size, member.mtime = len(content), int(time.time())
            tar.addfile(_without_owner(member), io.BytesIO(content))
        return unfinished.replace(folder / unfinished.name)


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Removes this machine's user from an archive member, and makes it readable by all."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return run(
        parser("toolchains.bundle", __doc__, toolchain="auto"), lambda **options: print(bundle(**options)), arguments
    )


if __name__ == "__main__":
    sys.exit(main())
