"""Copies the bundle of a target to a board, and runs benchmark_model there. bench/deploy.py does it on several."""

import json
import platform
import shlex
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from toolchains.bundle import bundle
from toolchains.targets import Target, ToolkitError, load_targets

# For each processor, the values of `uname -m` on machines that run its programs. A machine with a 64-bit kernel may
# have a 32-bit system.
MACHINES = {"aarch64": ("aarch64", "arm64"), "x86_64": ("x86_64",), "armv7l": ("armv7l", "armv8l", "aarch64")}
BITS = {"aarch64": 64, "x86_64": 64, "armv7l": 32}
ILLEGAL_INSTRUCTION = 128 + 4  # a shell's exit code for a command that this signal ended


class Board(Protocol):
    """A machine at the other end of an SSH connection, such as litebnn.boards.board.Board."""

    host: str
    connection: Any

    def run(self, command: str) -> Any:
        """Runs a shell command; returns its exit code and output, as Fabric does."""

    def check(self, command: str, what: str) -> str:
        """Runs a shell command that has to succeed; returns its output."""

    def put(self, file: Path, path: str) -> None:
        """Copies a file to the board."""

    def get(self, path: str, file: Path) -> None:
        """Copies a file from the board."""


def on_board(folder: str) -> str:
    """The folder for the board's commands, relative to the home folder, because no shell expands a quoted tilde."""
    return str(PurePosixPath(folder).relative_to("~")) if PurePosixPath(folder).is_relative_to("~") else folder


def install(target: Target, board: Board, folder: str, models: list[Path], toolchain: str = "auto") -> str:
    """Makes the bundle of a target, and copies the bundle and `models` to a board; returns the folder there.

    Raises:
        ToolkitError: the bundle cannot be made, or the board has another CPU or too little room on its disk.
        BoardError: the board does not answer, or a command fails on it.
    """
    make_folder(target, board, on_board(folder))
    return unpack(bundle(target.name, toolchain), models, on_board(folder), board)


def make_folder(target: Target, board: Board, folder: str) -> None:
    """Makes a folder on a board, after a check that the board can run programs for `target`."""
    check_processor(target, board)
    board.check(f"mkdir -p {shlex.quote(folder)}", f"make the folder {folder}")


def unpack(archive: Path, models: list[Path], folder: str, board: Board) -> str:
    """Unpacks a bundle in `folder` on the board, copies models into the unpacked bundle, and returns its path."""
    check_room(archive, models, folder, board)
    bundle_folder = f"{folder}/{archive.name.removesuffix('.tar.gz')}"
    packed = f"{folder}/{archive.name}"
    board.put(archive, packed)
    quoted = shlex.quote(packed)
    board.check(f"tar -xzf {quoted} -C {shlex.quote(folder)} && rm {quoted}", "unpack the bundle")
    for model in models:
        board.put(model, f"{bundle_folder}/{model.name}")
    return bundle_folder


def measure_ops(
    target: str, board: Board, bundle_folder: str, model: str, results: Path, num_threads: int = 1, num_runs: int = 50
) -> str:
    """Measures a model in a folder of the board, as a whole and op by op, and writes the figures to `results`.

    Returns:
        The output of benchmark_model.
    """
    flags = f"--graph={shlex.quote(model)} --lcompute=1 --use_xnnpack=1 --num_threads={num_threads}"
    flags += f" --num_runs={num_runs}"
    whole = measure(target, board, bundle_folder, flags, results)
    # The first run measures the fastest form of the model, in which several ops are fused into one. Therefore a second
    # run measures the single ops.
    ops = results.with_suffix(".ops.json")
    parts = measure(target, board, bundle_folder, f"{flags} --enable_op_profiling=1", ops)
    figures = json.loads(results.read_text(encoding="utf-8")) | {"ops": json.loads(ops.read_text("utf-8"))["ops"]}
    ops.write_text(json.dumps(figures) + "\n", encoding="utf-8")
    ops.replace(results)
    return f"{whole}\n\nOp by op:\n{parts}"


def measure(target: str, board: Board, bundle_folder: str, flags: str, results: Path) -> str:
    """Runs benchmark_model once on a board, copies its results to the file `results`, and returns what it printed."""
    # Without a command after the program, the program would replace the shell. With `exit $?`, the shell outlives the
    # program, and its exit code reports a signal that ended the program.
    command = f"./benchmark_model {flags} --output=benchmark.json"
    result = board.run(f"cd {shlex.quote(bundle_folder)} && {command}; exit $?")
    if result.exited == ILLEGAL_INSTRUCTION:
        raise ToolkitError(
            f"{board.host} has another CPU than {target}: benchmark_model met an instruction that it lacks"
        )
    if result.exited:
        lines = result.stderr.strip().splitlines()
        why = lines[-1] if lines else f"exit code {result.exited}"
        raise ToolkitError(f"benchmark_model failed on {board.host}: {why}")
    board.get(f"{bundle_folder}/benchmark.json", results)
    return str(result.stdout).strip()


def cpu_of(board: Board) -> tuple[str, int]:
    """The output of `uname -m` on the board, and the number of bits of its system.

    Raises:
        ToolkitError: the board does not report its CPU.
    """
    answer = board.check("uname -m && getconf LONG_BIT", "tell its CPU")
    # The last two words of the output are the CPU and the number of bits. A login script may have printed other text
    # before them.
    machine, bits = answer.split()[-2:] if len(answer.split()) > 1 else (answer, "")
    if not bits.isdecimal():
        raise ToolkitError(f"{board.host} does not tell its CPU: {' '.join(answer.split())}")
    return machine, int(bits)


def runs_on(target: Target, machine: str, bits: int) -> bool:
    """True if a machine whose `cpu_of` returns these values can run programs for `target`."""
    if target.is_bare_metal:
        return False
    processor = target.processor or platform.machine()
    return machine in MACHINES.get(processor, (processor,)) and bits == BITS.get(processor, bits)


def check_processor(target: Target, board: Board) -> None:
    """Raises ToolkitError if the board cannot run programs for `target`."""
    machine, bits = cpu_of(board)
    if not runs_on(target, machine, bits):
        processor = target.processor or platform.machine()
        raise ToolkitError(f"{board.host} has another CPU than {target.name}: {machine} ({bits} bits), not {processor}")


def target_of(board: Board) -> Target:
    """The first target in the table whose programs run on a board. The target serves all CPUs of a kind, or is the one
    for this machine.

    Raises:
        ToolkitError: no target's programs run on the board.
    """
    machine, bits = cpu_of(board)
    for target in load_targets().values():
        if runs_on(target, machine, bits):
            return target
    raise ToolkitError(f"{board.host} has a CPU that no target is for: {machine} ({bits} bits)")


def check_room(archive: Path, models: list[Path], folder: str, board: Board) -> None:
    """Raises ToolkitError if the board's disk has too little room for the archive, its content and the models."""
    with tarfile.open(archive) as tar:
        needed = sum(member.size for member in tar) + archive.stat().st_size
    needed += sum(model.stat().st_size for model in models)
    table = board.check(f"df -Pk {shlex.quote(folder)}", "tell how full its disk is")
    free = int(table.splitlines()[-1].split()[3]) * 1024
    if free < needed:
        raise ToolkitError(
            f"the disk of {board.host} is full: {folder} has {free / 1e6:.1f} MB free, "
            f"the bundle needs {needed / 1e6:.1f} MB"
        )
