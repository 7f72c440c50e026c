import pytest

from litebnn.analysis.numbers.saturations import saturations_of
from litebnn.graph import Tensor
from tests.support.float_models import FloatModel
from tests.zeros.chains import chained


def hardtanhs(model: FloatModel, x: Tensor, name: str) -> Tensor:
    first, second = (model.elementwise("RELU_N1_TO_1", each) for each in (x, model.input(*x.dims)))
    return model.elementwise(name, first, second)


CASES = {
    "anything": (lambda m, x: x, set()),
    "hardtanh": (lambda m, x: chained(m, x, ["RELU_N1_TO_1", "max"]), {-1, 1}),
    "of a product": (lambda m, x: chained(m, x, ["clamped sum", "opposite"]), {0, -3}),
    "two clamps": (lambda m, x: chained(m, x, ["at least 0.5", "RELU6", "lowered"]), {-1, -0.5, 5}),
    "padded": (lambda m, x: chained(m, x, ["minus ones", "doubled"]), {-2}),
    "magnitude": (lambda m, x: chained(m, x, ["RELU_N1_TO_1", "ABS"]), {1}),
    "positive ones": (lambda m, x: chained(m, x, ["RELU_N1_TO_1", "ELU", "doubled", "SQUARE"]), {4}),
    "sum": (lambda m, x: hardtanhs(m, x, "ADD"), {-2, 0, 2}),
    "largest": (lambda m, x: hardtanhs(m, x, "MAXIMUM"), {-1, 1}),
    "with anything": (lambda m, x: m.elementwise("ADD", x, m.elementwise("RELU6", x)), set()),
    "not clamped": (lambda m, x: chained(m, x, ["TANH"]), set()),
}


@pytest.mark.parametrize("case", CASES)
def test_limits_of_clamps(case: str) -> None:
    model = FloatModel()
    build, numbers = CASES[case]
    assert saturations_of(model.graph, build(model, model.input(1, 4, 4, 3))) == numbers
