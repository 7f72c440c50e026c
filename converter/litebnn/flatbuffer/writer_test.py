"""Tests that models that the format cannot hold are refused before anything is built."""

import numpy as np
import pytest

from litebnn.errors import ConversionError
from litebnn.flatbuffer import write_model
from litebnn.graph import Buffer, Graph, Model, Op, OpCode, Tensor

# The largest size of a flatbuffer in bytes. Offsets have 31 bits; the limit leaves room for tables and other data.
LIMIT = 2**31 - 2**24


def model_of(*tensors: Tensor) -> Model:
    graph = Graph("main", list(tensors), [], list(tensors), [])
    return Model([graph], [Buffer(), *(tensor.buffer for tensor in tensors)], [], [], None, None, 3, None)


def test_more_constants_than_offsets_reach() -> None:
    halves = [np.broadcast_to(np.uint8(0), size) for size in (LIMIT // 2, LIMIT // 2 + 1)]
    tensors = [Tensor(f"c{i}", "UINT8", data.shape, Buffer(data)) for i, data in enumerate(halves)]
    with pytest.raises(
        ConversionError, match=f"the model holds {LIMIT + 1} bytes of constants, more than a flatbuffer"
    ):
        write_model(model_of(*tensors))


def test_an_element_type_that_the_schema_lacks() -> None:
    with pytest.raises(ConversionError, match='"x" is INT3, which takes the schema of a newer ai-edge-litert'):
        write_model(model_of(Tensor("x", "INT3", (1,))))


def test_an_op_whose_code_lies_at_a_place_of_the_source() -> None:
    model = model_of(x := Tensor("x", "FLOAT32", (1,)))
    model.graphs[0].insert(Op(OpCode("CUSTOM", "DISPATCH_OP"), [x], [Tensor("y", "FLOAT32", (1,))]))
    with pytest.raises(ConversionError, match="DISPATCH_OP: it is compiled for an NPU"):
        write_model(model)
