"""Packs everything that a board needs into one archive: dist/litebnn-TARGET.tar.gz.

python -m toolchains.bundle --target=rpi4
"""

import gzip
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from toolchains.binaries import requirements
from toolchains.boards.table import SCRIPT
from toolchains.build import build, programs_of
from toolchains.choice import find_compiler
from toolchains.command_line import parser, run
from toolchains.parts import DATE, FILE_NAME, bill_of_materials, notices, parts_of, write
from toolchains.runtime_library import fetch, library_in, runtime_folder
from toolchains.targets import ROOT, Target, ToolkitError, find_system_target

EXAMPLES = ROOT / "examples" / "label_image"
NOTICES = "NOTICES.txt"
MODEL, LABELS, IMAGE = "digits.tflite", "labels.txt", "digit.bmp"

# Lines of the bundle's README that explain how to use each program.
USES = {
    "label_image": f"Name a digit: {{run}} --tflite_model {MODEL} --labels {LABELS} --image {IMAGE} --lcompute 1",
    "benchmark_model": f"Measure a model: {{run}} --graph={MODEL} --lcompute=1 --use_xnnpack=1 --enable_op_profiling=1",
    "litebnn-board-benchmark": "Measure the board, and return what it writes: {run}",
}
NEEDS = """
What they ask of the board's system (its own versions: `ldd --version`, and the names in its libstdc++.so.6):"""


def bundle(target: str, toolchain: str = "auto") -> Path:
    """Fetches or builds the missing parts of a target's bundle, and packs the bundle.

    Args:
        target: a row of targets.toml.
        toolchain: as for `build` in toolchains/build.py.

    Returns:
        The path of the archive, dist/litebnn-TARGET.tar.gz, which has one folder, litebnn-TARGET. An existing archive
        is unchanged if anything fails.

    Raises:
        ToolkitError: the errors of `fetch` (there is no LiteRT for the target's CPU) and of `build`.

    Example:
        >>> bundle("rpi4")  # doctest: +SKIP
        PosixPath('.../dist/litebnn-rpi4.tar.gz')
    """
    row = find_system_target(target)
    if not runtime_folder(target).is_dir():
        fetch(target)
    products = build(target, toolchain).parent
    runtime = library_in(runtime_folder(target)).name
    files = [products / name for name in (*programs_of(row), runtime, row.names.library)]
    parts = parts_of("bundle", row, find_compiler(row, toolchain).name)
    # A user's own runtime comes with a license of its own, so LiteRT's license is then left out.
    parts = [part for part in parts if part.name != "ai-edge-litert" or runtime == row.names.litert]
    bill = bill_of_materials(f"litebnn-{target}", {file.name: file for file in files}, parts)
    folder = row.folder / "bundle"
    files += [EXAMPLES / name for name in (MODEL, LABELS, IMAGE)] + [ROOT / "LICENSE", SCRIPT, board_models()]
    files += [write(folder / FILE_NAME, bill), write(folder / NOTICES, notices(parts))]
    return pack(row, files, ROOT / "dist")


def board_models() -> Path:
    """The folder of models that litebnn-board-benchmark runs. The converter makes it, in a process of its own.

    Raises:
        ToolkitError: the converter failed.
    """
    command = [sys.executable, "-m", "bench.board_models"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if run.returncode:
        raise ToolkitError(f"the board's models: {(run.stderr.strip().splitlines() or ['failed'])[-1]}")
    return Path(run.stdout.splitlines()[-1])


def pack(target: Target, files: list[Path], folder: Path) -> Path:
    """Packs files and folders, and a README, into FOLDER/litebnn-TARGET.tar.gz; returns its path."""
    name = f"litebnn-{target.name}"
    folder.mkdir(parents=True, exist_ok=True)
    content = readme(target, files).encode()
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}.") as temporary:
        unfinished = Path(temporary) / f"{name}.tar.gz"
        with (
            unfinished.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=DATE) as zipped,
            tarfile.open(fileobj=zipped, mode="w") as tar,
        ):
            for path in files:
                tar.add(path, f"{name}/{path.name}", filter=_without_traces)
            member = tarfile.TarInfo(f"{name}/README")
            member.size = len(content)
            tar.addfile(_without_traces(member), io.BytesIO(content))
        return unfinished.replace(folder / unfinished.name)


def readme(target: Target, files: list[Path]) -> str:
    """The bundle's README: how to run its programs, and what each file requires of the system."""
    here = ".\\" if target.system == "Windows" else "./"
    uses = {name + target.names.program_suffix: use for name, use in USES.items()}
    lines = [
        f"litebnn for {target.name} ({target.description}): programs, the runtime's library and litebnn's op library.",
        *(uses[program].format(run=here + program) for program in programs_of(target) if program in uses),
        f"Your own programs load {target.names.library} as a delegate or link it; "
        "`--help` lists the flags of each program.",
    ]
    floors = {file.name: requirements(file) for file in files if file.is_file()}
    asks = [f"{file} {words}" for file, words in floors.items() if words]
    return "\n".join([*lines, *([NEEDS, *asks] if asks else [])]) + "\n"


def _without_traces(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Removes this machine's user and the date from an archive member, and makes it readable by all."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mtime = DATE
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    return run(
        parser("toolchains.bundle", __doc__, toolchain="auto"), lambda **options: print(bundle(**options)), arguments
    )


if __name__ == "__main__":
    sys.exit(main())
