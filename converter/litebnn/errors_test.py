import pickle

import pytest

from litebnn.errors import ConversionError, Defect, boundary, printable


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
