import re

import numpy as np

import litebnn
from litebnn.report.guidelines import GUIDELINES, WORTH_SAYING, prices
from litebnn.report.inspection import inspect_model
from tests.support.float_models import FloatModel, any_size_model, sign_weights


def wasteful_network() -> bytes:
    """A network with a binary layer that breaks several rules for fast models. For example, its numbers of channels are
    not multiples of 32, and a RELU follows its scale and bias."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 9, 9, 40)), sign_weights(rng, 20, 3, 3, 40), same=True)
    return model.finish(model.elementwise("RELU", model.elementwise("ADD", x, model.const(np.ones(20)))))


def test_advice_names_what_is_there_and_its_price() -> None:
    _, report = litebnn.convert_tflite(wasteful_network(), return_report=True)
    advice = "\n".join(report.warnings)
    share = r"it costs \d+% to \d+% of the layer's time \(\w+\)"
    assert re.search(rf"40 input channels: make them a multiple of 32; {share}", advice)
    assert re.search(rf"20 output channels: make them a multiple of .*; {share}", advice)
    assert re.search(rf"zeros around the input, which 40% of the outputs see: pad with ones .*; {share}", advice)
    assert re.search(r"RELU behind the scale of a binary layer: .*; 1,620 values go through memory once more", advice)
    assert "RELU behind a scale or a bias cannot be fused" in advice


def test_inspection_prices_the_same_rules_and_sorts_them() -> None:
    inspection = inspect_model(litebnn.convert_tflite(wasteful_network()))
    found = inspection.broken_rules
    assert {"input channels", "output channels", "zero padding"} <= {rule.rule for rule in found}
    costs = [rule.seconds["host"] for rule in found]
    assert costs == sorted(costs, reverse=True)
    layer = next(row for row in inspection.ops if row.op == "LceBconv2d")
    assert all(0 <= rule.seconds["host"] < layer.seconds["host"] for rule in layer.broken_rules)


def test_a_network_that_keeps_the_rules_is_left_alone() -> None:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 8, 8, 64)), sign_weights(np.random.default_rng(0), 64, 1, 1, 64))
    converted, report = litebnn.convert_tflite(model.finish(x), return_report=True)
    assert report.warnings == ()
    assert inspect_model(converted).broken_rules == ()


def test_the_placeholder_of_an_open_size_is_no_single_pixel() -> None:
    converted, report = litebnn.convert_tflite(any_size_model(), return_report=True)
    assert not any("single output pixel" in line or "zeros around" in line for line in report.warnings)
    assert {"one output pixel", "zero padding"}.isdisjoint(rule.rule for rule in inspect_model(converted).broken_rules)


def test_every_rule_has_prices_and_costs_something_somewhere() -> None:
    for rule in GUIDELINES:
        measured = [price for (name, _), price in prices().items() if name == rule.name]
        assert {"avx512_vbmi", "avx512", "avx2", "portable"} <= {price.isa for price in measured}
        assert max(price.loss for price in measured) > WORTH_SAYING, rule.name
