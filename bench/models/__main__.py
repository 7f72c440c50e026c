"""Times whole models, taking turns between runtimes so that all see the same machine, and prints ratios.

    python -m bench.models [--peer] [--isa=NAME] [--threads=N] [--rounds=N] [--output=FILE] [MODEL ...]

MODEL is a network of bench/zoo, QuickNet by default: litebnn and the peer run what Larq Compute Engine has converted,
XNNPACK the float file. With --peer, Larq Compute Engine 0.16 runs too, at its best and by default. FILE gets the
figures as JSON, with the CPU and the date; bench/zoo/chart.py draws it.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from bench.zoo import PEER_PYTHON, model_file
from toolchains.command_line import run
from toolchains.targets import ToolkitError

# A turn is so long that what the others have left in the caches counts little.
SECONDS_OF_A_TURN = 0.1


class Worker:
    """One runtime with one model, in a process of its own."""

    def __init__(self, kind: str, model: Path, threads: int) -> None:
        self.kind = kind
        self.seconds: list[float] = []
        self.peak_bytes = 0
        python = PEER_PYTHON if kind.startswith("lce-") else Path(sys.executable)
        command = [str(word) for word in (python, Path(__file__).with_name("worker.py"), kind, model, threads)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        if self._answer() != "ready":
            raise ToolkitError(f"{kind} cannot run {model}: try {' '.join(command)}")

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._answer()

    def take_turn(self) -> None:
        self.seconds += json.loads(self._ask(str(SECONDS_OF_A_TURN)))

    def end(self) -> None:
        self.peak_bytes = int(self._ask(""))
        self._process.wait()


def compare(name: str, kinds: list[str], threads: int, rounds: int) -> dict[str, dict[str, float]]:
    """Prints one line for each kind: median and best time, the first kind's advantage, peak memory.

    Returns:
        The same figures, by kind: `median_ms`, `best_ms`, `runs`, `peak_bytes`.
    """
    files = {kind: model_file(name, "float" if kind == "xnnpack" else "lce") for kind in kinds}
    workers = [Worker(kind, file, threads) for kind, file in files.items()]
    for worker in workers:
        worker.take_turn()
        worker.seconds.clear()
    for _ in range(rounds):
        for worker in workers:
            worker.take_turn()
    ours = statistics.median(workers[0].seconds), min(workers[0].seconds)
    print(f"{name}, {threads} thread{'s' if threads > 1 else ''}, {rounds} turns each")
    figures = {}
    for worker in workers:
        worker.end()
        median, best = statistics.median(worker.seconds), min(worker.seconds)
        print(
            f"  {worker.kind:<16} median {median * 1e3:8.2f} ms ({median / ours[0]:5.2f})   "
            f"best {best * 1e3:8.2f} ms ({best / ours[1]:5.2f})   {len(worker.seconds):5} runs   "
            f"peak {worker.peak_bytes / 2**20:6.1f} MiB"
        )
        figures[worker.kind] = {
            "median_ms": round(median * 1e3, 3),
            "best_ms": round(best * 1e3, 3),
            "runs": len(worker.seconds),
            "peak_bytes": worker.peak_bytes,
        }
    return figures


def cpu_name() -> str:
    """What the kernel calls this machine's CPU."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def compare_all(
    models: list[str], isa: list[str], peer: bool, threads: int, rounds: int, output: Path | None = None
) -> None:
    """Compares the runtimes on each network."""
    if peer and not PEER_PYTHON.is_file():
        raise ToolkitError(f"there is no {PEER_PYTHON}: bench/zoo/make_models.py says how to make that environment")
    peers = ["lce-best", "lce-default"] if peer else []
    kinds = ["litebnn", *(f"litebnn-{each}" for each in isa), *peers, "xnnpack"]
    figures = {name: compare(name, kinds, threads, rounds) for name in models}
    if output is not None:
        settings = {"date": datetime.date.today().isoformat(), "cpu": cpu_name(), "threads": threads, "turns": rounds}
        output.write_text(json.dumps({**settings, "models": figures}, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.models", description="Time whole models.")
    parser.add_argument("models", nargs="*", default=["QuickNet"], metavar="MODEL")
    parser.add_argument("--peer", action="store_true", help="run Larq Compute Engine too")
    parser.add_argument("--isa", action="append", default=[], help="run litebnn with this instruction set too")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--output", type=Path, help="file that the figures are written to, as JSON")
    return run(parser, compare_all, None)


if __name__ == "__main__":
    sys.exit(main())
