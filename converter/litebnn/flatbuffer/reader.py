"""Reads the bytes of a .tflite file into a Model.

The reader trusts nothing in a file. Python cannot read outside the bytes. The reader checks that every index is valid;
`litebnn.safety` checks the graph. A flatbuffer may refer to one object many times, and the reader
unpacks the object each time. It therefore also checks that a small file does not become a huge model.
"""

from __future__ import annotations

import struct
from typing import Any

import flatbuffers
import numpy as np

from litebnn.errors import ConversionError, boundary
from litebnn.flatbuffer.schema import (
    OPERATOR_NAMES,
    OPTION_UNIONS,
    TYPE_NAMES,
    camel_case,
    schema,
    slots_of,
    snake_case,
)
from litebnn.graph import (
    Array,
    Buffer,
    Graph,
    Model,
    Op,
    OpCode,
    Options,
    Quantization,
    QuantizationDetails,
    Signature,
    Tensor,
)

_IDENTIFIER = b"TFL3"
# The tensors that each kind of quantization details names, and whether one may be left out.
SCALE_TENSORS = {
    kind: {"scales": False, "zero_points": True} for kind in ("BlockwiseQuantization", "MultiAxisQuantization")
}
# The exceptions that the generated code and NumPy raise for files with an invalid structure.
_LIES = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError, struct.error)


class _Budget:
    """The number of objects and characters that may still be unpacked. The initial limit is about four for each byte of
    the file, which is enough for every valid file.
    """

    def __init__(self, size: int) -> None:
        self._left = 4 * size + 4096

    def spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise ConversionError("not a sound .tflite file: it refers to the same objects over and over")


def read_model(data: bytes | bytearray | memoryview) -> Model:
    """Reads a whole .tflite file.

    Args:
        data: the bytes of the file. Constants of the model are views into these bytes.
    Raises:
        ConversionError: the bytes are not a valid .tflite file; the message says why.
    """
    view = memoryview(data).cast("B")
    if bytes(view[4:8]) != _IDENTIFIER:
        raise ConversionError('not a .tflite file: it does not have "TFL3" at byte 4')
    from litebnn.safety import check_read

    try:
        model = _read(view)
        check_read(model)
        return model
    except ConversionError:
        raise
    except _LIES as error:
        raise ConversionError(
            f"not a sound .tflite file (truncated or corrupt): it refers to what its {len(view)} bytes do not hold"
        ) from error


def read_strictly(content: bytes) -> Model:
    """Reads a whole untrusted .tflite file. In addition to `read_model`, refuses strings that a runtime would read out
    of bounds.

    Raises:
        ConversionError: the bytes are not a valid .tflite file, or a string extends beyond their end.
    """
    with boundary():
        return read_model(_Bounded(content))


class _Bounded(bytes):
    """A byte string that raises an error if a slice ends beyond its end. Python itself would silently return a
    shorter string.
    """

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key.stop is not None and key.stop > len(self):
            raise IndexError(f"byte {key.stop} of {len(self)}")
        return super().__getitem__(key)


def _read(view: memoryview) -> Model:
    data = view.obj if isinstance(view.obj, bytes | bytearray) and len(view.obj) == len(view) else bytes(view)
    budget = _Budget(len(view))
    source = schema.Model.GetRootAs(data, 0)
    _check_known(source, "Model", "the model")

    buffers = [_buffer(source.Buffers(i), data) for i in _counted(source.BuffersLength(), budget)]
    codes = [_code(source.OperatorCodes(i), i, budget) for i in _counted(source.OperatorCodesLength(), budget)]
    graphs, tables = [], []
    for i in _counted(source.SubgraphsLength(), budget):
        graph, tensors = _graph(source.Subgraphs(i), i, buffers, codes, data, budget)
        graphs.append(graph)
        tables.append(tensors)
    if not graphs:
        raise ConversionError("not a sound .tflite file: it holds no subgraph")

    metadata = []
    for i in _counted(source.MetadataLength(), budget):
        item = source.Metadata(i)
        metadata.append((_text(item.Name(), budget) or "", _at(buffers, item.Buffer(), f"metadata {i}: buffer")))
    signatures = None
    if not source.SignatureDefsIsNone():
        signatures = [
            _signature(source.SignatureDefs(i), graphs, tables, budget)
            for i in _counted(source.SignatureDefsLength(), budget)
        ]
    metadata_buffers = None
    if not source.MetadataBufferIsNone():
        metadata_buffers = [_at(buffers, int(i), "metadata buffer") for i in _ints(source.MetadataBufferAsNumpy())]

    carried = schema.ModelT()
    for field in ("externalBufferGroups", "externalBuffers"):
        upper = field[0].upper() + field[1:]
        if hasattr(source, upper) and not getattr(source, upper + "IsNone")():
            unpacked = []
            for i in _counted(getattr(source, upper + "Length")(), budget):
                item = getattr(schema, upper[:-1] + "T").InitFromObj(getattr(source, upper)(i))
                _spend_on(item, budget)
                unpacked.append(item)
            setattr(carried, field, unpacked)
    return Model(
        graphs=graphs,
        buffers=buffers,
        codes=codes,
        metadata=metadata,
        metadata_buffers=metadata_buffers,
        signatures=signatures,
        version=source.Version(),
        description=_text(source.Description(), budget),
        carried=carried,
    )


def _check_known(source: Any, kind: str, what: str) -> None:
    """Refuses a table with fields that the installed schema does not know, because writing would lose them."""
    table = source if isinstance(source, flatbuffers.table.Table) else source._tab
    vtable = table.Pos - table.Get(flatbuffers.number_types.SOffsetTFlags, table.Pos)
    size = table.Get(flatbuffers.number_types.VOffsetTFlags, vtable)
    for slot in range(slots_of(kind), (size - 4) // 2):
        if table.Get(flatbuffers.number_types.VOffsetTFlags, vtable + 4 + 2 * slot):
            raise ConversionError(f"{what} has a field that the installed schema does not know: update ai-edge-litert")


def _counted(length: int, budget: _Budget) -> range:
    budget.spend(length)
    return range(length)


def _spend_on(value: Any, budget: _Budget) -> None:
    """Counts an unpacked schema object, with everything in it, against the limit in `budget`."""
    if isinstance(value, bytes | str):
        budget.spend(len(value))
    elif isinstance(value, list):
        budget.spend(len(value))
        for item in value:
            _spend_on(item, budget)
    elif hasattr(value, "__dict__"):
        budget.spend(1)
        for item in vars(value).values():
            _spend_on(item, budget)


def _text(value: bytes | None, budget: _Budget) -> str | None:
    if value is None:
        return None
    budget.spend(len(value))
    return value.decode("utf-8", "surrogateescape")


def _ints(value: Any) -> list[int]:
    """The elements of a vector. The generated code returns the number 0 for an absent vector."""
    return [] if isinstance(value, int) else [int(item) for item in value]


def _at(items: list[Any], index: int, what: str) -> Any:
    if not 0 <= index < len(items):
        raise ConversionError(f"{what} {index} does not exist (there are {len(items)})")
    return items[index]


def _buffer(source: Any, data: bytes | bytearray) -> Buffer:
    offset, size = source.Offset(), source.Size()
    if offset > 1:  # 0 and 1 mean "inside the flatbuffer"
        return Buffer(_slice(data, offset, size, "buffer"), large=True)
    return Buffer(None if source.DataIsNone() else np.asarray(source.DataAsNumpy(), dtype=np.uint8).reshape(-1))


def _slice(data: bytes | bytearray, offset: int, size: int, what: str) -> Array:
    if offset + size > len(data):
        raise ConversionError(f"{what} at {offset} with {size} bytes lies outside the file of {len(data)} bytes")
    return np.frombuffer(data, np.uint8, size, offset)


def _code(source: Any, index: int, budget: _Budget) -> OpCode:
    value = max(source.BuiltinCode(), source.DeprecatedBuiltinCode())
    if value not in OPERATOR_NAMES:
        raise ConversionError(f"operator code {index}: builtin {value} is newer than the installed schema")
    return OpCode(OPERATOR_NAMES[value], _text(source.CustomCode(), budget) or "", source.Version())


def _graph(
    source: Any, index: int, buffers: list[Buffer], codes: list[OpCode], data: bytes | bytearray, budget: _Budget
) -> tuple[Graph, list[Tensor]]:
    _check_known(source, "SubGraph", f"subgraph {index}")
    tensors = [_tensor(source.Tensors(i), i, buffers, budget) for i in _counted(source.TensorsLength(), budget)]
    for number, tensor in enumerate(tensors):
        tensor.details = _details(tensor, number, tensors)
    where = f"subgraph {index}"
    inputs = [_at(tensors, i, f"{where}: input tensor") for i in _charged(source.InputsAsNumpy(), budget)]
    outputs = [_at(tensors, i, f"{where}: output tensor") for i in _charged(source.OutputsAsNumpy(), budget)]
    ops = [
        _op(source.Operators(i), i, tensors, codes, data, budget) for i in _counted(source.OperatorsLength(), budget)
    ]
    _find_shapes(ops)
    carried = schema.SubGraphT()
    if hasattr(source, "DebugMetadataIndex"):  # which older schemas lack
        carried.debugMetadataIndex = source.DebugMetadataIndex()
    produced: set[Tensor] = set()
    for number, op in enumerate(ops):
        for tensor in op.outputs:
            if tensor in produced:
                raise ConversionError(
                    f'op {number} ({op.name}): tensor "{tensor.name}" is written by another op already'
                )
            produced.add(tensor)
    return Graph(_text(source.Name(), budget) or "", tensors, inputs, outputs, ops, carried), tensors


def _find_shapes(ops: list[Op]) -> None:
    """Gives the tensors between a constant and a layer their shapes. TensorFlow's converter leaves them out for the
    fake-quantized weights of dense layers.
    """
    known: set[Tensor] = set()
    for op in ops:
        if op.name not in ("QUANTIZE", "DEQUANTIZE") or len(op.inputs) != 1 or len(op.outputs) != 1:
            continue
        source, result = op.inputs[0], op.outputs[0]
        if source is None or result.shape or not (source.is_constant or source in known):
            continue
        result.shape, result.carried.shape = source.shape, [*source.shape]
        result.quantization = result.quantization or _quantization(result.carried)
        known.add(result)


def _charged(vector: Any, budget: _Budget) -> list[int]:
    if vector is None or isinstance(vector, int):
        return []
    budget.spend(len(vector))
    return _ints(vector)


def _tensor(source: Any, index: int, buffers: list[Buffer], budget: _Budget) -> Tensor:
    _check_known(source, "Tensor", f"tensor {index}")
    carried = schema.TensorT.InitFromObj(source)
    _spend_on(carried, budget)
    name = (carried.name or b"").decode("utf-8", "surrogateescape")
    what = f'tensor {index} "{name}"'
    if carried.type not in TYPE_NAMES:
        raise ConversionError(f"{what}: type {carried.type} is newer than the installed schema")
    shape = tuple(_ints(carried.shape)) if carried.shape is not None else ()
    signature = tuple(_ints(carried.shapeSignature)) if carried.shapeSignature is not None else None
    if len(shape) > 64:
        raise ConversionError(f"{what}: {len(shape)} dimensions")
    if signature is not None and len(signature) != len(shape):
        raise ConversionError(f"{what}: shape {shape} and shape signature {signature} disagree")
    return Tensor(
        name=name,
        type=TYPE_NAMES[carried.type],
        shape=shape,
        buffer=_at(buffers, carried.buffer, f"{what}: buffer"),
        shape_signature=signature or None,
        quantization=_quantization(carried),
        is_variable=bool(carried.isVariable),
        is_sparse=carried.sparsity is not None,
        carried=carried,
    )


def _details(tensor: Tensor, index: int, tensors: list[Tensor]) -> QuantizationDetails | None:
    """The quantization of a tensor whose scales are other tensors. The file names these tensors by their indices."""
    q = tensor.carried.quantization
    if q is None or q.details is None:
        return None
    table = type(q.details).__name__.removesuffix("T")
    named: dict[str, Tensor | None] = {}
    for name, is_optional in SCALE_TENSORS.get(table, {}).items():
        number = getattr(q.details, camel_case(name))
        left_out = is_optional and number == -1
        named[name] = None if left_out else _at(tensors, number, f'tensor {index} "{tensor.name}": {name} tensor')
    if not named:
        return None
    numbers = {snake_case(key): value for key, value in vars(q.details).items() if snake_case(key) not in named}
    return QuantizationDetails(Options(table, **numbers), named, q.quantizedDimension)


def _quantization(carried: Any) -> Quantization | None:
    """Returns the scales and zero points of a tensor, and removes them from the tensor's schema object. Returns None if
    they are absent, have details, or do not fit the shape.
    """
    q, rank = carried.quantization, 0 if carried.shape is None else len(carried.shape)
    scale = np.zeros(0, np.float32) if q is None or q.scale is None else np.asarray(q.scale, np.float32)
    if scale.size == 0 or q.details is not None:
        return None
    zero_point = np.zeros(scale.shape, np.int64)
    if q.zeroPoint is not None and len(q.zeroPoint) > 0:
        zero_point = np.asarray(q.zeroPoint, np.int64)
    if zero_point.shape != scale.shape:
        return None
    if scale.size > 1 and not (0 <= q.quantizedDimension < rank and carried.shape[q.quantizedDimension] == scale.size):
        return None
    carried.quantization = None
    return Quantization(scale, zero_point, q.quantizedDimension, q)


def _op(
    source: Any, index: int, tensors: list[Tensor], codes: list[OpCode], data: bytes | bytearray, budget: _Budget
) -> Op:
    code = _at(codes, source.OpcodeIndex(), f"op {index}: operator code")
    _check_known(source, "Operator", f"op {index} ({code.builtin})")
    carried = schema.OperatorT.InitFromObj(source)
    _spend_on(carried, budget)
    options = _options(source, carried, f"op {index} ({code.builtin})")
    name = code.custom or code.builtin
    inputs = [
        None if i == -1 else _at(tensors, i, f"op {index} ({name}): input tensor")
        for i in _charged(carried.inputs, budget)
    ]
    outputs = [_at(tensors, i, f"op {index} ({name}): output tensor") for i in _charged(carried.outputs, budget)]
    intermediates = None
    if carried.intermediates is not None:
        intermediates = [
            _at(tensors, i, f"op {index} ({name}): intermediate tensor")
            for i in _charged(carried.intermediates, budget)
        ]
    mutating = carried.mutatingVariableInputs
    if mutating is not None and len(mutating) not in (0, len(inputs)):
        raise ConversionError(
            f"op {index} ({name}): {len(mutating)} mutating_variable_inputs, expected one for each of {len(inputs)}"
        )
    custom = b"" if carried.customOptions is None else bytes(np.asarray(carried.customOptions, np.uint8))
    large_offset = getattr(carried, "largeCustomOptionsOffset", 0)
    if large_offset > 1:
        custom = bytes(_slice(data, large_offset, carried.largeCustomOptionsSize, f"op {index} ({name}): options"))
    budget.spend(len(custom))
    return Op(code, inputs, outputs, options, custom, intermediates, carried)


def _options(source: Any, carried: Any, what: str) -> Options:
    """The options of an op. The schema has two unions of options, and one of them holds the op's options."""
    found = Options()
    for union in OPTION_UNIONS:
        field = union[0].lower() + union[1:]
        kind, options = getattr(carried, field + "Type"), getattr(carried, field)
        if kind != 0 and options is None:
            raise ConversionError(f"{what}: options of type {kind} are missing or too new")
        if options is None:
            continue
        table = type(options).__name__.removesuffix("T")
        _check_known(getattr(source, union)(), table, what)
        if found.table:
            raise ConversionError(f"{what}: it has {found.table} and {table}, expected one kind of options")
        found = Options(table, **{snake_case(key): value for key, value in vars(options).items()})
    return found


def _signature(source: Any, graphs: list[Graph], tables: list[list[Tensor]], budget: _Budget) -> Signature:
    key = _text(source.SignatureKey(), budget) or ""
    graph = _at(graphs, source.SubgraphIndex(), f'signature "{key}": subgraph')
    tensors = tables[source.SubgraphIndex()]
    named: list[list[tuple[str, Tensor]]] = []
    for at, length in ((source.Inputs, source.InputsLength()), (source.Outputs, source.OutputsLength())):
        pairs = []
        for i in _counted(length, budget):
            name = _text(at(i).Name(), budget) or ""
            pairs.append((name, _at(tensors, at(i).TensorIndex(), f'signature "{key}": tensor of "{name}"')))
        named.append(pairs)
    for name, tensor in named[0]:
        if tensor not in graph.inputs:
            raise ConversionError(f'signature "{key}": "{name}" is "{tensor.name}", which is no input of its subgraph')
    for _, tensor in named[0] + named[1]:
        graph.pinned.add(tensor)
    return Signature(key, graph, named[0], named[1])
