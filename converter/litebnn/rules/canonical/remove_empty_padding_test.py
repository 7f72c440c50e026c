import pytest

from litebnn.rules.canonical.remove_empty_padding import remove_empty_padding
from tests.support.float_models import FloatModel, run_pass


@pytest.mark.parametrize("value", [None, 0.5])
def test_what_pads_with_nothing_is_removed(value: float | None) -> None:
    model = FloatModel()
    x = model.pad(model.input(1, 4, 4, 3), [(0, 0), (0, 0)], value)
    changed, names = run_pass(remove_empty_padding, model.model(model.elementwise("RELU", x)))
    assert changed
    assert names == ["RELU"]


def test_what_pads_and_what_is_an_output_stay() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 3)
    padded = model.elementwise("RELU", model.pad(x, [(0, 1), (0, 0)]))
    built = model.model(padded, model.pad(x, [(0, 0), (0, 0)]))
    assert run_pass(remove_empty_padding, built) == (False, ["PAD", "RELU", "PAD"])
