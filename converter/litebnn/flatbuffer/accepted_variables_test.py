import pytest

from litebnn.flatbuffer.accepted import assigns_variables, find_variable_tensor
from tests.support.float_models import FloatModel, counting_model, recurrent_model


def without_state() -> bytes:
    model = FloatModel()
    return model.finish(model.elementwise("NEG", model.input(1, 4)))


@pytest.mark.parametrize(
    ("content", "tensor", "resources"),
    [(without_state(), None, False), (recurrent_model(), "state_25", False), (counting_model(), None, True)],
)
def test_variables_are_tensors_or_resources(content: bytes, tensor: str | None, resources: bool) -> None:
    assert find_variable_tensor(content) == tensor
    assert assigns_variables(content) == resources
