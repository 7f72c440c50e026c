"""Models that no file can hold are refused before anything is built."""

import numpy as np
import pytest

from litebnn.errors import ConversionError
from litebnn.flatbuffer import write_model
from litebnn.graph import Buffer, Graph, Model, Tensor

# Offsets have 31 bits, and what is no constant takes some of them.
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
