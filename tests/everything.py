"""Runs all tests there are, the long ones too, and prints one table of what ran and what was skipped, and why.

python -m tests.everything [OPTIONS OF PYTEST]
"""

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from toolchains.targets import BUILD, ROOT

RESULTS = BUILD / "test-all.xml"
# What a test belongs to is told by its name, MODULE::TEST; the first that fits counts.
AREAS = {
    "AddressSanitizer, UBSan": r"test_cpp\[(address|clang)|under_sanitizers|twenty_thousand|hostile_images",
    "ThreadSanitizer": r"test_cpp\[thread",
    "C++ tests": r"tests\.ops\.test_cpp",
    "stress": r"tests\.ops\.test_stress",
    "valgrind": r"tests\.ops\.test_valgrind",
    "emulated Arm": r"tests\.emulated|rpi4|rpi3",
    "fuzz targets": r"tests\.test_fuzz",
    "runtimes": r"tests\.ops\.test_runtimes",
    "op library": r"tests\.ops",
    "report's page": r"tests\.report|report\.page",
    "converter": r"converter|tests\.convert",
    "toolchains, boards": r"toolchains|tests\.examples",
    "trainers": r"tests\.trainers",
    "project": r"",
}


def area_of(name: str) -> str:
    """The area that a test belongs to."""
    return next(area for area, pattern in AREAS.items() if re.search(pattern, name))


def outcomes(cases: Iterable[ElementTree.Element]) -> tuple[dict[str, Counter[str]], dict[str, Counter[str]]]:
    """For each area, how many tests passed, failed or were skipped; and for which reasons these were, how many."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for case in cases:
        area = area_of(f"{case.get('classname')}::{case.get('name')}")
        skipped = case.find("skipped")
        failed = case.find("failure") is not None or case.find("error") is not None
        counts[area]["failed" if failed else "passed" if skipped is None else "skipped"] += 1
        if skipped is not None:
            reasons[area][" ".join(str(skipped.get("message")).split())] += 1
    return counts, reasons


def table(results: Path) -> Table:
    """One row for each area, and in it a line for each reason to skip tests."""
    counts, reasons = outcomes(ElementTree.parse(results).iter("testcase"))
    made = Table()
    for column in ("area", "passed", "failed", "skipped", "why"):
        made.add_column(column, overflow="fold", justify="left" if column in ("area", "why") else "right")
    for area in AREAS:
        found = counts.get(area, Counter())
        why = "\n".join(f"{number} × {reason}" for reason, number in reasons.get(area, Counter()).items())
        nothing = "" if found else "no test of it was found"
        made.add_row(area, *(str(found[kind]) for kind in ("passed", "failed", "skipped")), why or nothing)
    return made


def main() -> int:
    """The command line; returns the exit code."""
    command = [sys.executable, "-m", "pytest", "--long", f"--junitxml={RESULTS}", *sys.argv[1:]]
    code = subprocess.run(command, cwd=ROOT).returncode
    Console(width=None if sys.stdout.isatty() else 160, markup=False, highlight=False).print(table(RESULTS))
    return code


if __name__ == "__main__":
    sys.exit(main())
