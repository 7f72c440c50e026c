import numpy as np

import litebnn
from tests.support.float_models import FloatModel, sign_weights


def test_advice_names_the_cost() -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 9, 9, 40)), sign_weights(rng, 20, 3, 3, 40), same=True)
    x = model.elementwise("RELU", model.elementwise("ADD", x, model.const(np.ones(20))))
    _, report = litebnn.convert_tflite(model.finish(x), return_report=True)
    advice = "\n".join(report.warnings)
    assert "40 input channels: make it a multiple of 32; 38% of its bits are padding" in advice
    assert "20 output channels: make it a multiple of 8; 17% of its work is thrown away" in advice
    assert "same-zero padding: use pad_values=1 (same-one); 40% of its outputs lie at the edge" in advice
    assert "RELU behind a scale or a bias cannot be fused" in advice
    assert "12,960 bytes go through memory once more" in advice
