"""A board's properties and state: its CPU, clock, governor, temperature and throttling."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from litebnn.boards.board import Board
from toolchains.targets import ROOT

SCRIPT = ROOT / "programs" / "board_benchmark" / "board_state.sh"

State = dict[str, str]
"""The names of the values that SCRIPT prints. A value is "" if the board does not report it."""


def states(boards: Sequence[Board]) -> list[State]:
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
