"""Tests that reading and writing a file keeps all of its content, compared as the schema's own objects."""

import copy
import itertools
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest

from litebnn.flatbuffer import read_model, write_model
from litebnn.flatbuffer.schema import schema
from litebnn.graph import Buffer, Graph, Model, Op, OpCode, Options, Tensor, constant

GOLDEN = Path("tests/golden")


def unpacked(data: bytes) -> Any:
    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))


def plain(value: Any) -> Any:
    """Converts schema objects to dicts, and vectors to lists, so that == compares all of their content."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if hasattr(value, "__dict__"):
        return {"is": type(value).__name__, **{key: plain(item) for key, item in vars(value).items()}}
    return value


def normalised(data: bytes) -> Any:
    """Unpacks a file for a comparison. Differences that rewriting a file may cause are removed, such as the position of
    large data, and the deprecated 8-bit field for operator codes.
    """
    model = unpacked(data)
    for code in model.operatorCodes or ():
        code.builtinCode = max(code.builtinCode, code.deprecatedBuiltinCode)
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    for buffer in model.buffers or ():
        if buffer.offset > 1:
            buffer.data = np.frombuffer(data, np.uint8, buffer.size, buffer.offset)
            buffer.offset = buffer.size = 0
        if buffer.data is not None and np.size(buffer.data) == 0:
            buffer.data = None
    for graph in model.subgraphs or ():
        for op in graph.operators or ():
            if op.largeCustomOptionsOffset > 1:
                start = op.largeCustomOptionsOffset
                op.customOptions = list(data[start : start + op.largeCustomOptionsSize])
                op.largeCustomOptionsOffset = op.largeCustomOptionsSize = 0
            for key in ("inputs", "outputs"):
                setattr(op, key, [] if getattr(op, key) is None else list(getattr(op, key)))
    return plain(model)


def pack(model: Any) -> bytes:
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def assert_round_trips(data: bytes) -> bytes:
    written = write_model(read_model(data))
    assert normalised(written) == normalised(data)
    assert write_model(read_model(written)) == written
    return written


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.tflite")), ids=lambda path: path.name)
def test_golden_files_come_out_as_they_went_in(path: Path) -> None:
    assert_round_trips(path.read_bytes())


def tensor(name: str, kind: str, shape: list[int] | None, buffer: int = 0, **fields: Any) -> Any:
    item = schema.TensorT()
    item.name, item.type, item.buffer = name.encode(), getattr(schema.TensorType, kind), buffer
    item.shape = None if shape is None else np.array(shape, np.int32)
    for key, value in fields.items():
        setattr(item, key, value)
    return item


def operator(code: int, inputs: list[int], outputs: list[int], options: Any = None, **fields: Any) -> Any:
    item = schema.OperatorT()
    item.opcodeIndex, item.inputs, item.outputs = code, np.array(inputs, np.int32), np.array(outputs, np.int32)
    if options is not None:
        item.builtinOptions = options
        item.builtinOptionsType = getattr(schema.BuiltinOptions, type(options).__name__[:-1])
    for key, value in fields.items():
        setattr(item, key, value)
    return item


def code(name: str, custom: bytes | None = None, version: int = 1) -> Any:
    item = schema.OperatorCodeT()
    item.builtinCode, item.customCode, item.version = getattr(schema.BuiltinOperator, name), custom, version
    item.deprecatedBuiltinCode = min(item.builtinCode, 127)
    return item


def buffer(data: bytes | None) -> Any:
    item = schema.BufferT()
    item.data = None if data is None else np.frombuffer(data, np.uint8)
    return item


def subgraph(name: bytes, tensors: list[Any], inputs: list[int], outputs: list[int], operators: list[Any]) -> Any:
    item = schema.SubGraphT()
    item.name, item.tensors, item.operators = name, tensors, operators
    item.inputs, item.outputs = np.array(inputs, np.int32), np.array(outputs, np.int32)
    return item


def sparsity() -> Any:
    item = schema.SparsityParametersT()
    item.traversalOrder = np.array([0, 1], np.int32)
    dense, sparse = schema.DimensionMetadataT(), schema.DimensionMetadataT()
    dense.format, dense.denseSize = 0, 4
    sparse.format = 1
    for key, values in (("arraySegments", [0, 1, 1, 2, 2]), ("arrayIndices", [0, 3])):
        vector = schema.Uint8VectorT()
        vector.values = np.array(values, np.uint8)
        setattr(sparse, key, vector)
        setattr(sparse, key + "Type", schema.SparseIndexVector.Uint8Vector)
    item.dimMetadata = [dense, sparse]
    return item


def quantization() -> Any:
    item = schema.QuantizationParametersT()
    item.scale, item.zeroPoint = np.array([0.5, 0.25], np.float32), np.array([0, 0], np.int64)
    item.min, item.max = np.array([-1.0], np.float32), np.array([1.0], np.float32)
    item.quantizedDimension = 1
    custom = schema.CustomQuantizationT()
    custom.custom = np.array([1, 2, 3], np.uint8)
    item.detailsType, item.details = schema.QuantizationDetails.CustomQuantization, custom
    return item


def main_graph() -> Any:
    """A graph with ops and tensors of every kind."""
    variant = schema.VariantSubTypeT()
    variant.shape, variant.type, variant.hasRank = np.array([2], np.int32), schema.TensorType.FLOAT32, True
    handle = schema.VarHandleOptionsT()
    handle.container, handle.sharedName = b"box", b"variable"
    loop = schema.WhileOptionsT()
    loop.condSubgraphIndex, loop.bodySubgraphIndex = 1, 2
    dilate_options = schema.DilateOptionsT()

    tensors = [
        tensor("x", "FLOAT32", [1, 4], shapeSignature=np.array([-1, 4], np.int32)),
        tensor("words", "STRING", [1], 2),
        tensor("variable", "RESOURCE", []),
        tensor("weights", "FLOAT32", [4, 4], 3, sparsity=sparsity()),
        tensor("int4", "INT4", [3], 4, quantization=quantization()),
        tensor("state", "FLOAT32", [1, 4], isVariable=True),
        tensor("anything", "VARIANT", None, variantTensors=[variant], hasRank=True),
        tensor("out", "FLOAT32", [1, 4]),
        tensor("loose", "FLOAT16", [2], 5),
        tensor("between", "FLOAT32", [1, 4]),
    ]
    return subgraph(
        b"main",
        tensors,
        [0],
        [7, 2],
        [
            operator(0, [], [2], handle),
            operator(1, [0, -1, 3], [9], customOptions=np.frombuffer(b"\x01\x02\x03", np.uint8)),
            operator(2, [9], [7], loop, intermediates=np.array([5], np.int32), debugMetadataIndex=3),
            operator(3, [1], [6], mutatingVariableInputs=np.array([True])),
            operator(
                4,
                [0],
                [],
                builtinOptions2=dilate_options,
                builtinOptions2Type=schema.BuiltinOptions2.DilateOptions,
            ),
        ],
    )


def everything() -> Any:
    """A model that uses every table of the schema."""
    condition = subgraph(b"condition", [tensor("c", "FLOAT32", [1, 4]), tensor("b", "BOOL", [], 6)], [0], [1], [])
    body = subgraph(b"body", [tensor("c", "FLOAT32", [1, 4])], [0], [0], [])

    model = schema.ModelT()
    model.version, model.description = 3, b"a bit of everything"
    model.operatorCodes = [
        code("VAR_HANDLE"),
        code("CUSTOM", b"MyOp", 7),
        code("WHILE"),
        code("CUSTOM", b"Another"),
        code("DILATE"),
        code("RELU"),
    ]
    model.subgraphs = [main_graph(), condition, body]
    model.buffers = [
        buffer(None),
        buffer(None),
        buffer(b"\x01\x00\x00\x00\x0c\x00\x00\x00\x0f\x00\x00\x00abc"),
        buffer(np.array([1, 2], np.float32).tobytes()),
        buffer(b"\x21\x03"),
        buffer(np.array([1, 2], np.float16).tobytes()),
        buffer(b"\x01"),
        buffer(b"unused"),
        buffer(b"1.2.3"),
    ]
    info = schema.MetadataT()
    info.name, info.buffer = b"min_runtime_version", 8
    model.metadata = [info]
    model.metadataBuffer = np.array([8], np.int32)
    signature, source, result = schema.SignatureDefT(), schema.TensorMapT(), schema.TensorMapT()
    source.name, source.tensorIndex, result.name, result.tensorIndex = b"in", 0, b"out", 7
    signature.signatureKey, signature.inputs, signature.outputs = b"serve", [source], [result]
    model.signatureDefs = [signature]
    if hasattr(schema, "ExternalBufferT"):  # not in older schemas
        group, external = schema.ExternalBufferGroupT(), schema.ExternalBufferT()
        group.name = b"weights.bin"
        external.id, external.offset, external.length = 1, 64, 128
        model.externalBufferGroups, model.externalBuffers = [group], [external]
    return model


def test_everything_comes_out_as_it_went_in() -> None:
    written = assert_round_trips(pack(everything()))
    assert {t.name for t in read_model(written).graphs[0].tensors} >= {"words", "loose", "state"}


def test_bytes_after_the_flatbuffer_stay_there() -> None:
    model = read_model((GOLDEN / "1x1.float.tflite").read_bytes())
    weights = next(tensor for tensor in model.graphs[0].tensors if tensor.is_constant and len(tensor.shape) == 4)
    before = np.array(weights.array)
    weights.buffer.large = True
    op = model.graphs[0].ops[0]
    op.carried = copy.copy(op.carried)
    op.carried.largeCustomOptionsOffset, op.custom_options = 2, b"options behind the file"
    written = write_model(model)
    [moved] = [item for item in unpacked(written).buffers if item.offset > 1]
    assert moved.offset % 16 == 0
    assert moved.data is None
    again = assert_round_trips(written)
    read = read_model(again)
    assert read.graphs[0].ops[0].custom_options == b"options behind the file"
    stored = next(t for t in read.graphs[0].tensors if t.name == weights.name).array
    assert stored is not None
    np.testing.assert_array_equal(stored, before)


def test_data_is_aligned_for_vector_loads() -> None:
    data = write_model(read_model((GOLDEN / "residual.float.tflite").read_bytes()))
    root = schema.Model.GetRootAs(data, 0)
    starts = []
    for i in range(root.BuffersLength()):
        table = root.Buffers(i)._tab
        field = table.Offset(4)
        if field:
            starts.append(table.Vector(field))
    assert starts
    assert all(start % 16 == 0 for start in starts)


def test_a_new_buffer_is_added_after_the_others() -> None:
    model = read_model((GOLDEN / "1x1.float.tflite").read_bytes())
    count = len(model.buffers)
    model.graphs[0].tensors[0].buffer = Buffer()
    assert len(unpacked(write_model(model)).buffers) == count + 1


OPTIONS = sorted(
    (union, name)
    for union in ("BuiltinOptions", "BuiltinOptions2")
    for name, value in vars(getattr(schema, union)).items()
    if isinstance(value, int) and value != 0 and not name.startswith("__")
)


@pytest.mark.parametrize(("union", "name"), OPTIONS, ids=lambda value: value)
def test_every_kind_of_options_comes_out_as_it_went_in(union: str, name: str) -> None:
    """In this model, each table has a value in every field for a number, a boolean, a string or a vector of numbers."""
    options = getattr(schema, name + "T")()
    for number, (key, default) in enumerate(vars(options).items()):
        if isinstance(default, bool):
            setattr(options, key, not default)
        elif isinstance(default, int | float):
            setattr(options, key, type(default)(1 + number % 2))
    if name == "ReshapeOptions":
        options.newShape = np.array([2, -1], np.int32)
    if name == "VarHandleOptions":
        options.container, options.sharedName = b"container", b"name"
    if name == "BucketizeOptions":
        options.boundaries = np.array([0.5, 1.5], np.float32)
    model = everything()
    kind = union[0].lower() + union[1:]
    model.subgraphs[0].operators[4] = operator(
        1, [0], [], **{kind: options, kind + "Type": getattr(getattr(schema, union), name)}
    )
    assert_round_trips(pack(model))


def test_constants_after_the_flatbuffer_lie_one_after_the_other() -> None:
    """Each constant must begin at a multiple of 16 bytes, because some runtimes map the file into memory."""
    values = [np.arange(count, dtype=np.uint8) for count in (15, 17, 48, 16, 1)]
    tensors = [constant(f"c{i}", value) for i, value in enumerate(values)]
    for tensor in tensors:
        tensor.buffer.large = True
    ops = [
        Op(OpCode("CUSTOM", f"own{i}"), [], [Tensor(f"t{i}", "INT8", (1,))], Options(), bytes(20 + i)) for i in (0, 1)
    ]
    for op in ops:
        op.carried = schema.OperatorT()
        op.carried.largeCustomOptionsOffset = 2
    graph = Graph("main", tensors, [], tensors, ops)
    model = Model([graph], [Buffer(), *(each.buffer for each in tensors)], [], [], None, None, 3, None)
    written = assert_round_trips(write_model(model))
    placed = unpacked(written)
    ends = [(item.offset, item.offset + item.size) for item in placed.buffers if item.offset > 1]
    ends += [
        (o, o + op.largeCustomOptionsSize) for op in placed.subgraphs[0].operators if (o := op.largeCustomOptionsOffset)
    ]
    assert len(ends) == 7
    assert all(begin % 16 == 0 and 0 <= begin - end < 16 for (_, end), (begin, _) in itertools.pairwise(ends))
    assert 0 <= len(written) - ends[-1][1] < 16
    for tensor, value in zip(read_model(written).graphs[0].tensors, values, strict=False):
        assert tensor.array is not None
        np.testing.assert_array_equal(tensor.array, value)
    assert [len(op.custom_options) for op in read_model(written).ops()] == [20, 21]
