import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebnn.errors import ConversionError, Defect, boundary, printable, shortened, shown, told_by, whole_number


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("conv_1/Größe ±1 → 卷积", "conv_1/Größe ±1 → 卷积"),
        ("[/red]a\\b", "[/red]a\\b"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\udc80\x9b\u202e\u2028", "\\udc80\\x9b\\u202e\\u2028"),
    ],
)
def test_what_a_terminal_would_act_on_is_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown
    assert str(ConversionError(text)) == shown
    assert str(pickle.loads(pickle.dumps(ConversionError(text)))) == shown


@pytest.mark.parametrize("name", ["conv/" * 10**6, "\n" * 10**6, "卷 " * 10**6, "\x1b[31m" * 10**6])
def test_names_of_megabytes_lose_their_middle(name: str) -> None:
    message = str(ConversionError(f'CONV_2D writes "{name}", expected other data'))
    assert message.startswith('CONV_2D writes "')
    assert message.endswith(", expected other data")
    assert len(message) < 1300
    assert printable(message) == message
    assert message.isprintable()
    assert len(printable(f'CONV_2D reads "{"conv/" * 10**6}" and writes "{"b" * 999}"')) < 1000


LONG_TEXTS = st.lists(st.tuples(st.text(max_size=8), st.integers(0, 200)), max_size=4).map(
    lambda parts: "".join(text * count for text, count in parts)
)


@given(LONG_TEXTS)
def test_any_text_becomes_a_short_line(text: str) -> None:
    line = printable(text)
    assert line.isprintable()
    assert len(line) <= 1203
    assert printable(line) == line
    assert line == text or len(text) > 300 or not text.isprintable()


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\nb", "a b"),
        (np.eye(2), "array([[1., 0.], [0., 1.]])"),
        ([10**5000], "list"),
        (Unprintable(), "Unprintable"),
        ("a" * 60 + "b" * 60, "a" * 50 + "..." + "b" * 50),
        ("\x1b[31m", "\\x1b[31m"),
    ],
)
def test_values_of_arguments_are_short(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize("value", [1, np.int64(3), np.uint8(4)])
def test_whole_numbers(value: Any) -> None:
    assert whole_number("top", value, 1, 4) == value


@pytest.mark.parametrize(
    ("value", "kind", "reason"),
    [
        (0, ValueError, "top is 0, expected 1 to 4"),
        (-(10**400), ValueError, "top is -10+...0+, expected 1 to 4"),
        (np.int8(5), ValueError, "top is 5, expected 1 to 4"),
        *((value, TypeError, f"top is {value!r}, expected 1 to 4") for value in (True, None, 2.0, float("nan"), [1])),
        ("2", TypeError, "top is 2, expected 1 to 4"),
        (np.True_, TypeError, "top is .*True.*, expected 1 to 4"),
    ],
)
def test_what_is_no_whole_number(value: Any, kind: type[Exception], reason: str) -> None:
    with pytest.raises(kind, match=f"^{reason.replace('[', '.').replace(']', '.')}$"):
        whole_number("top", value, 1, 4)


@pytest.mark.parametrize("kind", [KeyError, RuntimeError, UnicodeDecodeError, RecursionError, ZeroDivisionError])
def test_nothing_else_leaves_the_boundary(kind: type[Exception]) -> None:
    arguments = ("utf-8", b"\x80", 0, 1, "start") if kind is UnicodeDecodeError else ("why",)
    with pytest.raises(Defect, match=f"please report it: {kind.__name__}: ") as caught, boundary():
        raise kind(*arguments)
    assert isinstance(caught.value.__cause__, kind)


def test_the_boundary_lets_its_own_errors_and_interruptions_pass() -> None:
    with pytest.raises(ConversionError, match=r"^why$") as caught, boundary():
        raise ConversionError("why")
    assert type(caught.value) is ConversionError
    with pytest.raises(ConversionError, match="not enough memory: Unable to allocate 2.50 TiB") as caught, boundary():
        raise MemoryError("Unable to allocate 2.50 TiB")
    assert type(caught.value) is ConversionError
    with pytest.raises(KeyboardInterrupt), boundary():
        raise KeyboardInterrupt


CONFIGURATION = f"config={{'name': 'conv', 'size': [3, 3], 'of': {{'a': [{90 * 'word, '}]}}}}"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("short [3, 3] {}", "short [3, 3] {}"),
        (f"Error of class 'Conv' using {CONFIGURATION}, sorry", "Error of class 'Conv' using config={...}, sorry"),
        (f"not closed: {CONFIGURATION[:-1]}", "not closed: config={..."),
        ("A first sentence. " + 60 * "then words ", "A first sentence."),
        (100 * "word ", 60 * "word " + "..."),
        (400 * "a", 300 * "a" + " ..."),
        ("] and } alone", "] and } alone"),
    ],
)
def test_a_long_message_ends_where_it_can_be_read(said: str, shown: str) -> None:
    assert shortened(said) == shown


def test_the_error_inside_is_what_is_told() -> None:
    error = TypeError(
        f"Error when deserializing using {CONFIGURATION}.\n\nException encountered: Unknown layer: 'Mine'"
    )
    assert told_by(error) == "Unknown layer: 'Mine'"
    assert told_by(ValueError("\n\n  \n")) == told_by(ValueError()) == "ValueError"
