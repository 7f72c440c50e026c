"""Measures the costs of ops on this machine, for the table with which `litebnn inspect` estimates times.

Usage:

    python -m bench.costs [--passes=N] [--times=FILE] [--output=FILE]

The command times small networks, each with one kind of layer. Every instruction set (ISA) of this CPU runs them, and
the costs are fitted to the times. Then the command times the networks of bench/zoo, which the fit has not seen. The
command stores the largest relative error of their estimates in the table. A run takes some minutes, and requires the
extra `bench`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bench.costs.fit import Cycles, Network, fit, workloads_of
from bench.costs.measure import measure
from bench.costs.suite import binary_networks, other_networks
from bench.zoo import ZOO
from litebnn.convert import convert_tflite
from litebnn.files import write_whole
from litebnn.report.costs import FILE, HOST, Costs, read_costs, write_costs
from litebnn.report.workload import Workload
from toolchains.command_line import run
from toolchains.targets import ToolkitError

Times = dict[tuple[str, str], float]
_CPUS = Path("/proc/cpuinfo")
_AVX512 = ("avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512_vpopcntdq")


@dataclass(frozen=True)
class IsaRow:
    """The properties of an ISA apart from its costs. The class `Costs`, a row of the table of costs, has fields with
    the same names."""

    isa: str
    needs: tuple[str, ...]
    tile: int
    tables: int = 0
    shared_tables: int = 0
    without: str = ""

    @property
    def isa_option(self) -> str | None:
        """The value of the library's option `isa`. A named ISA computes every layer; None lets the library delegate
        layers.
        """
        return None if self.without else self.isa


# The ISAs, fastest first, in the library's order. An ISA may delegate layers to the ISA `without`, if the function
# Better() in its source says so. Better() compares a layer's data with the limits `tables` and `shared_tables`.
ISAS = (
    IsaRow("avx512_vbmi", (*_AVX512, "avx512vbmi", "avx512_bitalg", "avx512_vnni", "gfni"), 64, 384, 360, "avx512"),
    IsaRow("avx512", _AVX512, 16),
    IsaRow("avx2", ("avx2",), 32),
    IsaRow("portable", (), 32),
)


def fitted(
    networks: Mapping[str, bytes], seconds: Mapping[str, float], row: Costs, free: Collection[str] = ()
) -> Cycles:
    """Fits the costs of an ISA's work, such as multiply-adds, to measured times. `row` has the ISA, and the known costs
    of another ISA to which this one delegates layers. Kinds of work that `free` names get the cost 0.
    """
    found = []
    for name, model in networks.items():
        own, others = workloads_of(model, row)
        left = seconds[name] * row.ghz * 1e9
        if row.without is not None:
            left -= cycles_of(others, row.without.cycles)
        if own and left > 0:
            found.append(Network(name, own, left))
    return fit(found, free)


def cycles_of(works: Iterable[Workload], cycles: Mapping[str, Mapping[str, float]]) -> float:
    """Returns the total cycles of all `works`. A workload has amounts, such as MACs and bytes, and `cycles` has the
    cost of one unit of each amount for the workload's kind."""
    return sum(cycles[work.kind].get(name, 0.0) * amount for work in works for name, amount in work.amounts.items())


def zoo_networks() -> dict[str, bytes]:
    """The available networks of bench/zoo, converted by litebnn."""
    return {path.name.split(".")[0]: convert_tflite(path) for path in sorted(ZOO.glob("*.float.tflite"))}


def zoo_errors(networks: Mapping[str, bytes], seconds: Times, row: Costs) -> dict[str, float]:
    """The relative error of the estimated time of each network."""
    errors = {}
    for name, model in networks.items():
        own, others = workloads_of(model, row)
        cycles = cycles_of(own, row.cycles) + (0.0 if row.without is None else cycles_of(others, row.without.cycles))
        errors[name] = cycles / row.ghz / 1e9 / seconds[name, row.isa] - 1
    return errors


def this_cpu() -> tuple[str, float, set[str]]:
    """The CPU's name, its clock in GHz, and the set of all words in /proc/cpuinfo, among them the CPU's features.

    Raises:
        ToolkitError: the system does not report the CPU.
    """
    text = _CPUS.read_text(encoding="utf-8")
    name = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    clock = re.search(r"^cpu MHz\s*: (.*)$", text, re.MULTILINE)
    if name is None or clock is None:
        raise ToolkitError(f"{_CPUS} does not say which CPU this is: costs are measured on x86-64")
    return name[1], float(clock[1]) / 1000, set(text.split())


def measured_rows(passes: int, times: str) -> list[Costs]:
    """Measures what ops cost with each ISA of this CPU, fastest first, as a row of the table of costs for each ISA.
    Prints by how much the estimates from these costs differ from measured times of networks."""
    name, ghz, words = this_cpu()
    isas = [each for each in ISAS if set(each.needs) <= words]
    isa_option = {each.isa: each.isa_option for each in isas}
    slowest = {isas[-1].isa: isas[-1].isa}
    others, binary, zoo = dict(other_networks()), dict(binary_networks()), zoo_networks()
    seconds = read_times(times)
    for _ in range(passes):
        # Each pass times all networks once, so that a change of the machine's speed affects all networks alike.
        least(seconds, measure(others, slowest, 1))
        least(seconds, measure(binary, isa_option, 1))
        # Long inferences are more often interrupted by other programs, so they need more repetitions.
        least(seconds, measure(zoo, isa_option, 1, least_runs=20))
        if times:
            write_whole(Path(times), json.dumps([[*key, value] for key, value in seconds.items()]).encode())
    of_others = {net: seconds[net, isas[-1].isa] for net in others}
    runtime: Cycles = {}
    rows: list[Costs] = []
    for each in reversed(isas):
        without = next((row for row in rows if row.isa == each.without), None)
        tables = each.tables, each.shared_tables
        row = Costs(
            HOST, name, each.isa, each.needs, ghz, "python -m bench.costs", None, each.tile, *tables, without, {}
        )
        runtime = runtime or fitted(others, of_others, row)
        own = fitted(binary, {net: seconds[net, each.isa] for net in binary}, row)
        row = replace(row, cycles={**runtime, **own})
        errors = zoo_errors(zoo, seconds, row)
        print(each.isa, ", ".join(f"{net} {error:+.1%}" for net, error in errors.items()), flush=True)
        worst = max(map(abs, errors.values()), default=None)
        rows.insert(0, row if worst is None else replace(row, error=round(worst, 3)))
    return rows


def read_times(path: str) -> Times:
    """Reads the times that an earlier run measured. The result is empty if there is no file at `path`."""
    if not path or not Path(path).exists():
        return {}
    return {(net, isa): value for net, isa, value in json.loads(Path(path).read_text(encoding="utf-8"))}


def least(times: Times, more: Times) -> None:
    """Merges `more` into `times`, and keeps the lesser of two times of the same network."""
    for key, value in more.items():
        times[key] = min(value, times.get(key, value))


def replace_costs(passes: int, output: str, times: str) -> None:
    """Measures this machine's costs, and replaces its rows of the table."""
    rows = measured_rows(passes, times)
    kept = [row for row in read_costs(FILE.read_text(encoding="utf-8")) if row.board != HOST] if FILE.exists() else []
    write_whole(Path(output), write_costs([*rows, *kept]).encode())


def main() -> int:
    """Runs the command line and returns the exit code."""
    own = argparse.ArgumentParser(prog="python -m bench.costs", description=(__doc__ or "").partition("\n")[0])
    own.add_argument("--passes", type=int, default=4, help="number of times that each network is timed")
    own.add_argument("--times", default="", help="file that keeps the least time of each network from run to run")
    own.add_argument("--output", default=str(FILE), help="table to write; rows of other boards are unchanged")
    return run(own, replace_costs, None)


if __name__ == "__main__":
    sys.exit(main())
