"""Tests that invalid files raise ConversionError with a reason."""

import struct
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebnn.convert import convert_tflite
from litebnn.errors import ConversionError, Defect
from litebnn.flatbuffer import read_model, write_model
from litebnn.flatbuffer.round_trip_test import buffer, code, everything, operator, pack, subgraph, tensor
from litebnn.flatbuffer.schema import schema, slots_of
from litebnn.graph import Graph, Model, Tensor

SOUND = Path("tests/golden/1x1.float.tflite").read_bytes()
SMALL = Path("tests/golden/quant_dense.lce.tflite").read_bytes()


def refused(data: bytes, reason: str) -> None:
    with pytest.raises(ConversionError, match=reason) as caught:
        read_model(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"TFL3", b"\x00" * 64, b"PK\x03\x04" + b"\x00" * 60])
def test_another_kind_of_file(data: bytes) -> None:
    refused(data, "not a .tflite file")


@pytest.mark.parametrize("share", [0.001, 0.01, 0.5, 0.9, 0.999])
def test_a_truncated_file(share: float) -> None:
    refused(SOUND[: int(len(SOUND) * share)], "not a")


def graph_with(op: Any, *tensors: Any) -> bytes:
    model = schema.ModelT()
    model.version, model.operatorCodes, model.buffers = 3, [code("ADD"), code("CONV_2D")], [schema.BufferT()]
    model.subgraphs = [subgraph(b"main", list(tensors), [0], [1], [op])]
    return pack(model)


X, Y = tensor("x", "FLOAT32", [1, 4]), tensor("y", "FLOAT32", [1, 4])


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        (operator(9, [0, 0], [1]), "operator code 9 does not exist"),
        (operator(0, [0, 7], [1]), r"op 0 \(ADD\): input tensor 7 does not exist"),
        (operator(0, [0, -2], [1]), "input tensor -2 does not exist"),
        (operator(0, [0, 0], [-1]), "output tensor -1 does not exist"),
        (operator(0, [0], [1]), r"op 0 \(ADD\): 1 inputs, expected 2"),
        (operator(0, [0, -1], [1]), "expected 2"),
        (operator(0, [0, 1], [1]), 'reads "y" before it is computed'),
        (operator(0, [1, 1], [0]), "an input of the graph"),
        (operator(0, [0, 0], [1, 1]), "written by another op already"),
        (operator(1, [0, 0], [1]), "options are missing, expected Conv2DOptions"),
        (operator(1, [0, 0], [1], schema.AddOptionsT()), "options AddOptions, expected Conv2DOptions"),
        (operator(0, [0, 0], [1], builtinOptionsType=1), r"op 0 \(ADD\): options of type 1 are missing or too new"),
        (
            operator(0, [0, 0], [1], builtinOptions2Type=250),
            r"op 0 \(ADD\): options of type 250 are missing or too new",
        ),
    ],
)
def test_an_op_that_makes_no_sense(op: Any, reason: str) -> None:
    refused(graph_with(op, X, Y), reason)


def test_a_constant_of_the_wrong_size() -> None:
    model = everything()
    model.subgraphs[0].tensors[8].shape = np.array([1 << 30, 1 << 30], np.int32)
    refused(pack(model), 'tensor 8 "loose": its buffer has 4 bytes')


@pytest.mark.parametrize("beyond", [1, 1 << 40])
def test_a_buffer_outside_the_file(beyond: int) -> None:
    model = everything()
    model.buffers[7].data, model.buffers[7].offset, model.buffers[7].size = None, 1 << 40, 16
    model.buffers[7].offset = len(pack(model)) - 16 + beyond
    refused(pack(model), "lies outside the file")


def test_what_a_signature_names_is_pinned() -> None:
    model = read_model(pack(everything()))
    [signature, *_] = model.signatures or []
    named = {tensor for _, tensor in (*signature.inputs, *signature.outputs)}
    assert len(named) > len(signature.outputs)
    assert named <= signature.graph.pinned


def test_a_signature_of_a_tensor_that_is_not_there() -> None:
    model = everything()
    model.signatureDefs[0].outputs[0].tensorIndex = 1000
    refused(pack(model), 'signature "serve": tensor of "out" 1000')


def test_a_signature_of_an_input_that_the_graph_does_not_take() -> None:
    model = everything()
    taken = set(model.subgraphs[0].inputs)
    other = next(index for index in range(len(model.subgraphs[0].tensors)) if index not in taken)
    model.signatureDefs[0].inputs[0].tensorIndex = other
    refused(pack(model), 'signature "serve": ".*" is ".*", which is no input of its subgraph')


def vector_of_one(builder: Any, table: str, field: str, item: Any, times: int) -> Any:
    """A vector that contains the same object several times."""
    getattr(schema, f"{table}Start{field}Vector")(builder, times)
    for _ in range(times):
        builder.PrependUOffsetTRelative(item)
    return builder.EndVector()


def table_of(builder: Any, table: str, **fields: Any) -> Any:
    getattr(schema, f"{table}Start")(builder)
    for field, value in fields.items():
        getattr(schema, f"{table}Add{field}")(builder, value)
    return getattr(schema, f"{table}End")(builder)


def test_a_small_file_that_unfolds_into_a_huge_graph() -> None:
    """The file has two thousand references to one subgraph, which has two thousand references to one tensor."""
    builder, count = flatbuffers.Builder(1024), 2000
    tensors = vector_of_one(builder, "SubGraph", "Tensors", X.Pack(builder), count)
    graph = table_of(builder, "SubGraph", Tensors=tensors)
    graphs = vector_of_one(builder, "Model", "Subgraphs", graph, count)
    buffers = vector_of_one(builder, "Model", "Buffers", schema.BufferT().Pack(builder), 1)
    builder.Finish(table_of(builder, "Model", Subgraphs=graphs, Buffers=buffers), b"TFL3")
    refused(bytes(builder.Output()), "over and over")


LONG, MANY = b"x" * 4000, np.zeros(4000, np.int32)


def named(kind: str, **fields: Any) -> Any:
    item = getattr(schema, kind + "T")()
    for field, value in fields.items():
        setattr(item, field, value)
    return item


@pytest.mark.parametrize(
    ("table", "field", "item"),
    [
        ("Model", "OperatorCodes", named("OperatorCode", customCode=LONG)),
        ("Model", "Metadata", named("Metadata", name=LONG)),
        ("Model", "SignatureDefs", named("SignatureDef", signatureKey=LONG)),
        ("Model", "SignatureDefs", named("SignatureDef", outputs=[named("TensorMap", name=LONG)])),
        ("Model", "SignatureDefs", named("SignatureDef", outputs=[named("TensorMap")] * 300)),
        ("Model", "Subgraphs", named("SubGraph", name=LONG)),
        ("SubGraph", "Tensors", tensor(LONG.decode(), "FLOAT32", [1, 4])),
        ("SubGraph", "Tensors", tensor("x", "FLOAT32", [1], variantTensors=[named("VariantSubType")] * 300)),
        ("SubGraph", "Operators", operator(0, MANY, [])),
        ("SubGraph", "Operators", operator(0, [], MANY)),
        ("SubGraph", "Operators", operator(0, [], [], intermediates=MANY)),
        ("SubGraph", "Operators", operator(0, [], [], customOptions=MANY.astype(np.uint8))),
    ],
)
def test_what_a_file_refers_to_over_and_over_is_charged_each_time(table: str, field: str, item: Any) -> None:
    builder, times = flatbuffers.Builder(1024), 1000
    own = {
        "Buffers": vector_of_one(builder, "Model", "Buffers", schema.BufferT().Pack(builder), 1),
        "OperatorCodes": vector_of_one(builder, "Model", "OperatorCodes", code("ADD").Pack(builder), 1),
    }
    repeated = {field: vector_of_one(builder, table, field, item.Pack(builder), times)}
    tensors = vector_of_one(builder, "SubGraph", "Tensors", X.Pack(builder), 1)
    graph = table_of(builder, "SubGraph", **{"Tensors": tensors, **(repeated if table == "SubGraph" else {})})
    graphs = vector_of_one(builder, "Model", "Subgraphs", graph, 1)
    fields = {**own, "Subgraphs": graphs, **(repeated if table == "Model" else {})}
    builder.Finish(table_of(builder, "Model", **fields), b"TFL3")
    refused(bytes(builder.Output()), "over and over")


def test_a_file_may_refer_to_what_four_times_its_size_and_a_page_hold() -> None:
    """Strings may be shared: in this file, a name of 4870 bytes occurs five times, although the file is only slightly
    larger."""
    names = [b"n" * 4870] * 5
    builder = flatbuffers.Builder(1024)
    item = named("Metadata", name=names[0]).Pack(builder)
    fields = {
        "Metadata": vector_of_one(builder, "Model", "Metadata", item, len(names)),
        "Buffers": vector_of_one(builder, "Model", "Buffers", buffer(bytes(120)).Pack(builder), 1),
        "Subgraphs": vector_of_one(builder, "Model", "Subgraphs", subgraph(b"", [], [], [], []).Pack(builder), 1),
    }
    builder.Finish(table_of(builder, "Model", **fields), b"TFL3")
    data = bytes(builder.Output())
    assert 4 * len(data) < sum(map(len, names)) < 4 * len(data) + 4096
    assert len(read_model(data).metadata) == 5


@pytest.mark.filterwarnings("ignore:no binary layer")
@settings(max_examples=300)
@given(
    st.sampled_from([SOUND[:1000] + SOUND[-4000:], SMALL, pack(everything())]),
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0, 1, 2, 4, 255, 2**31, 2**32 - 1, 12345])), max_size=8),
)
def test_damaged_files_raise_nothing_else(data: bytes, damage: list[tuple[float, int]]) -> None:
    damaged = bytearray(data)
    for place, value in damage:
        at = int(place * (len(damaged) - 4)) & ~3
        struct.pack_into("<I", damaged, at, value)
    try:
        convert_tflite(bytes(damaged))
    except Defect:
        raise
    except ConversionError:
        pass


def test_a_field_that_the_schema_does_not_know_is_not_lost_in_silence() -> None:
    builder = flatbuffers.Builder(256)
    builder.StartObject(slots_of("Model") + 3)
    builder.PrependUint32Slot(slots_of("Model") + 2, 7, 0)
    builder.Finish(builder.EndObject(), b"TFL3")
    refused(bytes(builder.Output()), "the model has a field that the installed schema does not know")


@pytest.mark.parametrize("place", [0, 4, 256])
def test_fields_that_the_schema_does_not_know_may_be_left_empty(place: int) -> None:
    """A table stores the position of each field in two bytes, with 0 for a missing field."""
    builder = flatbuffers.Builder(256)
    builder.StartObject(slots_of("Model") + 3)
    builder.PrependUint32Slot(slots_of("Model") + 2, 7, 0)
    builder.Finish(builder.EndObject(), b"TFL3")
    data = builder.Output()
    table = struct.unpack_from("<I", data)[0]
    vtable = table - struct.unpack_from("<i", data, table)[0]
    struct.pack_into("<H", data, vtable + 4 + 2 * (slots_of("Model") + 2), place)
    with pytest.raises(ConversionError) as caught:
        read_model(data)
    assert ("holds no subgraph" if place == 0 else "does not know") in str(caught.value)


def test_a_name_may_be_long() -> None:
    name = "n" * 20000
    x = Tensor(name, "FLOAT32", (1,))
    data = write_model(Model([Graph("main", [x], [x], [x], [])], [], [], [], None, None, 3, None))
    assert read_model(data).graphs[0].inputs[0].name == name


@pytest.mark.parametrize(
    ("scales", "points", "grid"),
    [([0.5], None, (0.5, 0)), ([0.5], [], (0.5, 0)), ([0.5], [3], (0.5, 3)), ([0.5], [3, 3], None), ([], [3], None)],
)
def test_zero_points_that_are_not_given_are_zero(
    scales: list[float], points: list[int] | None, grid: tuple[float, int] | None
) -> None:
    q = named("QuantizationParameters", scale=np.array(scales, np.float32))
    q.zeroPoint = None if points is None else np.array(points, np.int64)
    data = graph_with(
        operator(0, [0, 0], [1]), tensor("x", "INT8", [1, 4], quantization=q), tensor("y", "INT8", [1, 4])
    )
    assert read_model(data).graphs[0].inputs[0].per_tensor_quantization == grid


@pytest.mark.parametrize("rank", [64, 65])
def test_a_tensor_has_64_dimensions_at_most(rank: int) -> None:
    data = graph_with(operator(0, [0, 0], [1]), tensor("x", "FLOAT32", [1] * rank), Y)
    if rank == 64:
        assert read_model(data).graphs[0].inputs[0].shape == (1,) * 64
    else:
        refused(data, 'tensor 0 "x": 65 dimensions')
