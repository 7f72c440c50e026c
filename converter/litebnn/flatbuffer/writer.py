"""Writes a Model to the bytes of a .tflite file, and the zip archive that may follow the model: labels, and other files
of its metadata."""

from __future__ import annotations

import copy
import io
import zipfile
import zlib
from typing import Any

import flatbuffers
import numpy as np

from litebnn.errors import ConversionError
from litebnn.flatbuffer.reader import read_model
from litebnn.flatbuffer.schema import OPERATOR_NAMES, OPTION_UNIONS, TYPE_NAMES, camel_case, names_of, schema
from litebnn.graph import Array, Buffer, Graph, Model, Op, OpCode, QuantizationDetails, Tensor

_IDENTIFIER = b"TFL3"
MOST_FILE_BYTES = 16 << 20
DAMAGES = (zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError, RuntimeError, EOFError, OSError, ValueError)
# The alignment of buffers in bytes. The schema requires it, so that SIMD code may load constants directly.
_BUFFER_ALIGNMENT = 16
_FLATBUFFER_LIMIT = 2**31 - 2**24
_OPERATOR_VALUES = {name: value for value, name in OPERATOR_NAMES.items()}
_TYPE_VALUES = {name: value for value, name in TYPE_NAMES.items()}
# For each kind of options, its place in the schema: the union that contains it, and its number in this union.
_OPTION_PLACES = {
    name: (union[0].lower() + union[1:], value)
    for union in reversed(OPTION_UNIONS)
    for value, name in names_of(union).items()
}
# The name of a custom op that an NPU compiler has compiled. The compiled code follows the flatbuffer of the source
# file, and the op stores the code's file offset.
_OF_FILE = "DISPATCH_OP"


class _AlignedBuffer:
    """A BufferT whose data is aligned when it is packed."""

    def __init__(self, data: Array | None, offset: int = 0, size: int = 0) -> None:
        self.data, self.offset, self.size = data, offset, size

    def Pack(self, builder: Any) -> Any:
        vector = None
        if self.data is not None:
            payload = np.ascontiguousarray(self.data)
            builder.StartVector(1, payload.size, _BUFFER_ALIGNMENT)
            builder.head -= payload.size
            builder.Bytes[builder.head : builder.head + payload.size] = payload.data
            vector = builder.EndVector()
        schema.BufferStart(builder)
        if vector is not None:
            schema.BufferAddData(builder, vector)
        schema.BufferAddOffset(builder, self.offset)
        schema.BufferAddSize(builder, self.size)
        return schema.BufferEnd(builder)


def write_result(model: Model, source: bytes) -> bytes:
    """Writes a rewritten model, followed by the files that follow its source, and checks that a runtime will load it.

    Raises:
        ConversionError: no runtime would load the result; the message says why.
    """
    from litebnn.safety import check_loads

    result = _with_files_of(source, write_model(model))
    check_loads(read_model(result), "the converted model")
    return result


def _with_files_of(source: bytes, result: bytes) -> bytes:
    """The rewritten model `result`. If files in a zip archive follow the bytes of the model `source`, they are appended
    to the result.
    """
    if not zipfile.is_zipfile(io.BytesIO(source)):
        return result
    try:
        with zipfile.ZipFile(io.BytesIO(source)) as archive:
            if sum(info.file_size for info in archive.infolist()) > MOST_FILE_BYTES:
                raise ConversionError("the files after the model have more than 16 MiB")
            for info in archive.infolist():
                result = with_file(result, info.filename, archive.read(info))
    except DAMAGES as error:
        raise ConversionError(f"the files after the model cannot be read: {error}") from None
    return result


def with_file(tflite: bytes, name: str, content: bytes) -> bytes:
    """A model with a file in a zip archive after its own bytes."""
    whole = io.BytesIO(tflite)
    whole.seek(0, io.SEEK_END)
    with zipfile.ZipFile(whole, "a", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return whole.getvalue()


def write_model(model: Model) -> bytes:
    """Writes the file of a model.

    Raises:
        ConversionError: the model is too large for the format, or the installed schema lacks an element type.
    """
    for op in model.ops():
        if op.code.custom == _OF_FILE:
            raise ConversionError(
                f"{_OF_FILE}: it is compiled for an NPU, and finds its code by its place in the source"
            )
    # The flatbuffer contains the file offsets of bytes that follow it, which are known only after it has been built.
    # Therefore the flatbuffer is built twice, first with placeholders of the same width.
    large = [buffer for buffer in model.buffers if buffer.large and buffer.data is not None]
    large_ops = [op for op in model.ops() if _has_large_options(op)]
    if not large and not large_ops:
        return bytes(_build(model, {}, {}))
    total = _aligned(len(_build(model, dict.fromkeys(large, 2), dict.fromkeys(large_ops, 2))))
    offsets: dict[Buffer, int] = {}
    option_offsets: dict[Op, int] = {}
    chunks: list[tuple[int, Any]] = []
    for buffer in large:
        assert buffer.data is not None
        offsets[buffer] = total
        chunks.append((total, np.ascontiguousarray(buffer.data).data))
        total = _aligned(total + buffer.data.size)
    for op in large_ops:
        option_offsets[op] = total
        chunks.append((total, op.custom_options))
        total = _aligned(total + len(op.custom_options))
    out = bytearray(total)
    head = _build(model, offsets, option_offsets)
    out[: len(head)] = head
    for at, chunk in chunks:
        out[at : at + len(chunk)] = chunk
    return bytes(out)


def _aligned(size: int) -> int:
    return -(-size // _BUFFER_ALIGNMENT) * _BUFFER_ALIGNMENT


def _has_large_options(op: Op) -> bool:
    return getattr(op.carried, "largeCustomOptionsOffset", 0) > 1


def _build(model: Model, offsets: dict[Buffer, int], option_offsets: dict[Op, int]) -> Any:
    inline = sum(b.data.size for b in model.buffers if b.data is not None and b not in offsets)
    if inline > _FLATBUFFER_LIMIT:
        raise ConversionError(f"the model holds {inline} bytes of constants, more than a flatbuffer can (2 GiB)")
    buffer_index = {buffer: i for i, buffer in enumerate(model.buffers)}
    codes = list(dict.fromkeys([*model.codes, *(op.code for op in model.ops())]))
    code_index = {code: i for i, code in enumerate(codes)}

    subgraphs = []
    tensor_index: dict[Tensor, int] = {}
    buffers = list(model.buffers)
    for graph in model.graphs:
        tensors = list(graph.all_tensors())
        tensor_index.update({tensor: i for i, tensor in enumerate(tensors)})
        for tensor in tensors:
            if tensor.buffer not in buffer_index:
                buffer_index[tensor.buffer] = len(buffers)
                buffers.append(tensor.buffer)
        subgraphs.append(_subgraph(graph, tensors, tensor_index, buffer_index, code_index, option_offsets))
    signatures = [
        _schema_object(
            "SignatureDef",
            signature_key=_encoded(signature.key),
            subgraph_index=model.graphs.index(signature.graph),
            inputs=[_named(name, tensor_index[tensor]) for name, tensor in signature.inputs],
            outputs=[_named(name, tensor_index[tensor]) for name, tensor in signature.outputs],
        )
        for signature in model.signatures or ()
    ]
    metadata = [
        _schema_object("Metadata", name=_encoded(name), buffer=buffer_index[buffer]) for name, buffer in model.metadata
    ]
    listed = model.metadata_buffers
    root = _schema_object(
        "Model",
        model.carried,
        version=model.version,
        description=_encoded(model.description),
        operator_codes=[_code(code) for code in codes],
        subgraphs=subgraphs,
        buffers=[
            _AlignedBuffer(None, offsets[buffer], buffer.data.size)
            if buffer in offsets and buffer.data is not None
            else _AlignedBuffer(buffer.data)
            for buffer in buffers
        ],
        metadata=metadata or None,
        metadata_buffer=None if listed is None else [buffer_index[buffer] for buffer in listed],
        signature_defs=None if model.signatures is None else signatures,
    )
    # The builder gets its full size at once, because growing its memory would copy the data and need twice the memory.
    # A tensor or op takes some 200 bytes besides its name.
    entries = [len(tensor.name) for tensor in tensor_index] + [0 for graph in model.graphs for _ in graph.ops]
    size = inline + _BUFFER_ALIGNMENT * len(buffers) + 512 * len(entries) + sum(entries)
    builder = flatbuffers.Builder(size + 4096)
    builder.Finish(root.Pack(builder), _IDENTIFIER)
    return memoryview(builder.Bytes)[builder.Head() :]


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _schema_object(kind: str, carried: Any = None, **fields: Any) -> Any:
    """Makes a schema object with the given `fields`: a changed copy of `carried`, or a new object."""
    item = getattr(schema, kind + "T")() if carried is None else copy.copy(carried)
    for key, value in fields.items():
        setattr(item, camel_case(key), value)
    return item


def _code(code: OpCode) -> Any:
    value = _OPERATOR_VALUES[code.builtin]
    return _schema_object(
        "OperatorCode",
        builtin_code=value,
        deprecated_builtin_code=min(value, 127),  # for runtimes that do not know the field `builtin_code`
        custom_code=_encoded(code.custom) or None,
        version=code.version,
    )


def _named(name: str, tensor: int) -> Any:
    return _schema_object("TensorMap", name=_encoded(name), tensor_index=tensor)


def _subgraph(
    graph: Graph,
    tensors: list[Tensor],
    tensor_index: dict[Tensor, int],
    buffer_index: dict[Buffer, int],
    code_index: dict[OpCode, int],
    option_offsets: dict[Op, int],
) -> Any:
    return _schema_object(
        "SubGraph",
        graph.carried,
        name=_encoded(graph.name) or None,
        tensors=[_tensor(tensor, buffer_index[tensor.buffer], tensor_index) for tensor in tensors],
        inputs=_int32([tensor_index[tensor] for tensor in graph.inputs]),
        outputs=_int32([tensor_index[tensor] for tensor in graph.outputs]),
        operators=[_op(op, tensor_index, code_index, option_offsets.get(op)) for op in graph.ops],
    )


def _int32(values: list[int]) -> Array:
    return np.asarray(values, dtype=np.int32)


def _tensor(tensor: Tensor, buffer: int, tensor_index: dict[Tensor, int]) -> Any:
    if tensor.type not in _TYPE_VALUES:
        raise ConversionError(f'"{tensor.name}" is {tensor.type}, which takes the schema of a newer ai-edge-litert')
    item = _schema_object(
        "Tensor", tensor.carried, name=_encoded(tensor.name), type=_TYPE_VALUES[tensor.type], buffer=buffer
    )
    item.shape = None if item.shape is None and not tensor.shape else _int32(list(tensor.shape))
    item.shapeSignature = None if tensor.shape_signature is None else _int32(list(tensor.shape_signature))
    item.isVariable = tensor.is_variable
    q = tensor.quantization
    if q is not None:
        fields = {"scale": q.scale, "zero_point": q.zero_point, "quantized_dimension": q.axis}
        item.quantization = q.carried or _schema_object("QuantizationParameters", **fields)
    if tensor.details is not None:
        item.quantization = _details(tensor.details, item.quantization, tensor_index)
    return item


def _details(details: QuantizationDetails, carried: Any, tensor_index: dict[Tensor, int]) -> Any:
    """The schema's table for a tensor whose scales are other tensors, with the new indices of these tensors."""
    options = dict(vars(details.options))
    table = options.pop("table")
    options |= {name: -1 if named is None else tensor_index[named] for name, named in details.tensors.items()}
    return _schema_object(
        "QuantizationParameters",
        carried,
        details=_schema_object(table, **options),
        details_type=getattr(schema.QuantizationDetails, table),
        quantized_dimension=details.axis,
    )


def _op(op: Op, tensor_index: dict[Tensor, int], code_index: dict[OpCode, int], option_offset: int | None) -> Any:
    item = _schema_object("Operator", op.carried)
    item.opcodeIndex = code_index[op.code]
    item.inputs = _int32([-1 if tensor is None else tensor_index[tensor] for tensor in op.inputs])
    item.outputs = _int32([tensor_index[tensor] for tensor in op.outputs])
    options = dict(vars(op.options))
    table = options.pop("table")
    for union in OPTION_UNIONS:
        field = union[0].lower() + union[1:]
        setattr(item, field, None)
        setattr(item, field + "Type", 0)
    if table:
        field, value = _OPTION_PLACES[table]
        setattr(item, field, _schema_object(table, **options))
        setattr(item, field + "Type", value)
    if op.intermediates is not None:
        item.intermediates = _int32([tensor_index[tensor] for tensor in op.intermediates])
    if option_offset is None:
        item.customOptions = np.frombuffer(op.custom_options, np.uint8) if op.custom_options else item.customOptions
    else:
        item.largeCustomOptionsOffset, item.largeCustomOptionsSize = option_offset, len(op.custom_options)
    return item
