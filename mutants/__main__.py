"""Prints how many mutants of the code its tests kill, and those that survive.

python -m mutants --count=500 --seed=1
"""

import argparse
import sys

from mutants.cpp import survivors
from toolchains.command_line import exit_code


def report(count: int, seed: int) -> None:
    """Tries a sample and prints the share."""
    tried, alive = survivors(count, seed)
    killed = tried - len(alive)
    print(f"C++: {killed} of {tried} mutants killed, {100 * killed / max(tried, 1):.1f} %", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=500, help="the size of the sample")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the sample")
    options = parser.parse_args(arguments)
    return exit_code(lambda: report(options.count, options.seed))


if __name__ == "__main__":
    sys.exit(main())
