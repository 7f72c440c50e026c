import numpy as np
import pytest

from litebnn.analysis.walks import MOST_OPS
from litebnn.graph import Tensor
from litebnn.rules.binarize.binarize_layers import binarize_layers
from litebnn.rules.build.bconv import is_of_binary_convs
from litebnn.rules.build.notes import Notes
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from tests.support.float_models import FloatModel, sign_weights

RNG = np.random.default_rng(0)


def joined(model: FloatModel, clamps: int) -> Tensor:
    """Makes a concatenation of the outputs of two binary layers, followed by `clamps` ops, each a RELU6 or RELU."""
    sign = model.sign(model.input(1, 4, 4, 32))
    parts = [model.conv(sign, sign_weights(RNG, 32, 1, 1, 32)) for _ in range(2)]
    x = model.op("CONCATENATION", parts, (1, 4, 4, 64), axis=3, fused_activation_function=0)
    for i in range(clamps):
        x = model.elementwise("RELU6" if i % 2 else "RELU", x)
    built = model.model(model.elementwise("TANH", x))
    recognize_signs(built.graphs[0], notes := Notes(built))
    binarize_layers(built.graphs[0], notes)
    return x


@pytest.mark.parametrize(("clamps", "is_of_convs"), [(0, True), (12, True), (MOST_OPS - 1, True), (MOST_OPS, False)])
def test_outputs_of_binary_layers_are_known_after_other_ops(clamps: int, is_of_convs: bool) -> None:
    model = FloatModel()
    assert is_of_binary_convs(model.graph, joined(model, clamps)) == is_of_convs


def test_outputs_that_another_op_reads_are_not_of_the_layers_alone() -> None:
    model = FloatModel()
    x = joined(model, 1)
    model.elementwise("NEG", x)
    assert not is_of_binary_convs(model.graph, x)
