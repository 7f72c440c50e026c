"""Builds what a release distributes, and checks it.

Usage:

    python -m toolchains.release --check --only=build,size --target=x86_64

Without --check the command only builds. Nothing is published.
"""

import argparse
import os
import sys
import time

from toolchains.command_line import exit_code
from toolchains.release.checks import CHECKS, Check, make, subjects
from toolchains.release.products import Failed, Product, Skipped, products
from toolchains.targets import ToolkitError

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


def outcome(check: Check, product: Product | None) -> tuple[str, str]:
    """The result of a check: PASSED, FAILED or SKIPPED, and one line. The line says what the check found, or why it
    did not pass.
    """
    try:
        return PASSED, make(check, product)
    except Skipped as reason:
        return SKIPPED, str(reason)
    except (Failed, ToolkitError, OSError) as reason:
        return FAILED, " ".join(str(reason).split())


def processor_seconds() -> float:
    """The processor time of this process and its finished children. On Windows, children do not count."""
    return sum(os.times()[:4])


def choose(what: str, names: str, known: list[str]) -> list[str]:
    """The chosen names: those in `names`, which are separated by commas, or by default all known names.

    Raises:
        ToolkitError: a name is unknown.
    """
    chosen = names.split(",") if names else known
    for name in chosen:
        if name not in known:
            raise ToolkitError(f"no {what} is called '{name}'; they are {', '.join(known)}")
    return chosen


def release(check: bool, only: str, target: str) -> None:
    """Builds the products, or checks them and prints a line for each check and product. The line has the result, the
    seconds by the clock and of the processor, and what the check found.

    Raises:
        ToolkitError: an option is wrong, or a check failed.
    """
    all_products = products()
    targets = choose("target of a release", target, list(dict.fromkeys(each.target.name for each in all_products)))
    chosen = [each for each in all_products if each.target.name in targets]
    names = choose("check", only, [each.name for each in CHECKS]) if check else ["build"]
    if only and not check:
        raise ToolkitError("--only chooses checks: add --check")
    rows = [(each, subject) for each in CHECKS if each.name in names for subject in subjects(each, chosen)]
    width = max(len(str(subject or "project")) for _, subject in rows)
    counts = dict.fromkeys((PASSED, SKIPPED, FAILED), 0)
    for each, subject in rows:
        start, used = time.monotonic(), processor_seconds()
        result, detail = outcome(each, subject)
        counts[result] += 1
        seconds = f"{time.monotonic() - start:.1f} s {processor_seconds() - used:8.1f} s"
        print(f"{result:8}{each.name:14}{subject or 'project'!s:{width + 2}}{seconds:>19}  {detail}", flush=True)
    total = ", ".join(f"{number} {result}" for result, number in counts.items())
    if counts[FAILED]:
        raise ToolkitError(f"the release is not as promised: {total}")
    print(total)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m toolchains.release", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--check", action="store_true", help="check what was built")
    parser.add_argument("--only", default="", help=f"checks, separated by commas: {', '.join(c.name for c in CHECKS)}")
    parser.add_argument("--target", default="", help="targets, separated by commas; by default all with a product")
    options = vars(parser.parse_args(arguments))
    return exit_code(lambda: release(**options))


if __name__ == "__main__":
    sys.exit(main())
