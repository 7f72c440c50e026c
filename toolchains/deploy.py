"""Copies the bundle of a target to a board over SSH, runs benchmark_model there and brings its results back.

python -m toolchains.deploy --target=rpi4 --host=pi@board
"""

import json
import platform
import re
import shlex
import sys
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any

from toolchains.bundle import MODEL, bundle
from toolchains.command_line import parser, run
from toolchains.host_keys import VouchedFor
from toolchains.targets import Target, ToolkitError, find_target, load_targets

HOST = re.compile(r"(.+@)?([^@:]+(:\d+)?|[0-9a-fA-F:]+)")  # what Fabric takes; an IPv6 address has no port

# A machine runs programs for a processor where its `uname -m` is listed; a 64-bit kernel may carry a 32-bit system.
MACHINES = {"aarch64": ("aarch64", "arm64"), "x86_64": ("x86_64",), "armv7l": ("armv7l", "armv8l", "aarch64")}
BITS = {"aarch64": 64, "x86_64": 64, "armv7l": 32}
ILLEGAL_INSTRUCTION = 128 + 4  # a shell's exit code for a command that died of it


class Board:
    """The machine at the other end of an SSH connection."""

    def __init__(self, host: str, identity: Path | None = None, accepted_key: str = "") -> None:
        """Connects to [USER@]HOST[:PORT], with the private key `identity` or as `ssh` would.

        Raises:
            ToolkitError: Fabric is not installed, `identity` is no key, no connection can be made, or nobody vouches
                for the host's key.
        """
        if not HOST.fullmatch(host):
            raise ToolkitError(f"--host={host}: expected [USER@]HOST[:PORT]")
        try:
            from fabric import Connection
            from paramiko import PKey, SSHException
            from paramiko.hostkeys import InvalidHostKey
            from paramiko.pkey import UnknownKeyType
        except ImportError as error:
            raise ToolkitError(
                "deploying needs Fabric: pip install 'fabric>=3.2' (litebnn's extra `deploy`)"
            ) from error
        self.host = host
        self._failures: tuple[type[Exception], ...] = (OSError, EOFError, ValueError, SSHException, InvalidHostKey)
        try:
            key = {"pkey": PKey.from_path(identity)} if identity else {}
        except (*self._failures, TypeError, UnknownKeyType) as error:
            raise ToolkitError(f"--identity={identity} cannot be used as a private key: {one_line(error)}") from error
        try:
            self._connection = Connection(host, connect_timeout=15, connect_kwargs=key)
            # The way there may lead over other hosts, and each of them sees what is sent.
            hop = self._connection
            while hasattr(hop, "client"):
                # A host that is known by another key is refused.
                hop.client.load_system_host_keys()
                hop.client.set_missing_host_key_policy(VouchedFor(accepted_key))
                hop = hop.gateway
            self._connection.open()
        except self._failures as error:
            hint = "; ssh must reach it without a password" if isinstance(error, SSHException) else ""
            raise ToolkitError(f"cannot connect to {host}: {one_line(error)}{hint}") from error

    def run(self, command: str) -> Any:
        """The result of a command: `stdout`, `stderr` and `exited`.

        Raises:
            ToolkitError: the connection broke.
        """
        try:
            return self._connection.run(command, hide=True, warn=True, in_stream=False)
        except self._failures as error:
            raise ToolkitError(f"the connection to {self.host} broke: {one_line(error)}") from error

    def check(self, command: str, what: str) -> str:
        """What a command prints.

        Raises:
            ToolkitError: it failed; its last line of output says why.
        """
        result = self.run(command)
        if result.exited:
            lines = (result.stderr or result.stdout).strip().splitlines()
            raise ToolkitError(f"{self.host} cannot {what}: {lines[-1] if lines else f'exit code {result.exited}'}")
        return str(result.stdout).strip()

    def put(self, file: Path, path: str) -> None:
        """Copies a file to the board."""
        try:
            # Fabric's own functions take braces in a path for names of its.
            self._connection.sftp().put(str(file), path)
        except self._failures as error:
            raise ToolkitError(
                f"cannot copy {file.name} to {self.host}: {one_line(error)}; is its disk full?"
            ) from error

    def get(self, path: str, file: Path) -> None:
        """Copies a file from the board, whole or not at all."""
        part = file.with_name(f".{file.name}.part")
        try:
            self._connection.sftp().get(path, str(part))
            part.replace(file)
        except self._failures as error:
            raise ToolkitError(f"cannot fetch {path} from {self.host}: {one_line(error)}") from error
        finally:
            part.unlink(missing_ok=True)


def on_board(folder: str) -> str:
    """A folder as the board's commands take it: they start in the home, which no shell there puts for a tilde."""
    return str(PurePosixPath(folder).relative_to("~")) if PurePosixPath(folder).is_relative_to("~") else folder


def one_line(error: Exception) -> str:
    """An exception's message without line breaks, or its name where it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def deploy(
    target: str,
    host: str,
    *,
    folder: str = ".",
    identity: Path | None = None,
    model: Path | None = None,
    num_threads: int = 1,
    toolchain: str = "auto",
    accept_host_key: str = "",
) -> Path:
    """Bundles a target, copies the bundle to a board, and measures a model there.

    Args:
        target: a row of targets.toml.
        host: [USER@]HOST[:PORT].
        folder: the folder on the board to unpack the bundle in; by default the user's home.
        identity: a private key file.
        model: the model to measure; by default the bundle's.
        num_threads: threads to run it on.
        toolchain: as for `toolchains.build.build`.
        accept_host_key: the fingerprint of the board's host key, to write the key down where it is not known yet.

    Returns:
        The path of benchmark_model's results, build/TARGET/benchmark-HOST.json.

    Raises:
        ToolkitError: nothing can be bundled, the board cannot be reached, is not known by its key, has another CPU or
            too little room on its disk, or the benchmark fails there.

    Example:
        >>> deploy("rpi4", "pi@board")  # doctest: +SKIP
        PosixPath('.../build/rpi4/benchmark-board.json')
    """
    row = find_target(target)
    if model is not None and not model.is_file():
        raise ToolkitError(f"--model={model} is no file")
    board = Board(host, identity, accept_host_key)
    place = install(row, board, folder, [model] if model is not None else [], toolchain)
    results = row.folder / f"benchmark-{host.rpartition('@')[2].replace(':', '-')}.json"
    return measure_ops(target, board, place, model.name if model is not None else MODEL, results, num_threads)


def install(target: Target, board: Board, folder: str, models: list[Path], toolchain: str = "auto") -> str:
    """Bundles a target, and copies the bundle and `models` to a board; returns the folder there that holds them all.

    Raises:
        ToolkitError: nothing can be bundled, or the board has another CPU or too little room on its disk.
    """
    folder = on_board(folder)
    check_processor(target, board)
    board.check(f"mkdir -p {shlex.quote(folder)}", f"make the folder {folder}")
    archive = bundle(target.name, toolchain)
    check_room(archive, models, folder, board)

    place = f"{folder}/{archive.name.removesuffix('.tar.gz')}"
    packed = f"{folder}/{archive.name}"
    board.put(archive, packed)
    quoted = shlex.quote(packed)
    board.check(f"tar -xzf {quoted} -C {shlex.quote(folder)} && rm {quoted}", "unpack the bundle")
    for model in models:
        board.put(model, f"{place}/{model.name}")
    return place


def measure_ops(
    target: str, board: Board, place: str, model: str, results: Path, num_threads: int = 1, num_runs: int = 50
) -> Path:
    """Measures a model in a folder of the board, whole and op by op; returns `results`, where the figures are then."""
    flags = f"--graph={shlex.quote(model)} --lcompute=1 --use_xnnpack=1 --num_threads={num_threads}"
    flags += f" --num_runs={num_runs}"
    measure(target, board, place, flags, results)
    # The ops are measured one by one, and the whole as it runs best, with several ops as one.
    print("\nOp by op:")
    ops = results.with_suffix(".ops.json")
    measure(target, board, place, f"{flags} --enable_op_profiling=1", ops)
    figures = json.loads(results.read_text(encoding="utf-8")) | {"ops": json.loads(ops.read_text("utf-8"))["ops"]}
    ops.write_text(json.dumps(figures) + "\n", encoding="utf-8")
    return ops.replace(results)


def measure(target: str, board: Board, place: str, flags: str, results: Path) -> None:
    """Runs benchmark_model in a folder of the board, prints what it prints, and brings its results to `results`."""
    # The shell has more to do after the program, so it stays and tells of a signal in its exit code.
    command = f"./benchmark_model {flags} --output=benchmark.json"
    result = board.run(f"cd {shlex.quote(place)} && {command}; exit $?")
    if result.exited == ILLEGAL_INSTRUCTION:
        raise ToolkitError(
            f"{board.host} has another CPU than {target}: benchmark_model met an instruction that it lacks"
        )
    if result.exited:
        lines = result.stderr.strip().splitlines()
        why = lines[-1] if lines else f"exit code {result.exited}"
        raise ToolkitError(f"benchmark_model failed on {board.host}: {why}")
    board.get(f"{place}/benchmark.json", results)
    print(result.stdout.strip())


def cpu_of(board: Board) -> tuple[str, int]:
    """The board's `uname -m`, and the bits of its system.

    Raises:
        ToolkitError: it does not tell.
    """
    answer = board.check("uname -m && getconf LONG_BIT", "tell its CPU")
    # Whatever a login script prints comes first.
    machine, bits = answer.split()[-2:] if len(answer.split()) > 1 else (answer, "")
    if not bits.isdecimal():
        raise ToolkitError(f"{board.host} does not tell its CPU: {' '.join(answer.split())}")
    return machine, int(bits)


def runs_on(target: Target, machine: str, bits: int) -> bool:
    """Whether a machine, as `cpu_of` tells of it, runs programs for `target`."""
    processor = target.processor or platform.machine()
    return machine in MACHINES.get(processor, (processor,)) and bits == BITS.get(processor, bits)


def check_processor(target: Target, board: Board) -> None:
    """Raises ToolkitError where the board cannot run programs for `target`."""
    machine, bits = cpu_of(board)
    if not runs_on(target, machine, bits):
        processor = target.processor or platform.machine()
        raise ToolkitError(f"{board.host} has another CPU than {target.name}: {machine} ({bits} bits), not {processor}")


def target_of(board: Board) -> Target:
    """The first target whose programs run on a board: one for all CPUs of its kind, or for this machine's.

    Raises:
        ToolkitError: there is none.
    """
    machine, bits = cpu_of(board)
    for target in load_targets().values():
        if runs_on(target, machine, bits):
            return target
    raise ToolkitError(f"{board.host} has a CPU that no target is for: {machine} ({bits} bits)")


def check_room(archive: Path, models: list[Path], folder: str, board: Board) -> None:
    """Raises ToolkitError where the board's disk cannot hold the archive, its content and the models."""
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


def summary(results: Path) -> str:
    """The line that a deployment ends with."""
    median = json.loads(results.read_text(encoding="utf-8"))["latency_ms"]["median"]
    return f"median latency {median:.3f} ms; all figures: {results}"


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    own = parser("toolchains.deploy", __doc__, target="", toolchain="auto")
    own.add_argument("--host", required=True, help="the board: [USER@]HOST[:PORT]")
    own.add_argument("--folder", default=".", help="folder on the board; by default the user's home")
    own.add_argument("--identity", type=Path, help="private key file")
    own.add_argument("--accept-host-key", default="", metavar="FINGERPRINT", help="the board's, SHA256:...")
    own.add_argument("--model", type=Path, help="model to measure; by default the bundle's")
    own.add_argument("--num-threads", type=int, default=1, help="threads to run it on")
    return run(own, lambda **options: print(summary(deploy(**options))), arguments)


if __name__ == "__main__":
    sys.exit(main())
