"""The parts that the command lines of all tools have in common."""

import argparse
import sys
from collections.abc import Callable

from toolchains.targets import TOOLCHAINS, ToolkitError


def parser(module: str, doc: str | None, target: str = "host", toolchain: str = "") -> argparse.ArgumentParser:
    """A parser for the tool that `python -m MODULE` starts, described by the first line of `doc`.

    The parser has the option --target with the default `target`; if that is "", the option is required. If `toolchain`
    is not empty, the parser also has the option --toolchain with this default.
    """
    result = argparse.ArgumentParser(prog=f"python -m {module}", description=(doc or "").partition("\n")[0])
    result.add_argument("--target", default=target, required=not target, help="a row of toolchains/targets.toml")
    if toolchain:
        result.add_argument("--toolchain", default=toolchain, help=f"auto, {', '.join(TOOLCHAINS)}")
    return result


def run(parser: argparse.ArgumentParser, work: Callable[..., object], arguments: list[str] | None) -> int:
    """Calls `work` with the parsed options as keyword arguments, and returns the exit code."""
    options = vars(parser.parse_args(arguments))
    return exit_code(lambda: work(**options))


def exit_code(work: Callable[[], object]) -> int:
    """Calls `work` and returns the exit code. An error that the user can fix is printed as one line to stderr."""
    try:
        work()
    except (ToolkitError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130
    return 0
