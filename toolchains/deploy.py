"""Copies the bundle of a target to boards over SSH, runs benchmark_model there and brings the results back.

python -m toolchains.deploy --target=rpi4 --host=pi@kitchen,pi@garden
"""

import json
import platform
import shlex
import sys
import tarfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from litebnn.boards.board import Board
from litebnn.boards.host_keys import BoardError
from litebnn.files import write_whole
from toolchains.boards.state import State, changes, states
from toolchains.bundle import MODEL, bundle
from toolchains.command_line import parser, run
from toolchains.targets import Target, ToolkitError, find_system_target, load_targets

# For each processor, the values of `uname -m` on machines that run its programs. A machine with a 64-bit kernel may
# have a 32-bit system.
MACHINES = {"aarch64": ("aarch64", "arm64"), "x86_64": ("x86_64",), "armv7l": ("armv7l", "armv8l", "aarch64")}
BITS = {"aarch64": 64, "x86_64": 64, "armv7l": 32}
# The columns of the table of boards. Each has the name that board_state.sh gives to its value.
COLUMNS = {
    "CPU": "cpu",
    "clock, MHz": "clock_mhz",
    "governor": "governor",
    "temperature, °C": "temperature_c",
    "throttled": "throttled",
}
ILLEGAL_INSTRUCTION = 128 + 4  # a shell's exit code for a command that this signal ended


def on_board(folder: str) -> str:
    """The folder for the board's commands, relative to the home folder, because no shell expands a quoted tilde."""
    return str(PurePosixPath(folder).relative_to("~")) if PurePosixPath(folder).is_relative_to("~") else folder


@dataclass
class Deployment:
    """The result of deploying the bundle to one board."""

    # The board's host name.
    host: str
    # The path of benchmark_model's results, build/TARGET/benchmark-HOST.json; None if the deployment failed.
    results: Path | None = None
    # The text that benchmark_model printed.
    printed: str = ""
    # The board's states before and after the benchmark.
    before: State = field(default_factory=dict)
    after: State = field(default_factory=dict)
    # The reason why the deployment failed; empty if it did not.
    error: ToolkitError | BoardError | None = None


def deploy(
    target: str,
    hosts: Sequence[str],
    *,
    folder: str = ".",
    identity: Path | None = None,
    model: Path | None = None,
    num_threads: int = 1,
    toolchain: str = "auto",
    accept_host_key: str = "",
) -> list[Deployment]:
    """Bundles a target, copies the bundle to boards, and measures a model on all of them in parallel.

    `hosts` are [USER@]HOST[:PORT] of each board. The bundle goes to `folder` on the board, by default the user's home.
    `identity` is a private key file. `model` is measured instead of the bundle's model, on `num_threads` threads.
    `toolchain` is as for `build` in toolchains/build.py. `accept_host_key` has the fingerprints, separated by commas,
    of unknown host keys that may be added to the known ones.

    Returns:
        The result for each board. An error on one board, such as an unknown key, another CPU, a full disk or a failed
        benchmark, does not stop the others.

    Raises:
        ToolkitError: the bundle cannot be made.

    Example:
        >>> deploy("rpi4", ["pi@board"])[0].results  # doctest: +SKIP
        PosixPath('.../build/rpi4/benchmark-board.json')
    """
    row = find_system_target(target)
    if model is not None and not model.is_file():
        raise ToolkitError(f"--model={model} is no file")
    deployments = [Deployment(host) for host in dict.fromkeys(hosts)]
    with ThreadPoolExecutor(len(deployments)) as threads:
        boards: dict[str, Board] = {}

        def on_all(step: Callable[[Deployment], object]) -> None:
            """Runs a step on all remaining boards in parallel; a board that fails is dropped."""
            list(threads.map(lambda one: _attempt(one, step), _unfailed(deployments)))

        def connect(one: Deployment) -> None:
            boards[one.host] = Board(one.host, identity, accept_host_key)
            make_folder(row, boards[one.host], on_board(folder))

        on_all(connect)
        if not _unfailed(deployments):
            return deployments
        archive, models = bundle(target, toolchain), [model] if model is not None else []
        bundle_folder = f"{on_board(folder)}/{archive.name.removesuffix('.tar.gz')}"

        def run_model(one: Deployment) -> None:
            results = row.folder / f"benchmark-{one.host.rpartition('@')[2].replace(':', '-')}.json"
            name = model.name if model is not None else MODEL
            one.printed = measure_ops(target, boards[one.host], bundle_folder, name, results, num_threads)
            one.results = results

        on_all(lambda one: unpack(archive, models, on_board(folder), boards[one.host]))
        _note_states(deployments, boards, "before")
        on_all(run_model)
        _note_states(deployments, boards, "after")
    for one in _unfailed(deployments):
        _add_to_results(one)
    return deployments


def _unfailed(deployments: Sequence[Deployment]) -> list[Deployment]:
    return [one for one in deployments if one.error is None]


def _attempt(one: Deployment, step: Callable[[Deployment], object]) -> None:
    try:
        step(one)
    except (ToolkitError, BoardError) as error:
        one.error = error


def _note_states(deployments: Sequence[Deployment], boards: dict[str, Board], when: str) -> None:
    left = _unfailed(deployments)
    for one, state in zip(left, states([boards[one.host] for one in left]) if left else [], strict=True):
        setattr(one, when, state)


def _add_to_results(one: Deployment) -> None:
    """Adds the states of the board (CPU, clock, temperature) before and after the benchmark to the file of results."""
    assert one.results is not None
    figures = json.loads(one.results.read_text(encoding="utf-8"))
    whole = json.dumps(figures | {"board": {"before": one.before, "after": one.after}}) + "\n"
    write_whole(one.results, whole.encode())


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
    if target.is_bare:
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


def summary(one: Deployment) -> str:
    """The last line that the command prints about a deployment to one board."""
    if one.results is None:
        return f"{one.host}: failed"
    median = json.loads(one.results.read_text(encoding="utf-8"))["latency_ms"]["median"]
    return f"{one.host}: median latency {median:.3f} ms; all figures: {one.results}"


def print_table(deployments: Sequence[Deployment]) -> None:
    """Prints a table of the boards, with clocks and temperatures before and after."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("board", *COLUMNS):
        table.add_column(name, overflow="fold")
    for one in _unfailed(deployments):
        table.add_row(one.host, *(changes(one.before, one.after, name) for name in COLUMNS.values()))
    Console(width=None if sys.stdout.isatty() else 160, markup=False, emoji=False, highlight=False).print(table)


def _main(host: str, **options: Any) -> None:
    deployments = deploy(hosts=host.split(","), **options)
    left = _unfailed(deployments)
    if len(deployments) == 1 and left:
        print(f"{left[0].printed}\n")
    if left:
        print_table(deployments)
    for one in deployments:
        if len(deployments) > 1 or one.error is None:
            print(summary(one))
    errors = [one.error for one in deployments if one.error is not None]
    for error in errors[:-1]:
        print(f"error: {error}", file=sys.stderr)
    if errors:
        raise errors[-1]


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    own = parser("toolchains.deploy", __doc__, target="", toolchain="auto")
    own.add_argument("--host", required=True, help="the board, or several with commas: [USER@]HOST[:PORT]")
    own.add_argument("--folder", default=".", help="folder on the board; by default the user's home")
    own.add_argument("--identity", type=Path, help="private key file")
    own.add_argument("--accept-host-key", default="", metavar="FINGERPRINT", help="the boards', SHA256:...")
    own.add_argument("--model", type=Path, help="model to measure; by default the bundle's")
    own.add_argument("--num-threads", type=int, default=1, help="threads to run it on")
    return run(own, _main, arguments)


if __name__ == "__main__":
    sys.exit(main())
