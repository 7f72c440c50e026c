import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.report.op_properties import bytes_of, fused_additions
from tests.support.float_models import FloatModel, sign_weights


@pytest.mark.parametrize("binarized", [True, False])
def test_an_addition_after_a_shortcut_is_computed_with_the_later_binary_layer(binarized: bool) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.input(1, 8, 8, 32)
    conv = model.conv(model.sign(x), sign_weights(rng, 32, 1, 1, 32))
    if binarized:
        shortcut = model.conv(model.sign(model.input(1, 8, 8, 32)), sign_weights(rng, 32, 1, 1, 32))
    else:
        shortcut = model.conv(x, rng.standard_normal((32, 1, 1, 32)))
    graph = read_model(litebnn.convert_tflite(model.finish(model.elementwise("ADD", conv, shortcut)))).graphs[0]
    convs = [op for op in graph.ops if op.name == "LceBconv2d"]
    assert [op.name for op in graph.ops].index("ADD") > graph.ops.index(convs[0]) + 1
    assert list(fused_additions(graph).values()) == [convs[-1]]


@pytest.mark.parametrize(("type", "size"), [("FLOAT32", 24), ("BOOL", 6), ("INT4", 3), ("BFLOAT16", 12), ("STRING", 0)])
def test_a_computed_tensor_takes_the_bits_of_its_type(type: str, size: int) -> None:
    assert bytes_of(Tensor("x", type, (2, 3))) == size
