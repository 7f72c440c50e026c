"""A short description of a finding of libFuzzer or atheris: its kind, its place, and the input."""

import base64
import re
from pathlib import Path

_FRAMES = 12
# The size in bytes up to which an input is printed. For a larger input, only its path is printed.
_MOST_BYTES = 20_000

_EXCEPTION = re.compile(r"^ *=== Uncaught Python exception: ===\n(.*\n)(Traceback .*\n(?:[ \t].*\n|\n)*)", re.MULTILINE)
_FRAME = re.compile(r"^ *#\d+ 0x[0-9a-f]+ .*\n", re.MULTILINE)
_OF_LIBRARIES = re.compile(r" in (?:fuzzer::|__sanitizer|__ubsan|__asan|main |_start )|^ *#\d+ 0x\w+ +\(/lib")
_INPUT = re.compile(r"Test unit written to (\S+)")


def describe(output: str) -> str:
    """The description of a finding: its kind, the innermost frames of its stack, and the input, in base64 if it is
    small."""
    exception = _EXCEPTION.search(output)
    if exception:
        kind, frames = exception[1].strip(), exception[2].splitlines()[1:]
        # In a traceback, Python prints the innermost call last, and each call takes two lines.
        stack = frames[-2 * _FRAMES :]
    else:
        reports = re.findall(r"^.*(?:runtime error:|ERROR:|SUMMARY:).*$", output, re.MULTILINE)
        kind = "; ".join(dict.fromkeys(line.strip() for line in reports)) or output[-1000:]
        stack = [line.rstrip() for line in _FRAME.findall(output) if not _OF_LIBRARIES.search(line)][:_FRAMES]
    return "\n".join([kind, *stack, *_input(output)])


def _input(output: str) -> list[str]:
    written = _INPUT.search(output)
    if written is None:
        return []
    path = Path(written[1])
    small = path.is_file() and path.stat().st_size <= _MOST_BYTES
    return [f"input: {path}", *([f"in base64: {base64.b64encode(path.read_bytes()).decode()}"] if small else [])]
