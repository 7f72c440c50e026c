"""Tests that the table of fields covers every field of the installed schema."""

import inspect
from typing import Any

import numpy as np
import pytest

from litebnn.flatbuffer.reader import SCALE_TENSORS
from litebnn.flatbuffer.schema import camel_case, names_of, schema, snake_case
from litebnn.safety.fields import FIELDS, Fate, fields_that_hold

TABLES: dict[str, Any] = {
    name.removesuffix("T"): kind
    for name, kind in vars(schema).items()
    if inspect.isclass(kind) and name.endswith("T") and hasattr(kind, "Pack")
}
# True if the installed schema is that of the newest runtime. TensorFlow's own schema is older.
IS_NEWEST = schema.__name__.startswith("ai_edge_litert") and "MultiAxisQuantization" in TABLES


def test_the_line_that_a_class_begins_at_is_no_name_of_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema.Padding, "__firstlineno__", 4711, raising=False)
    assert names_of("Padding") == {schema.Padding.SAME: "SAME", schema.Padding.VALID: "VALID"}


def test_no_field_of_the_schema_is_missing_from_the_table() -> None:
    assert len(TABLES) > 150
    fields = [(table, snake_case(field)) for table, kind in TABLES.items() for field in vars(kind())]
    assert len(fields) > 300
    assert [each for each in fields if each[1] not in FIELDS.get(each[0], {})] == []


@pytest.mark.skipif(not IS_NEWEST, reason="the installed schema is older than the table")
def test_the_table_has_no_field_that_the_schema_lacks() -> None:
    listed = [(table, field) for table, fields in FIELDS.items() for field in fields]
    assert [(table, field) for table, field in listed if camel_case(field) not in vars(TABLES[table]())] == []


@pytest.mark.parametrize("table", [name for name in FIELDS if name.endswith("Quantization")])
def test_the_reader_finds_the_tensors_of_scales(table: str) -> None:
    found = {name: field.is_optional for name, field in fields_that_hold(table, "tensors").items()}
    assert SCALE_TENSORS.get(table, {}) == found


def test_every_index_of_the_schema_refers_to_something() -> None:
    """A field whose name ends in "_index", "_dim" or the like refers to something. The table `FIELDS` must have
    the kind of things to which it refers.
    """
    endings = ("_index", "_indices", "_dim", "_dims", "_dimension", "_dimensions")
    truths = ("keep_dims", "keep_num_dims", "validate_indices", "unique_indices")
    named = [
        (table, name, field)
        for table, fields in FIELDS.items()
        for name, field in fields.items()
        if name.endswith(endings) and name not in (*truths, "array_indices")
    ]
    assert len(named) > 30
    assert [(table, name) for table, name, field in named if not field.holds] == []


def test_what_is_renumbered_are_tensors_buffers_codes_and_owners() -> None:
    held = {field.holds for fields in FIELDS.values() for field in fields.values() if field.fate is Fate.RENUMBERED}
    assert held == {"tensors", "buffers", "operator codes", "subgraphs"}


@pytest.mark.parametrize(
    ("table", "field", "value", "mistake"),
    [
        ("Conv2DOptions", "stride_w", 0, "is 0, expected at least 1"),
        ("Conv2DOptions", "stride_w", 2**31 - 1, "is 2147483647, expected at most 16777216"),
        ("StablehloReduceWindowOptions", "window_strides", np.array([1, -1]), "is -1, expected at least 1"),
        ("StablehloReduceWindowOptions", "window_strides", None, ""),
        ("IfOptions", "then_subgraph_index", -1, "is -1, expected at least 0"),
        ("Conv2DOptions", "padding", -7, ""),
        ("VarHandleOptions", "shared_name", b"name", ""),
    ],
)
def test_numbers_out_of_range(table: str, field: str, value: Any, mistake: str) -> None:
    assert FIELDS[table][field].mistake(value) == mistake
