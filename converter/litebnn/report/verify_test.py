from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model, write_model
from litebnn.report.verify import verify_conversion
from litebnn.rewriting.int8 import int8_constant
from tests.support.float_models import FloatModel, sign_weights, sums_near_zero

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"


@pytest.mark.usefixtures("library")
def test_verify_names_the_first_layer_that_differs() -> None:
    source = (GOLDEN / "bitpacked_chain.float.tflite").read_bytes()
    converted = litebnn.convert_tflite(source, verify=True)
    assert verify_conversion(source, converted).difference < 1e-4
    broken = read_model(converted)
    second = [op for op in broken.graphs[0].ops if op.name == "LceBconv2d"][1]
    thresholds = second.input(4)
    assert thresholds.buffer.data is not None
    thresholds.buffer.data = (np.array(thresholds.array) + 20).view(np.uint8)
    sign = read_model(source).graphs[0].ops[-2].output.name
    with pytest.raises(litebnn.ConversionError, match="the first layer that differs is") as caught:
        verify_conversion(source, write_model(broken))
    assert sign in str(caught.value)
    with pytest.raises(ValueError, match="the model takes"):
        verify_conversion(source, converted, np.zeros((1, 3, 3, 3), np.float32))


@pytest.mark.usefixtures("library")
def test_a_sign_that_rounding_turns_over_proves_nothing() -> None:
    def model(bias: float) -> bytes:
        rng = np.random.default_rng(0)
        chain = FloatModel()
        x = chain.conv(chain.sign(chain.input(1, 6, 6, 32)), sign_weights(rng, 32, 3, 3, 32))
        x = chain.elementwise("ADD", x, chain.const(bias))
        return chain.finish(chain.conv(chain.sign(x), sign_weights(rng, 8, 3, 3, 32)))

    x = np.random.default_rng(1).standard_normal((1, 6, 6, 32)).astype(np.float32)
    source, above, far = model(-1e-7), litebnn.convert_tflite(model(1e-7)), litebnn.convert_tflite(model(2.0))
    with pytest.raises(litebnn.ConversionError, match="rounding turns a sign over"):
        verify_conversion(source, above, x)
    with pytest.raises(litebnn.ConversionError, match='first layer that differs is "sign_'):
        verify_conversion(source, far, x)


@pytest.mark.usefixtures("library")
def test_the_report_says_which_signs_rounding_turned() -> None:
    source, sign, samples = sums_near_zero(32, 8, seed=0)
    with pytest.raises(litebnn.ConversionError, match=rf'first in "{sign}": [\d,]+ signs? of [\d,]+ turned, at'):
        litebnn.convert_tflite(source, verify=samples)
    quiet = samples.copy()
    quiet[1:] = np.abs(samples[1:]) + 1  # its sums are far from zero
    _, report = litebnn.convert_tflite(source, verify=quiet, return_report=True)
    found = report.verification
    assert (found.samples, found.passed_over) == (len(samples) - 1, 1)
    [place] = found.turned
    assert place.by_rounding
    assert (place.layer, place.samples) == (sign, 1)
    [written] = report.to_dict()["verification"]["turned"]
    assert written["turned"] == place.turned > 0
    assert f'rounding in 1 of {len(samples)} samples: "{sign}"' in str(report)
    _, unverified = litebnn.convert_tflite(source, return_report=True)
    assert unverified.to_dict()["verification"] is None


@pytest.mark.usefixtures("library")
def test_a_source_that_rounds_what_its_layers_read_is_held_to_less() -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    weights = sign_weights(rng, 8, 3, 3, 32)
    kernel = int8_constant("kernel", weights, np.abs(weights).max(axis=(1, 2, 3)) / 127)
    other = int8_constant("other", rng.standard_normal((8, 3, 3, 32)), 1 / 32)
    x = model.input(1, 6, 6, 32)
    source = model.finish(model.conv(model.sign(x), kernel), model.conv(x, other))
    _, report = litebnn.convert_tflite(source, verify=True, return_report=True)
    assert [layer.binary for layer in report.layers] == [True, False]
    assert report.difference < 0.02
