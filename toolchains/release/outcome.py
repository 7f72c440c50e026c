"""The exceptions with which a check fails or is skipped."""


class Failed(Exception):
    """A product or the project is not as promised; the message says what was expected."""


class Skipped(Exception):
    """The check cannot be made here; the message is the reason."""


def expect(condition: object, message: str) -> None:
    """Raises Failed unless the condition is true."""
    if not condition:
        raise Failed(message)
