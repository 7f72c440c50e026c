import pickle

import pytest

from litebnn.errors import ConversionError, Defect, boundary, printable, shortened, told_by


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
