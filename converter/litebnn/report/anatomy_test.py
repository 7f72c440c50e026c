import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.report.anatomy import delegated_ops
from tests.support.float_models import FloatModel, sign_weights


@pytest.mark.parametrize("binarized", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_pools_of_which_signs_are_made_are_the_delegates(binarized: bool, normalized: bool) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    pooled = model.max_pool(model.input(1, 8, 8, 32), 3, 2, same=True)
    x = pooled
    for name in ("MUL", "ADD") * normalized:
        x = model.elementwise(name, x, model.const(rng.standard_normal(32)))
    weights = sign_weights(rng, 32, 1, 1, 32)
    x = model.conv(model.sign(x), weights) if binarized else model.conv(x, rng.standard_normal((32, 1, 1, 32)))
    graph = read_model(litebnn.convert_tflite(model.finish(model.elementwise("ADD", x, pooled)))).graphs[0]
    pools = {op for op in graph.ops if op.name == "MAX_POOL_2D"}
    assert len(pools) == 1
    assert (pools <= delegated_ops(graph)) == binarized
