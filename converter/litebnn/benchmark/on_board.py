"""Measures models on a board with the program benchmark_model, which the toolkit of a source checkout copies there."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from litebnn.benchmark.side_by_side import Contender, Measurement, OpTime, graphs_of
from litebnn.boards.board import Board
from litebnn.graph import Graph

CHECKOUT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class BoardAddress:
    """The address of a board and the credentials for it, as `invoke deploy` takes them."""

    host: str  # [USER@]HOST[:PORT], as ssh has it
    target: str = ""  # name of a row in toolchains/targets.toml; "" for the first row whose programs run on the board
    folder: str = "."  # on the board, for all files that are copied there
    identity: Path | None = None  # a private key; by default the keys that ssh would use
    # The fingerprint of the host key to accept and store if the board is unknown; "" to ask the user at the terminal.
    accept_host_key: str = ""


def measure_on_board(
    contenders: Sequence[Contender],
    address: BoardAddress,
    *,
    runs: int = 50,
    progress: Callable[[str], None] = lambda step: None,
) -> list[Measurement]:
    """Measures contenders on a board, one after the other, each in `runs` runs.

    The models run in LiteRT. A contender for a board cannot choose `isa` and `python`. `progress` is called with a
    description of each step.

    Returns:
        One measurement for each contender. Its ops were timed one by one, so the sum of their times exceeds the time of
        a whole run.

    Raises:
        ValueError: litebnn was not started in a source checkout, the board cannot be reached, or a model does not run
            there.

    Example:
        >>> contenders, board = [Contender(Path("model.tflite"))], BoardAddress("pi@raspberrypi")  # doctest: +SKIP
        >>> [one] = measure_on_board(contenders, board)  # doctest: +SKIP
        >>> one.median  # doctest: +SKIP
        0.0213
    """
    graphs = graphs_of(contenders)
    for path, graph in graphs.items():
        if any(-1 in tensor.shape_of_runs for tensor in graph.inputs):
            raise ValueError(f"{path} takes inputs of any size, which the board's program does not")
    names = [model.name for model in graphs]
    if len(set(names)) < len(names):
        raise ValueError(
            f"{max(names, key=names.count)} is the name of two models, which cannot be in one folder there"
        )
    deploy = _deploy()
    from toolchains.targets import find_system_target

    progress(f"connecting to {address.host}")
    try:
        with _stdout_is_stderr():
            board = Board(address.host, address.identity, address.accept_host_key)
            target = find_system_target(address.target) if address.target else deploy.target_of(board)
            progress(f"building for {target.name} and copying to {address.host}")
            place = deploy.install(target, board, address.folder, list(graphs))
            found = []
            with tempfile.TemporaryDirectory() as folder:
                results = Path(folder) / "results.json"
                for one in contenders:
                    progress(f"running {one.model.name} on {address.host}")
                    deploy.measure_ops(target.name, board, place, one.model.name, results, one.threads, runs)
                    figures = json.loads(results.read_text(encoding="utf-8"))
                    found.append(_measurement(one, graphs[one.model], figures))
    except deploy.ToolkitError as error:
        raise ValueError(str(error)) from error
    return found


def _deploy() -> ModuleType:
    """The toolkit's module `toolchains.deploy`, which only a source checkout has."""
    if not (CHECKOUT / "toolchains" / "deploy.py").is_file():
        raise ValueError(
            "--host builds programs for the board, which takes a checkout of litebnn: clone it and call it from there"
        )
    if str(CHECKOUT) not in sys.path:
        sys.path.append(str(CHECKOUT))
    try:
        from toolchains import deploy
    except ImportError as error:
        raise ValueError(f"--host needs the extras dev and deploy of litebnn: {error}") from error
    return deploy


@contextmanager
def _stdout_is_stderr() -> Iterator[None]:
    """Redirects stdout to stderr, so that the output of compilers and programs does not mix with the results."""
    sys.stdout.flush()
    with redirect_stdout(sys.stderr), os.fdopen(os.dup(1), "w") as stdout:
        os.dup2(2, 1)
        try:
            yield
        finally:
            os.dup2(stdout.fileno(), 1)


def _measurement(contender: Contender, graph: Graph, figures: dict[str, Any]) -> Measurement:
    """A measurement from the figures that benchmark_model wrote."""
    latency = {name: milliseconds / 1e3 for name, milliseconds in figures["latency_ms"].items()}
    return Measurement(
        contender=contender,
        runs=figures["num_runs"],
        best=latency["min"],
        percentiles={50: latency["median"], 90: latency["p90"], 99: latency["p99"]},
        load_seconds=figures["load_ms"] / 1e3,
        peak_memory_bytes=int(figures["peak_memory_bytes"]),
        model_memory_bytes=None,
        ops=tuple(
            OpTime(
                # The runtime numbers the nodes of a delegate after the model's own nodes.
                ops=(op["node"],) if op["node"] < len(graph.ops) else (),
                names=(op["op"],),
                output=op["output"],
                seconds=op["mean_ms"] / 1e3,
            )
            for op in figures["ops"]
        ),
    )
