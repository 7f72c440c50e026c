"""Tests flatbuffers of a schema that is given as data, valid and damaged."""

import random

import pytest

from litebnn.errors import ConversionError
from litebnn.flatbuffer.tables import Schema

SCHEMA = Schema(
    {
        "Leaf": ("value:int",),
        "Other": ("name:string",),
        "Tree": (
            "small:byte",
            "number:uint",
            "floats:[float]",
            "bytes:[ubyte]",
            "names:[string]",
            "either:Either",
            "leaf:Leaf",
            "leaves:[Leaf]",
            "trees:[Tree]",
            "last:ubyte",
        ),
    },
    {"Either": ("Leaf", "Other")},
)
VALUES = {
    "small": -3,
    "number": 4_000_000_000,
    "floats": [0.5, -2.0],
    "bytes": b"\0\1\2",
    "names": ["a", "größe", ""],
    "either": ("Other", {"name": "union"}),
    "leaf": {"value": -7},
    "leaves": [{"value": 1}, {}, {"value": 3}],
    "trees": [{"last": 255, "trees": [{"names": []}]}],
}


def test_what_is_packed_is_unpacked() -> None:
    content = SCHEMA.pack("Tree", VALUES, b"TREE")
    assert content[4:8] == b"TREE"
    assert SCHEMA.unpack("Tree", content) == VALUES


def test_fields_of_a_newer_schema_are_left_out_and_those_of_an_older_one_are_absent() -> None:
    older = Schema({**SCHEMA.tables, "Tree": SCHEMA.tables["Tree"][:3]}, SCHEMA.unions)
    content = SCHEMA.pack("Tree", VALUES, b"TREE")
    assert older.unpack("Tree", content) == {name: VALUES[name] for name in ("small", "number", "floats")}
    assert SCHEMA.unpack("Tree", older.pack("Tree", {"number": 3}, b"TREE")) == {"number": 3}


def test_damages_are_errors_or_other_values() -> None:
    content, rng = SCHEMA.pack("Tree", VALUES, b"TREE"), random.Random(0)
    refused = 0
    for _ in range(3000):
        damaged = bytearray(content[: rng.randrange(1, len(content) + 1)])
        for _ in range(rng.randrange(4)):
            damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 4, 127, 128, 255))
        try:
            SCHEMA.unpack("Tree", bytes(damaged))
        except ConversionError:
            refused += 1
    assert refused > 1000


def test_tables_that_contain_themselves_end() -> None:
    content = bytearray(SCHEMA.pack("Tree", {"trees": [{}, {}]}, b"TREE"))
    root = int.from_bytes(content[:4], "little")
    # The file has a tree with two subtrees. The test changes the positions of both subtrees to the position of the tree
    # itself.
    vector = next(at for at in range(8, len(content), 4) if content[at : at + 4] == b"\2\0\0\0")
    for at in (vector + 4, vector + 8):
        content[at : at + 4] = ((root - at) % (1 << 32)).to_bytes(4, "little")
    with pytest.raises(ConversionError, match="is damaged"):
        SCHEMA.unpack("Tree", bytes(content))
