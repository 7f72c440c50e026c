from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.errors import ConversionError
from litebnn.report.comparison import compare_models
from tests.support.float_models import FloatModel, sums_near_zero, with_changed

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"
DIGITS = GOLDEN.parents[1] / "examples" / "label_image" / "digits.tflite"
pytestmark = pytest.mark.usefixtures("library")


def golden(name: str) -> bytes:
    return (GOLDEN / f"{name}.tflite").read_bytes()


@pytest.mark.parametrize("name", ["residual", "odd_channels"])
def test_a_model_and_its_conversion_do_not_differ_whichever_comes_first(name: str) -> None:
    pair = golden(f"{name}.float"), golden(f"{name}.lce")
    for first, second in (pair, pair[::-1]):
        found = compare_models(first, second, samples=2)
        assert found.bytes == (len(first), len(second))
        assert found.difference < 1e-5
        assert found.common_layers > 0
        assert found.layers == ()
        assert [sum(macs) for macs in found.macs] == [found.macs[0].other or found.macs[0].binary] * 2


@pytest.mark.parametrize("kind", ["float32", "int8", "uint8"])
def test_random_samples_lie_in_the_range_of_a_quantized_input(kind: str) -> None:
    model = FloatModel()
    weights = np.random.default_rng(0).normal(size=(8, 3, 3, 3)).astype(np.float32)
    source = model.finish(model.conv(model.input(1, 8, 8, 3), weights))
    # The int8 input can only represent numbers up to 0.01, so nearly all normally distributed samples would saturate.
    with pytest.warns(UserWarning, match="no binary layer"):
        converted = litebnn.convert_tflite(source, stem="int8", input_range=(-0.01, 0.01), inference_input_type=kind)
    for first, second in ((source, converted), (converted, source)):
        assert 0 < compare_models(first, second).difference < 0.05


def test_the_first_layer_that_differs_is_found_among_floats_and_among_bits() -> None:
    source, sign, samples = sums_near_zero(32, 6, 0)
    converted = litebnn.convert_tflite(source)
    broken = with_changed(converted, {"LceBconv2d"}, 4, lambda thresholds: thresholds + 20)
    for first, second in ((source, broken), (broken, source), (converted, broken)):
        found = compare_models(first, second, samples[:3])
        assert found.samples == 3
        layer = found.layers[0]
        assert layer.layer.removesuffix("/bits") == sign
        assert 0 < layer.flipped < layer.signs
        assert layer.samples == 3
        # The distance of the sums from zero is unknown if both models store only the sums' signs, packed.
        assert np.isnan(layer.distance) == (first is converted)


def test_the_distance_from_zero_is_known_of_bits_that_floats_are_made_to() -> None:
    def network(shift: float) -> bytes:
        model = FloatModel()
        shifted = model.op(
            "ADD", [model.input(1, 4, 4, 32), model.const(np.full(32, shift, np.float32))], (1, 4, 4, 32)
        )
        weights = np.where(np.arange(8 * 32).reshape(8, 1, 1, 32) % 3, 1.0, -1.0).astype(np.float32)
        return litebnn.convert_tflite(model.finish(model.conv(model.sign(shifted), weights)))

    found = compare_models(network(0.0), network(0.01), samples=4)
    flipped = [layer for layer in found.layers if layer.flipped]
    assert flipped
    assert 0 <= flipped[0].distance < 0.02 < flipped[0].mean_distance


def test_int8_is_compared_by_its_values() -> None:
    found = compare_models(golden("int8_qat.float"), golden("int8_qat.lce"), samples=2)
    [output] = found.outputs
    assert 0 < output.difference < 0.3
    assert output.same_class == 1.0


def test_random_inputs_come_from_the_seed() -> None:
    pair = golden("int8_qat.float"), golden("int8_qat.lce")
    found = [compare_models(*pair, samples=1, seed=seed) for seed in (1, 1, 2)]
    assert found[0] == found[1]
    assert found[0].difference != found[2].difference


def test_models_that_cannot_be_compared() -> None:
    first = golden("residual.float")
    with pytest.raises(ConversionError, match=r"^the models have different inputs: 1×\S+, and 1×"):
        compare_models(first, DIGITS.read_bytes())
    with pytest.raises(ConversionError, match=r"^the models have different outputs: 1×\S+, and 1×"):
        compare_models(golden("int8_qat.float"), golden("1x1.lce"))
    with pytest.raises(ValueError, match="compare: input .* has shape"):
        compare_models(first, first, np.zeros((1, 2, 2, 1), np.float32))
