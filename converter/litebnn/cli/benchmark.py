"""`litebnn benchmark`: times models side by side, with their memory and the time of each op."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litebnn.cli.parsing import OneLineParser, add_command, add_json, at_least, file_path, not_empty, shape
from litebnn.cli.shared import (
    add_model_explorer,
    add_report,
    check_model_explorer,
    check_report,
    page_of,
    write_node_data,
)
from litebnn.errors import printable

if TYPE_CHECKING:
    from litebnn.benchmark import Contender, Measurement
    from litebnn.benchmark.on_board import BoardAddress
    from litebnn.report.page import Times

_MOST_THREADS = 256
_FLOAT_SUFFIX = ".float.tflite"
_SLOWEST_OPS = 12
_COLUMNS = ("model", "runtime", "threads", "median ms", "p90", "p99", "times", "load ms", "model MiB", "peak MiB")
_OP_COLUMNS = ("ms", "share", "op", "output")


def add_to(commands: Any) -> None:
    """Adds the command `litebnn benchmark` to argparse's `commands`."""
    parser = add_command(
        commands,
        "benchmark",
        "measure the time of models, side by side and op by op",
        "benchmark model.tflite",
        "benchmark small.tflite large.tflite --threads 1-4 --json > times.json",
        "benchmark model.tflite --peer --float model.float.tflite",
        "benchmark model.tflite --host pi@raspberrypi",
        "benchmark model.tflite --report report.html",
        "benchmark model.tflite --model-explorer times.json",
    )
    parser.add_argument("models", type=file_path, nargs="+", metavar="MODEL", help=".tflite file")
    parser.add_argument(
        "--threads",
        type=_threads,
        default=(1,),
        metavar="N",
        help="numbers of threads: one (4), a list (1,2,4) or a range (1-4)",
    )
    parser.add_argument(
        "--runs", type=at_least(1), default=50, metavar="N", help="least number of runs of each model (50)"
    )
    parser.add_argument(
        "--isa", type=not_empty, help="instruction set, such as portable; by default the best for this CPU"
    )
    parser.add_argument(
        "--input-shape",
        type=shape,
        action="append",
        default=[],
        metavar="N,H,W,C",
        help="shape of an input, for models of images of any size; once for each input, in order",
    )
    parser.add_argument(
        "--peer",
        action="store_true",
        help=f"also run the float model, by default NAME{_FLOAT_SUFFIX} beside NAME.lce.tflite or NAME.tflite, and "
        "Larq Compute Engine if it is installed",
    )
    parser.add_argument(
        "--float",
        type=file_path,
        action="append",
        metavar="FILE",
        help="float model for --peer; once for each MODEL, in order",
    )
    parser.add_argument(
        "--peer-python",
        type=not_empty,
        metavar="PYTHON",
        help="Python interpreter of an environment with larq-compute-engine, such as venv/bin/python",
    )
    _add_board(parser)
    parser.only_if(
        lambda options: options.peer, "says what --peer runs, which is not given", "--float", "--peer-python"
    )
    add_report(parser)
    add_model_explorer(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _add_board(parser: OneLineParser) -> None:
    board = parser.add_argument_group(
        "on a board", "the same options as for `invoke deploy`; they need a checkout of litebnn"
    )
    board.add_argument("--host", type=not_empty, metavar="[USER@]HOST[:PORT]", help="measure on this board, over SSH")
    board.add_argument(
        "--target",
        type=not_empty,
        help="target of the board, a row of toolchains/targets.toml; by default chosen by the board's CPU",
    )
    board.add_argument("--folder", type=not_empty, help="folder on the board; by default the user's home folder")
    board.add_argument("--identity", type=file_path, metavar="FILE", help="private key file for SSH")
    board.add_argument(
        "--accept-host-key",
        type=not_empty,
        metavar="FINGERPRINT",
        help="fingerprint of the board's host key, SHA256:...",
    )
    of_board = "--target", "--folder", "--identity", "--accept-host-key"
    parser.only_if(lambda options: options.host, "is for a board: name it with --host", *of_board)
    parser.only_if(
        lambda options: not options.host,
        "is for this machine, --host for a board: choose one",
        "--isa",
        "--peer-python",
        "--input-shape",
    )


def _threads(text: str) -> tuple[int, ...]:
    """Parses numbers of threads, such as "1,4" or "1-4"."""
    counts: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= first <= last <= _MOST_THREADS:
            raise argparse.ArgumentTypeError(f"{text}: expected 4, 1,2,4 or 1-4, of 1 to {_MOST_THREADS}")
        counts += range(first, last + 1)
    return tuple(dict.fromkeys(counts))


def _run(options: argparse.Namespace) -> None:
    from litebnn.benchmark import measure
    from litebnn.cli.output import print_json
    from litebnn.cli.progress import progress
    from litebnn.files import write_whole

    models = *options.models, *(options.float or ())
    check_report(options.report, options.model_explorer, *models)
    check_model_explorer(options.model_explorer, *models)
    for name, file in (("--model-explorer", options.model_explorer), ("--report", options.report)):
        if file and len(options.models) > 1:
            raise ValueError(f"{name} is for one model, not {len(options.models)}")
    address = _address(options)
    contenders = _contenders(options)
    if address is not None:
        found = _on_board(contenders, address, options.runs)
    else:
        with progress("loading") as show:
            found = measure(contenders, runs=options.runs, progress=show)
    if options.model_explorer:
        write_node_data(options.model_explorer, _node_data(found[0]))
    if options.report:
        write_whole(options.report, _page(found, options.host))
    if options.json:
        print_json({"host": options.host, "measurements": [one.to_dict() for one in found]})
    else:
        _print(found)


def _address(options: argparse.Namespace) -> BoardAddress | None:
    """The board on which to measure; None for this machine."""
    from litebnn.benchmark.on_board import BoardAddress

    of_board = {name: getattr(options, name) for name in ("target", "folder", "identity", "accept_host_key")}
    given = {name: value for name, value in of_board.items() if value is not None}
    return None if options.host is None else BoardAddress(options.host, **given)


def _on_board(contenders: list[Contender], address: BoardAddress, runs: int) -> list[Measurement]:
    from litebnn.benchmark.on_board import measure_on_board

    return measure_on_board(
        contenders, address, runs=runs, progress=lambda step: print(f"litebnn: {printable(step)}", file=sys.stderr)
    )


def _contenders(options: argparse.Namespace) -> list[Contender]:
    from litebnn.benchmark import LARQ, LITEBNN, XNNPACK, Contender

    floats = _float_models(options)
    has_larq = options.peer and not options.host and _has_larq(options.peer_python)
    contenders = []
    shapes = tuple(options.input_shape)
    for place, model in enumerate(options.models):
        for threads in options.threads:
            contenders.append(Contender(model, LITEBNN, threads, options.isa or "", input_shapes=shapes))
            if has_larq:
                contenders.append(Contender(model, LARQ, threads, python=options.peer_python or ""))
            if floats:
                contenders.append(Contender(floats[place], XNNPACK, threads, input_shapes=shapes))
    return contenders


def _float_models(options: argparse.Namespace) -> list[Path]:
    """Finds the float model for each model, if the options ask for float models."""
    given = options.float or []
    if not options.peer:
        return []
    if given:
        if len(given) != len(options.models):
            raise ValueError(
                f"--float is given {len(given)} times, expected once for each of {len(options.models)} models"
            )
        return list(given)
    found = []
    for model in options.models:
        beside = model.with_name(model.name.removesuffix(".tflite").removesuffix(".lce") + _FLOAT_SUFFIX)
        if not beside.is_file():
            raise ValueError(f"--peer: there is no {beside}: name the float model of {model} with --float FILE")
        found.append(beside)
    return found


def _has_larq(python: str | None) -> bool:
    """True if Larq Compute Engine is installed for a Python. If not, prints a line that says so."""
    import subprocess

    code = "from importlib.metadata import version; print(version('larq-compute-engine'))"
    try:
        done = subprocess.run([python or sys.executable, "-c", code], capture_output=True, text=True)
    except OSError as error:
        raise ValueError(f"--peer-python={python} cannot be started: {error.strerror}") from None
    if done.returncode and python:
        raise ValueError(f"--peer-python={python} has no larq-compute-engine")
    if done.returncode:
        print(
            "litebnn: larq-compute-engine is not installed and left out (--peer-python names another Python)",
            file=sys.stderr,
        )
    return not done.returncode


def _page(found: list[Measurement], host: str) -> bytes:
    """The report page of the first measurement's model, with its measurements for each number of threads."""
    from litebnn.benchmark import LITEBNN
    from litebnn.report.inspection import inspect_model

    times = [_times(one, host or "this machine") for one in found if one.ops and one.contender.runtime == LITEBNN]
    return page_of(inspect_model(found[0].contender.model), measured=times)


def _times(one: Measurement, machine: str) -> Times:
    """The time of each op. If several ops cannot run separately, the first of them has the time of all."""
    from litebnn.report.page import Times

    threads = "1 thread" if one.contender.threads == 1 else f"{one.contender.threads} threads"
    seconds = {index: op.seconds if index == op.ops[0] else 0.0 for op in one.ops for index in op.ops}
    source = f"litebnn benchmark, the median of {one.runs} runs was {one.median * 1e3:.3f} ms"
    place = f"{machine}, {threads}"
    return Times(place, place, "measured", source, seconds, one.runtime_seconds or 0.0)


def _node_data(one: Measurement) -> dict[str, Any]:
    """The times of ops for Model Explorer. If several ops cannot run separately, the first of them has the time of
    all.
    """
    from litebnn.report.inspection import inspect_model
    from litebnn.report.node_data import node_data

    threads = "1 thread" if one.contender.threads == 1 else f"{one.contender.threads} threads"
    milliseconds = {op.ops[0]: op.seconds * 1e3 for op in one.ops if op.ops}
    return node_data(inspect_model(one.contender.model), f"measured on {threads}", milliseconds)


def _print(found: list[Measurement]) -> None:
    from litebnn.cli.output import print_table

    names = _names([one.contender.model for one in found])
    rows = []
    for one in found:
        milliseconds = [f"{one.percentiles[percent] * 1e3:.3f}" for percent in (50, 90, 99)]
        bytes_held = one.model_memory_bytes, one.peak_memory_bytes
        sizes = ["" if size is None else f"{size / 2**20:.1f}" for size in bytes_held]
        times = f"{one.median / found[0].median:.2f}"
        load = f"{one.load_seconds * 1e3:.1f}"
        runtime, threads = one.contender.runtime, str(one.contender.threads)
        rows.append([names[one.contender.model], runtime, threads, *milliseconds, times, load, *sizes])
    print_table(_COLUMNS, rows, numbers=_COLUMNS[2:])
    for one in found:
        if one.ops and one.contender.threads == found[0].contender.threads:
            _print_ops(f"{names[one.contender.model]} in {one.contender.runtime}", one)


def _print_ops(name: str, one: Measurement) -> None:
    """Prints the slowest ops and the sum of the others, in milliseconds and as shares of the median run."""
    from litebnn.cli.output import print_table
    from litebnn.report.op_properties import short_name

    rows = [
        (op.seconds, " + ".join(dict.fromkeys(op.names)), short_name(op.output))
        for op in sorted(one.ops, key=lambda op: -op.seconds)
    ]
    slowest, others = rows[:_SLOWEST_OPS], rows[_SLOWEST_OPS:]
    if others:
        slowest.append((sum(seconds for seconds, *_ in others), f"{len(others)} others", ""))
    slowest.append((sum(op.seconds for op in one.ops), "all ops", ""))
    if one.runtime_seconds:
        slowest.append((one.runtime_seconds, "the runtime itself", ""))
    print(f"\n{printable(name)}, op by op")
    cells = [(f"{seconds * 1e3:.3f}", f"{seconds / one.median:.1%}", op, output) for seconds, op, output in slowest]
    print_table(_OP_COLUMNS, cells, numbers=_OP_COLUMNS[:2])


def _names(models: list[Path]) -> dict[Path, str]:
    """Unique names for models: file names, or paths if two files have the same name."""
    known: dict[str, set[Path]] = {}
    for model in models:
        known.setdefault(model.name, set()).add(model)
    return {model: model.name if len(known[model.name]) == 1 else str(model) for model in models}
