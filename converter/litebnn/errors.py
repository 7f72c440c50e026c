"""The exceptions that litebnn raises on its own account."""


class ConversionError(ValueError):
    """A model cannot be read or converted; the message is one line that says what was found and what was expected."""
