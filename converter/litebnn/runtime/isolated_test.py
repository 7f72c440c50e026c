import os
import signal
import sys

import pytest

from litebnn.errors import ConversionError
from litebnn.runtime.isolated import run_apart


def apart(function, *arguments, seconds: float = 60, memory: int = 1 << 28):
    return run_apart("trying", function, *arguments, seconds=seconds, memory=memory)


def test_a_result_comes_back() -> None:
    assert apart(sorted, [3, 1, 2]) == [1, 2, 3]


def test_what_is_printed_is_no_part_of_the_result() -> None:
    assert apart(os.system, "echo printed; echo too >&2") == 0


@pytest.mark.parametrize(
    ("function", "arguments", "ending"),
    [(os.abort, (), "SIGABRT"), (signal.raise_signal, (11,), "SIGSEGV"), (os._exit, (7,), "exit code 7")],
)
def test_a_crash_is_an_error(function, arguments, ending: str) -> None:
    with pytest.raises(ConversionError, match=f"^trying ends the runtime's process with {ending}$"):
        apart(function, *arguments)


def test_time_is_limited() -> None:
    with pytest.raises(ConversionError, match=r"^trying takes more than 0\.5 seconds$"):
        apart(signal.pause, seconds=0.5)


def test_memory_is_limited() -> None:
    assert apart(len, b"x" * (1 << 20)) == 1 << 20
    with pytest.raises(ConversionError, match="there is not enough memory"):
        apart(bytearray, 1 << 29)


def test_an_error_comes_back() -> None:
    with pytest.raises(ConversionError, match="ValueError: invalid literal for int"):
        apart(int, "x")


def test_without_an_interpreter_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ConversionError, match="trying needs a process of its own: .*No such file"):
        apart(sorted, [])
