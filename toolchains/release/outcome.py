"""The exceptions that a check raises if it fails or is skipped."""


class Failed(Exception):
    """A product or the project breaks a promise. The message says what was expected."""


class Skipped(Exception):
    """The check cannot run on this machine. The message is the reason."""


def expect(condition: object, message: str) -> None:
    """Raises Failed unless the condition is true."""
    if not condition:
        raise Failed(message)
