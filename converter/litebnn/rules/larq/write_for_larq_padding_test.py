import numpy as np
import pytest

from litebnn.contract import Padding
from litebnn.rules.build.bconv import bconv_options
from litebnn.rules.larq.write_for_larq import write_for_larq
from litebnn.rules.phases import rules_of
from tests.support.float_models import FloatModel, assert_same_values, dyadic, op_names, rewritten, sign_weights

RNG = np.random.default_rng(0)
BINARY = (*rules_of("thresholds"), *rules_of("binarize"), *rules_of("fuse"))


@pytest.mark.parametrize("channels", [32, 20, 40])
@pytest.mark.parametrize(("value", "convs"), [(None, 2), (1.0, 1)])
def test_bits_are_padded_before(channels: int, value: float | None, convs: int) -> None:
    model = FloatModel()
    x = model.pad(model.sign(model.input(1, 6, 8, channels)), [(1, 1), (2, 0)], value)
    y = model.conv(x, sign_weights(RNG, 8, 3, 3, channels), dyadic(RNG, 8), stride=(2, 2))
    source = model.finish(model.elementwise("MUL", y, model.const(dyadic(RNG, 8))))
    result = rewritten(source, *BINARY, *BINARY, write_for_larq)
    assert op_names(result).count("LceBconv2d") == convs
    assert all(bconv_options(op).padding == Padding.VALID for op in result.ops() if op.name == "LceBconv2d")
    assert_same_values(source, result)
