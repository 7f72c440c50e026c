"""Copies the bundle of a target to boards over SSH, runs benchmark_model there and brings the results back.

python -m bench.deploy --target=rpi4 --host=pi@kitchen,pi@garden
"""

import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from litebnn.boards.board import Board
from litebnn.boards.host_keys import BoardError
from litebnn.files import write_whole
from toolchains.boards.table import State, changes, states
from toolchains.bundle import MODEL, bundle
from toolchains.command_line import parser, run
from toolchains.deploy import make_folder, measure_ops, on_board, unpack
from toolchains.targets import ToolkitError, find_system_target

# The columns of the table of boards. Each has the name that board_state.sh gives to its value.
COLUMNS = {
    "CPU": "cpu",
    "clock, MHz": "clock_mhz",
    "governor": "governor",
    "temperature, °C": "temperature_c",
    "throttled": "throttled",
}


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
    own = parser("bench.deploy", __doc__, target="", toolchain="auto")
    own.add_argument("--host", required=True, help="the board, or several with commas: [USER@]HOST[:PORT]")
    own.add_argument("--folder", default=".", help="folder on the board; by default the user's home")
    own.add_argument("--identity", type=Path, help="private key file")
    own.add_argument("--accept-host-key", default="", metavar="FINGERPRINT", help="the boards', SHA256:...")
    own.add_argument("--model", type=Path, help="model to measure; by default the bundle's")
    own.add_argument("--num-threads", type=int, default=1, help="threads to run it on")
    return run(own, _main, arguments)


if __name__ == "__main__":
    sys.exit(main())
