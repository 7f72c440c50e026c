"""Tests that constants that are not plain arrays are checked against their shape when a file is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model
from litebnn.flatbuffer.round_trip_test import buffer, code, operator, pack, sparsity, subgraph, tensor
from litebnn.flatbuffer.schema import schema


def constant_of(kind: str, shape: list[int], data: bytes, op: str = "DENSIFY", **fields: Any) -> bytes:
    """A file with one constant, which an op reads."""
    model = schema.ModelT()
    model.operatorCodes, model.buffers = [code(op)], [buffer(None), buffer(data)]
    tensors = [tensor("c", kind, shape, 1, **fields), tensor("y", "FLOAT32", shape if op == "DENSIFY" else [1])]
    model.subgraphs = [subgraph(b"main", tensors, [], [1], [operator(0, [0], [1])])]
    return pack(model)


def level(values: dict[str, Any]) -> Callable[[Any], object]:
    """Returns a function that changes fields of the one sparse dimension in `sparsity`."""
    return lambda item: [setattr(getattr(item.dimMetadata[1], key), "values", value) for key, value in values.items()]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (level({"arraySegments": np.array([0, 1, 1, 2, 9], np.uint8)}), "do not end at its 2 array_indices"),
        (level({"arraySegments": np.array([0, 2, 1, 2, 2], np.uint8)}), "lie outside of it, which has 4"),
        (level({"arraySegments": np.array([0, 2], np.uint8)}), "do not end"),
        (level({"arraySegments": None}), "do not end"),
        (level({"arrayIndices": np.array([0, 4], np.uint8)}), "lie outside of it, which has 4"),
        (lambda item: setattr(item, "traversalOrder", np.array([0, 0], np.int32)), r"traversal_order \[0, 0\]"),
        (lambda item: setattr(item, "traversalOrder", np.array([0], np.int32)), r"traversal_order \[0\]"),
        (lambda item: setattr(item, "dimMetadata", item.dimMetadata[:1]), "of 1 dim_metadata"),
        (lambda item: setattr(item, "blockMap", np.array([0], np.int32)), "expected the 2 axes and then the blocks"),
        (lambda item: setattr(item.dimMetadata[0], "denseSize", 5), "dense_size of axis 0 is 5, expected 4"),
    ],
)
def test_sparse_constants_that_lead_out_of_bounds(change: Callable[[Any], object], reason: str) -> None:
    item = sparsity()
    data = np.array([1, 2], np.float32).tobytes()
    read_model(constant_of("FLOAT32", [4, 4], data, sparsity=item))
    change(item)
    with pytest.raises(ConversionError, match=reason):
        read_model(constant_of("FLOAT32", [4, 4], data, sparsity=item))


def blocks(size: int = 2, axis: int = 1) -> Any:
    """The sparsity parameters of a constant of shape [4, 4] that is stored in blocks of two values, with one block in
    each row."""
    item, block = sparsity(), schema.DimensionMetadataT()
    block.denseSize = size
    item.traversalOrder, item.blockMap = np.array([0, 1, 2], np.int32), np.array([axis], np.int32)
    item.dimMetadata.append(block)
    level({"arraySegments": np.arange(5, dtype=np.uint8), "arrayIndices": np.array([0, 1, 0, 1], np.uint8)})(item)
    return item


def test_sparse_blocks() -> None:
    data = np.ones(8, np.float32).tobytes()
    read_model(constant_of("FLOAT32", [4, 4], data, sparsity=blocks()))
    for item, reason in (
        (blocks(size=3), "block 0 has size 3, expected a divisor of 4"),
        (blocks(size=0), "block 0 has size 0"),
        (blocks(axis=2), r"block_map \[2\], expected some of 2 axes"),
    ):
        with pytest.raises(ConversionError, match=reason):
            read_model(constant_of("FLOAT32", [4, 4], data, sparsity=item))
    with pytest.raises(ConversionError, match="its buffer has 4 bytes, 8 sparse values need 32"):
        read_model(constant_of("FLOAT32", [4, 4], data[:4], sparsity=blocks()))


def test_sparse_constants_are_read_by_few_ops() -> None:
    data = np.array([1, 2], np.float32).tobytes()
    with pytest.raises(ConversionError, match=r'op 0 \(NEG\): "c" is sparse, which no runtime reads there'):
        read_model(constant_of("FLOAT32", [4, 4], data, "NEG", sparsity=sparsity()))


@pytest.mark.parametrize(
    ("kind", "shape", "size", "needed"),
    [("INT4", [3], 1, 2), ("INT2", [5], 1, 2), ("BFLOAT16", [2], 3, 4), ("INT8", [3], 4, 3)],
)
def test_bytes_of_narrow_types(kind: str, shape: list[int], size: int, needed: int) -> None:
    read_model(constant_of(kind, shape, bytes(needed), "BITCAST"))
    with pytest.raises(ConversionError, match=f"its buffer has {size} bytes, {kind} .* needs {needed}"):
        read_model(constant_of(kind, shape, bytes(size), "BITCAST"))


@pytest.mark.parametrize("kind", ["RESOURCE", "VARIANT"])
def test_what_only_a_runtime_makes_is_no_constant(kind: str) -> None:
    with pytest.raises(ConversionError, match=f"it is a constant {kind}"):
        read_model(constant_of(kind, [1], bytes(8), "READ_VARIABLE"))


def strings(*numbers: int) -> bytes:
    return np.array(numbers, np.int32).tobytes() + b"abcd"


def test_strings() -> None:
    read_model(constant_of("STRING", [2], strings(2, 16, 18, 20), "UNIQUE"))
    for data, reason in (
        (strings(3, 16, 18, 20), "does not begin with 2 strings"),
        (strings(2), "does not begin with 2 strings"),
        (strings(2, 16, 18, 21), "a string lies outside of its buffer of 20 bytes"),
        (strings(2, 16, 15, 20), "a string lies outside"),
        (strings(2, 12, 18, 20), "a string lies outside"),
        (strings(-1, 16, 18, 20), "does not begin with"),
    ):
        with pytest.raises(ConversionError, match=reason):
            read_model(constant_of("STRING", [2], data, "UNIQUE"))


@pytest.mark.skipif(not hasattr(schema, "ExternalBufferT"), reason="the installed schema has no external buffers")
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"id": 8}, '"w": external buffer 7, expected one of 1 with at least 16 bytes'),
        ({"length": 15}, "with at least 16 bytes"),
        ({"group": 1}, "external buffer 7: group 1 does not exist"),
        ({}, ""),
    ],
)
def test_constants_in_other_files(changed: dict[str, int], reason: str) -> None:
    model, group, external = schema.ModelT(), schema.ExternalBufferGroupT(), schema.ExternalBufferT()
    group.name = b"weights.bin"
    for key, value in {"id": 7, "group": 0, "length": 16, **changed}.items():
        setattr(external, key, value)
    model.externalBufferGroups, model.externalBuffers = [group], [external]
    model.operatorCodes, model.buffers = [code("NEG")], [buffer(None)]
    tensors = [tensor("w", "FLOAT32", [4], externalBuffer=7), tensor("y", "FLOAT32", [4])]
    model.subgraphs = [subgraph(b"main", tensors, [], [1], [operator(0, [0], [1])])]
    if reason:
        with pytest.raises(ConversionError, match=reason):
            read_model(pack(model))
    else:
        read_model(pack(model))
