import numpy as np

from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Buffer, OpCode, compact
from litebnn.rules.build.int8 import int8_constant
from tests.support.float_models import FloatModel, op_names


def test_equal_constants_share_a_buffer_and_what_is_unused_goes() -> None:
    model = FloatModel()
    product = model.elementwise("MUL", model.input(1, 4), model.const(np.ones(4)))
    result = model.elementwise("ADD", product, model.const(np.ones((1, 4))))
    model.graph.tensors.append(model.const(np.arange(100)))
    built = model.model(result)
    built.buffers, built.codes = [Buffer(np.zeros(3, np.uint8))], [OpCode("SOFTMAX")]
    compact(built)
    assert [code.builtin for code in built.codes] == ["MUL", "ADD"]
    again = read_model(write_model(built))
    assert op_names(again) == ["MUL", "ADD"]
    constants = [t for t in again.graphs[0].tensors if t.is_constant]
    assert [t.shape for t in constants] == [(4,), (1, 4)]
    assert constants[0].buffer is constants[1].buffer
    assert len(again.buffers) == 2  # the other one is the empty buffer


def test_constants_on_other_grids_share_their_bytes_only() -> None:
    model = FloatModel()
    x = model.input(1, 4, type="INT8")
    ones = [int8_constant("one", np.full(4, 127 * scale, np.float32), scale) for scale in (0.5, 0.25)]
    built = model.model(*[model.op("ADD", [x, one], (1, 4), type="INT8") for one in ones])
    compact(built)
    assert [t for t in built.graphs[0].tensors if t.is_constant] == ones
    assert ones[0].buffer is ones[1].buffer


def test_metadata_keeps_its_buffer() -> None:
    model = FloatModel()
    built = model.model(model.elementwise("ABS", model.input(1, 4)))
    built.metadata = [("min_runtime_version", Buffer(np.frombuffer(b"1.2.3", np.uint8)))]
    compact(built)
    [(name, buffer)] = read_model(write_model(built)).metadata
    assert name == "min_runtime_version"
    assert buffer.data is not None
    assert bytes(buffer.data) == b"1.2.3"
