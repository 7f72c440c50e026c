"""The generated classes of the .tflite schema, from whichever installed package carries them.

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
    """Value -> name of a schema enumeration such as "BuiltinOperator"."""
    return {value: name for name, value in vars(getattr(schema, enum)).items() if isinstance(value, int)}


@functools.cache
def snake_case(name: str) -> str:
    """The name that the schema gives a field of which the generated classes have `name`.

    >>> snake_case("strideH")
    'stride_h'
    """
    return re.sub(r"[A-Z]", lambda letter: "_" + letter[0].lower(), name)


@functools.cache
def camel_case(name: str) -> str:
    """The inverse of `snake_case`."""
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name)


class _Counter:
    """Stands in for a builder, to learn how many fields a table starts with."""

    slots = 0

    def StartObject(self, slots: int) -> None:
        self.slots = slots


@functools.cache
def slots_of(table: str) -> int:
    """How many fields the installed schema knows of a table such as "Tensor", deprecated ones among them."""
    counter = _Counter()
    getattr(schema, table + "Start")(counter)
    return counter.slots


OPERATOR_NAMES = names_of("BuiltinOperator")
TYPE_NAMES = names_of("TensorType")


def listed(table: Any, field: str) -> list[Any]:
    """A list of a table of the schema."""
    return [getattr(table, field)(i) for i in range(getattr(table, f"{field}Length")())]
