"""Prints how many mutants (small errors in the code) the tests detect, and lists those that they do not detect.

python -m mutants --count=500 --seed=1
"""

import argparse
import sys
from collections.abc import Callable, Sequence

from mutants import cpp, python
from toolchains.command_line import exit_code

LANGUAGES: dict[str, Callable[[int, int, int], tuple[int, Sequence[object]]]]
LANGUAGES = {"C++": cpp.survivors, "Python": python.survivors}


def report(languages: Sequence[str], count: int, seed: int, jobs: int) -> None:
    """Tries a random sample of mutants in each language, and prints the share that the tests detect."""
    for language in languages:
        tried, alive = LANGUAGES[language](count, seed, jobs)
        killed = tried - len(alive)
        print(f"{language}: {killed} of {tried} mutants killed, {100 * killed / max(tried, 1):.1f} %", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=500, help="the size of the sample, for each language")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the sample")
    parser.add_argument("--jobs", type=int, default=1, help="number of mutants to try at once")
    parser.add_argument("languages", nargs="*", help=f"by default all: {', '.join(LANGUAGES)}")
    options = parser.parse_args(arguments)
    unknown = set(options.languages) - set(LANGUAGES)
    if unknown:
        parser.error(f"no mutants are made of {', '.join(sorted(unknown))}: expected some of {', '.join(LANGUAGES)}")
    return exit_code(lambda: report(options.languages or list(LANGUAGES), options.count, options.seed, options.jobs))


if __name__ == "__main__":
    sys.exit(main())
