"""The generated classes of the .tflite schema, from an installed package that contains them.

The schema is https://github.com/google-ai-edge/LiteRT/blob/main/tflite/converter/schema/schema.fbs.
"""

import functools
import importlib
import re
from typing import Any

from litebnn.errors import ConversionError

_CARRIERS = ("ai_edge_litert.schema_py_generated", "tensorflow.lite.python.schema_py_generated")


def _load() -> Any:
    for name in _CARRIERS:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ConversionError("reading a .tflite file needs its schema: install ai-edge-litert (or tensorflow)")


schema: Any = _load()


def names_of(enum: str) -> dict[int, str]:
    """The names of a schema enumeration, such as "BuiltinOperator", by their values."""
    members = vars(getattr(schema, enum)).items()
    # Since Python 3.13, a class also has an attribute __firstlineno__, the number of its first line. This number is not
    # a member of the enumeration.
    return {value: name for name, value in members if isinstance(value, int) and not name.startswith("__")}


@functools.cache
def snake_case(name: str) -> str:
    """The schema's name of a field that the generated classes call `name`.

    >>> snake_case("strideH")
    'stride_h'
    """
    return re.sub(r"[A-Z]", lambda letter: "_" + letter[0].lower(), name)


@functools.cache
def camel_case(name: str) -> str:
    """The name that the generated classes give to a field, from its name in the schema."""
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name)


class _Counter:
    """A stand-in for a flatbuffer builder. It only records the number of fields that a table has."""

    slots = 0

    def StartObject(self, slots: int) -> None:
        self.slots = slots


@functools.cache
def slots_of(table: str) -> int:
    """The number of fields, including deprecated ones, that the installed schema has in a table such as "Tensor"."""
    counter = _Counter()
    getattr(schema, table + "Start")(counter)
    return counter.slots


# The schema's two unions of options. The second was added when the first was full.
OPTION_UNIONS = [union for union in ("BuiltinOptions", "BuiltinOptions2") if hasattr(schema, union)]
OPERATOR_NAMES = names_of("BuiltinOperator")
TYPE_NAMES = names_of("TensorType")


def listed(table: Any, field: str) -> list[Any]:
    """The elements of a table's field, which is a list; empty if the field is absent."""
    return [getattr(table, field)(i) for i in range(getattr(table, f"{field}Length")())]
