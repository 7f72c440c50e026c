"""Times whole models with several runtimes, and prints ratios. The runtimes take turns, so that a change of the
machine's speed affects all alike.

MODEL is a network of bench/zoo, QuickNet by default. litebnn runs its own conversion of the network, XNNPACK the float
file. With --peer, Larq Compute Engine 0.16 runs its own conversion if it can convert the network, with its best options
and with its defaults. FILE gets the times as JSON, with the CPU and the date; bench/zoo/chart.py draws them.

Usage:

    python -m bench.models [--peer] [--isa=NAME] [--threads=N] [--rounds=N] [--output=FILE] [--all | MODEL ...]
"""

import argparse
import datetime
import json
import sys
from pathlib import Path

from bench.zoo import PEER_PYTHON, model_file, networks, peer_refuses
from bench.zoo.convert import convert_network
from litebnn.benchmark import LARQ, LARQ_DEFAULT, LITEBNN, XNNPACK, Contender, Measurement, measure
from litebnn.errors import ConversionError
from toolchains.command_line import run
from toolchains.targets import ToolkitError

RUNTIMES = {"lce-best": LARQ, "lce-default": LARQ_DEFAULT, "xnnpack": XNNPACK}


def contender(kind: str, name: str, threads: int) -> Contender:
    """The model and the runtime that a `kind` stands for. A kind is a key of RUNTIMES, "litebnn", or "litebnn-ISA"."""
    runtime = RUNTIMES.get(kind, LITEBNN)
    isa = kind.partition("-")[2] if runtime == LITEBNN else ""
    python = str(PEER_PYTHON) if kind.startswith("lce-") else ""
    form = {XNNPACK: "float", LITEBNN: "litebnn"}.get(runtime, "lce")
    return Contender(model_file(name, form), runtime, threads, isa, python)


def take_turns(contenders: list[Contender], turns: int) -> list[Measurement]:
    """Measures models and runtimes in turns of a tenth of a second.

    Raises:
        ToolkitError: one of them cannot be measured.
    """
    try:
        return measure(contenders, turns=turns, runs=1, ops=False)
    except ConversionError as error:
        raise ToolkitError(str(error)) from error


def compare(name: str, kinds: list[str], threads: int, rounds: int) -> dict[str, dict[str, float]]:
    """Times a network in all `kinds`: runtimes, each with its form of the model. Prints a line for each kind: the
    median and best times, their ratios to those of the first kind, and the peak memory.

    Returns:
        The printed values by kind: `median_ms`, `best_ms`, `runs` and `peak_bytes`.
    """
    convert_network(name)
    if peer_refuses(name):
        kinds = [kind for kind in kinds if not kind.startswith("lce-")]
    measured = take_turns([contender(kind, name, threads) for kind in kinds], rounds)
    print(f"{name}, {threads} thread{'s' if threads > 1 else ''}, {rounds} turns each")
    figures = {}
    ours = measured[0]
    for kind, one in zip(kinds, measured, strict=True):
        print(
            f"  {kind:<16} median {one.median * 1e3:8.2f} ms ({one.median / ours.median:5.2f})   "
            f"best {one.best * 1e3:8.2f} ms ({one.best / ours.best:5.2f})   {one.runs:5} runs   "
            f"peak {one.peak_memory_bytes / 2**20:6.1f} MiB"
        )
        figures[kind] = {
            "median_ms": round(one.median * 1e3, 3),
            "best_ms": round(one.best * 1e3, 3),
            "runs": one.runs,
            "peak_bytes": one.peak_memory_bytes,
        }
    return figures


def cpu_name() -> str:
    """The name of this machine's CPU, as Linux reports it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def compare_all(
    models: list[str],
    isa: list[str],
    peer: bool,
    threads: int,
    rounds: int,
    output: Path | None = None,
    all: bool = False,
) -> None:
    """Compares the runtimes on each network."""
    if peer and not PEER_PYTHON.is_file():
        raise ToolkitError(f"there is no {PEER_PYTHON}: bench/zoo/make_models.py says how to make that environment")
    peers = ["lce-best", "lce-default"] if peer else []
    kinds = ["litebnn", *(f"litebnn-{each}" for each in isa), *peers, "xnnpack"]
    figures = {name: compare(name, kinds, threads, rounds) for name in (networks() if all else models)}
    if output is not None:
        settings = {"date": datetime.date.today().isoformat(), "cpu": cpu_name(), "threads": threads, "turns": rounds}
        output.write_text(json.dumps({**settings, "models": figures}, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.models", description="Time whole models.")
    parser.add_argument("models", nargs="*", default=["QuickNet"], metavar="MODEL")
    parser.add_argument("--all", action="store_true", help="all networks in build/zoo")
    parser.add_argument("--peer", action="store_true", help="run Larq Compute Engine too")
    parser.add_argument("--isa", action="append", default=[], help="run litebnn with this instruction set too")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--output", type=Path, help="file that the figures are written to, as JSON")
    return run(parser, compare_all, None)


if __name__ == "__main__":
    sys.exit(main())
