"""Boards' state (CPU, clock, governor, temperature, throttling), and the table of what boards have returned.

This command makes docs/boards/README.md from the JSON files in that folder:

python -m toolchains.boards.table
"""

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolchains.command_line import exit_code
from toolchains.targets import ROOT, ToolkitError

FOLDER = ROOT / "docs" / "boards"
SCRIPT = ROOT / "programs" / "board_benchmark" / "board_state.sh"

# The names and values that SCRIPT prints. A value is "" if the board does not report it.
State = dict[str, str]
FORMAT = "litebnn board benchmark 1"
INTRODUCTION = """\
# What boards have returned

The program `litebnn-board-benchmark`, which is in every bundle ([how a bundle gets to a board](../board.md)), writes a
file `board-benchmark.json`. Put your file into this folder under the board's name, run
`python -m toolchains.boards.table`, which makes the page of boards, and open a pull request. Add only files of real
boards.

"""
NONE = """\
No figure of litebnn comes from a real board yet, because nobody has returned a file. The figures for boards on other
pages were counted by emulators.
"""


def states(boards: Sequence[Any]) -> list[State]:
    """The states of all boards, which are read in parallel. The state of a board that does not answer is empty."""
    from fabric import ThreadingGroup
    from fabric.exceptions import GroupException

    group = ThreadingGroup.from_connections([board.connection for board in boards])
    command = f"sh -c {shlex.quote(SCRIPT.read_text(encoding='utf-8'))}"
    try:
        answers = group.run(command, hide=True, warn=True, in_stream=False)
    except GroupException as error:
        answers = error.result
    return [parsed(getattr(answers[board.connection], "stdout", "")) for board in boards]


def parsed(text: str) -> State:
    """Parses the output of board_state.sh.

    >>> parsed("Welcome to the board\\ncpu=Cortex-A72\\ngovernor=\\n")
    {'cpu': 'Cortex-A72', 'governor': ''}
    """
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value.strip() for name, equals, value in pairs if equals and name.isidentifier()}


def changes(before: State, after: State, name: str) -> str:
    """The value called `name`: one value, or both if it changed between the two states.

    >>> changes({"clock_mhz": "600"}, {"clock_mhz": "1500"}, "clock_mhz")
    '600 → 1500'
    """
    first, last = (state.get(name) or "not told" for state in (before, after))
    return first if first == last else f"{first} → {last}"


def read(path: Path) -> dict[str, Any]:
    """Reads the results that a board has returned.

    Raises:
        ToolkitError: the file was not written by litebnn-board-benchmark.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise ToolkitError(f"{path} was not written by litebnn-board-benchmark") from None
    return dict(found)


def page(files: Sequence[Path]) -> str:
    """The text of the page, with the results in the order of `files`."""
    results = {path.stem: read(path) for path in files}
    if not results:
        return INTRODUCTION + NONE
    networks = sorted({network["name"] for one in results.values() for network in one["network"]})
    columns = ["board", "CPU", "kernel", "clock, MHz", "governor", "temperature, °C", "throttled"]
    columns += ["threads", *(f"{name}, ms" for name in networks), "golden", "litebnn", "runtime"]
    lines = [columns, ["---"] * len(columns), *(_row(name, one, networks) for name, one in results.items())]
    return INTRODUCTION + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _row(name: str, one: dict[str, Any], networks: Sequence[str]) -> list[str]:
    before, after = one["before"], one["after"]
    states = [changes(before, after, each) for each in ("clock_mhz", "governor", "temperature_c", "throttled")]
    times = {network["name"]: f"{network['median_ms']:.2f}" for network in one["network"]}
    right = sum(golden["is_right"] for golden in one["golden"])
    cells = [f"[{before.get('board') or name}]({name}.json)", before.get("cpu", ""), before.get("kernel", ""), *states]
    cells += [str(one["num_threads"]), *(times.get(network, "") for network in networks)]
    cells += [f"{right} of {len(one['golden'])}", one["litebnn_version"], one["tflite_version"]]
    # A vertical bar in a board's own text must not end a cell of the table.
    return [cell.replace("|", "\\|") for cell in cells]


def main() -> int:
    """Writes the page with the table of boards, and returns the exit code."""
    files = sorted(FOLDER.glob("*.json"))
    return exit_code(lambda: (FOLDER / "README.md").write_text(page(files), encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
