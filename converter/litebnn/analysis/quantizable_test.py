import numpy as np
import pytest

from litebnn.analysis.quantizable import activations
from litebnn.contract import LCE_BCONV_2D
from tests.support.float_models import FloatModel, binarized, sign_weights


def ops_with_int8_results(activation: str, *, binary: bool = True, read_by_layer: bool = False) -> set[str]:
    """Returns the ops of a model whose results may become int8.

    The model has a convolution, a sign, and a second convolution. After the second convolution follow a MUL by a gate,
    `activation`, and an ADD of the first convolution's output. A max pool reads the sum.
    """
    model, rng = FloatModel(), np.random.default_rng(0)
    stem = model.conv(model.input(1, 4, 4, 3), rng.standard_normal((32, 3, 3, 3)), same=True)
    gate = model.elementwise("LOGISTIC", model.input(1, 1, 1, 32))
    x = model.sign(stem) if binary else stem
    x = model.elementwise("MUL", model.conv(x, sign_weights(rng, 32, 3, 3, 32), same=True), gate)
    constants = [] if activation == "LEAKY_RELU" else [model.const(rng.uniform(size=32))]
    x = model.elementwise("ADD", model.elementwise(activation, x, *constants), stem)
    outputs = [model.conv(x, rng.standard_normal((4, 1, 1, 32)))] if read_by_layer else []
    built, _ = binarized(model, model.max_pool(x, 2, 2), *outputs)
    graph = built.graphs[0]
    producers = [graph.producer(tensor) for tensor in activations(graph)]
    return {op.name for op in producers if op is not None}


@pytest.mark.parametrize("activation", ["PRELU", "MAXIMUM"])
def test_a_binary_layers_chain_with_an_op_without_int8_form_stays_float(activation: str) -> None:
    assert ops_with_int8_results(activation) == {"CONV_2D", "LOGISTIC", "MAX_POOL_2D"}


def test_a_layers_input_becomes_int8_after_a_chain_that_stays_float() -> None:
    assert ops_with_int8_results("PRELU", read_by_layer=True) == {"CONV_2D", "LOGISTIC", "MAX_POOL_2D", "ADD"}


def test_other_chains_become_int8() -> None:
    whole = {"CONV_2D", "LOGISTIC", "MUL", "ADD", "MAX_POOL_2D"}
    assert ops_with_int8_results("LEAKY_RELU") == {*whole, LCE_BCONV_2D, "LEAKY_RELU"}
    assert ops_with_int8_results("PRELU", binary=False) == whole
