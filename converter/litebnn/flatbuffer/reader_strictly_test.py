import pytest

from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_strictly, write_model
from litebnn.graph import Graph, Model, Tensor

NAME = "the only tensor"


def model() -> bytes:
    x = Tensor(NAME, "FLOAT32", (1,))
    return write_model(Model([Graph("main", [x], [x], [x], [])], [], [], [], None, None, 3, None))


def test_a_sound_file_is_read() -> None:
    assert read_strictly(model()).graphs[0].tensors[0].name == NAME


def test_a_string_that_ends_outside_of_the_file_is_refused() -> None:
    data = model()
    at = data.index(NAME.encode())
    damaged = data[: at - 4] + len(data).to_bytes(4, "little") + data[at:]
    with pytest.raises(ConversionError):
        read_strictly(damaged)
