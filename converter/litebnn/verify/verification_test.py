import re
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model, write_model
from litebnn.rules.build.int8 import int8_constant
from litebnn.verify.verification import SideBySide, verify_conversion
from tests.support.float_models import FloatModel, sign_weights, sums_near_zero, sums_of_tenths, with_changed
from tests.support.level_spellings import LEVELS

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"


@pytest.mark.usefixtures("library")
def test_verify_names_the_first_layer_that_differs() -> None:
    source = (GOLDEN / "bitpacked_chain.float.tflite").read_bytes()
    converted = litebnn.convert_tflite(source, verify=True)
    assert verify_conversion(source, converted).difference < 1e-4
    broken = with_changed(converted, {"LceBconv2d"}, 4, lambda thresholds: thresholds + 20, at=1)
    sign = read_model(source).graphs[0].ops[-2].output.name
    with pytest.raises(litebnn.ConversionError, match="the first layer that differs is") as caught:
        verify_conversion(source, broken)
    assert sign in str(caught.value)
    with pytest.raises(ValueError, match="the model takes"):
        verify_conversion(source, converted, [np.zeros((1, 3, 3, 3), np.float32)])


def two_layers(bias: float, size: int = 6) -> bytes:
    """A network of a layer with a bias, and another layer that reads the signs of the first layer's sums. A `size` of
    -1 stands for any.
    """
    rng = np.random.default_rng(0)
    chain = FloatModel()
    image = chain.input(1, abs(size), abs(size), 32, signature=(1, size, size, 32))
    x = chain.conv(chain.sign(image), sign_weights(rng, 32, 3, 3, 32))
    x = chain.elementwise("ADD", x, chain.const(bias))
    return chain.finish(chain.conv(chain.sign(x), sign_weights(rng, 8, 3, 3, 32)))


SAMPLE = np.random.default_rng(1).standard_normal((1, 6, 6, 32)).astype(np.float32)


@pytest.mark.usefixtures("library")
def test_after_signs_that_rounding_flipped_the_layers_are_held_to_the_source() -> None:
    """About one in twenty dot products is zero. The bias, which is -1e-7 or 1e-7, decides the sign of such a sum."""
    source, above = two_layers(-1e-7), litebnn.convert_tflite(two_layers(1e-7))
    found = verify_conversion(source, above, [SAMPLE])
    assert (found.samples, found.difference) == (1, 0)
    assert found.flipped[0].flipped > 10
    far = litebnn.convert_tflite(two_layers(2.0))
    with pytest.raises(litebnn.ConversionError, match='first layer that differs is "sign_'):
        verify_conversion(source, far, [SAMPLE])


@pytest.mark.usefixtures("library")
def test_models_of_images_of_any_size() -> None:
    source, above = two_layers(-1e-7, -1), litebnn.convert_tflite(two_layers(1e-7, -1), verify=True)
    rng = np.random.default_rng(0)
    images = [rng.standard_normal((1, *size, 32)).astype(np.float32) for size in ((7, 12), (9, 6), (7, 12))]
    comparison = SideBySide(source, above)
    for image in images:
        assert verify_conversion(above, above, [image]).difference == 0
        found = comparison.compare([[image]])
        assert found.difference == 0
        assert found.flipped[0].flipped > 10
    far = litebnn.convert_tflite(two_layers(2.0, -1))
    for inputs in (None, images[:1]):
        with pytest.raises(litebnn.ConversionError, match='first layer that differs is "sign_'):
            verify_conversion(source, far, inputs)
    with pytest.raises(ValueError, match=r"has shape \(1, 7, 12, 3\), the model takes \(1, -1, -1, 32\)"):
        verify_conversion(source, above, [images[0][..., :3]])


@pytest.mark.usefixtures("library")
def test_signs_that_rounding_flipped_hide_no_mistake_after_them() -> None:
    converted = litebnn.convert_tflite(two_layers(1e-7))
    broken = with_changed(converted, {"LceBconv2d"}, 2, lambda multipliers: multipliers * 1.01, at=-1)
    name = re.escape(read_model(two_layers(0)).graphs[0].outputs[0].name)
    with pytest.raises(litebnn.ConversionError, match=f'first layer that differs is "{name}": off by 1.0e-02'):
        verify_conversion(two_layers(-1e-7), broken, [SAMPLE])


@pytest.mark.usefixtures("library")
def test_signs_that_a_mistake_has_flipped_next_to_zero_are_not_by_rounding() -> None:
    """The test makes the weights of a float layer 1 % too large, which flips only signs of values next to the
    threshold."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.input(1, 6, 6, 32), np.eye(32, dtype=np.float32).reshape(32, 1, 1, 32))
    shifted = model.elementwise("ADD", x, model.const(0.1))
    source = model.finish(model.conv(model.sign(shifted), sign_weights(rng, 8, 3, 3, 32)))
    sample = np.where(rng.random((1, 6, 6, 32)) < 0.1, -0.0999, 100 * SAMPLE).astype(np.float32)
    broken = with_changed(litebnn.convert_tflite(source), {"CONV_2D"}, 1, lambda weights: weights * 1.01)
    with pytest.raises(litebnn.ConversionError, match=f'first layer that differs is "{x.name}": off by 1.0e-02'):
        verify_conversion(source, broken, [sample])


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("form", ["where_ge", "where_gt"])
@pytest.mark.parametrize("levels", ["signs", "ternary"])
def test_signs_of_zero_are_not_flipped_by_rounding(form: str, levels: str) -> None:
    """Sums of ±1 are exact, so rounding cannot flip their signs. If a threshold is wrong by one, sums of zero get the
    wrong sign."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.input(1, 6, 6, 32)
    x = model.sign(x) if levels == "signs" else LEVELS[levels](model, x)
    x = model.conv(x, sign_weights(rng, 32, 3, 3, 32, alpha=False))
    source = model.finish(model.conv(model.sign(x, form), sign_weights(rng, 8, 3, 3, 32)))
    by = 1 if form == "where_gt" else -1
    broken = with_changed(litebnn.convert_tflite(source), {"LceBconv2d"}, 4, lambda thresholds: thresholds + by)
    with pytest.raises(litebnn.ConversionError, match=r'first layer that differs is "select_v2_.* flipped, at '):
        verify_conversion(source, broken, [SAMPLE])


@pytest.mark.usefixtures("library")
def test_signs_of_zero_after_levels_may_be_flipped_by_rounding() -> None:
    """For a black image all activation levels are zero, so the source adds up zeros. The result computes the same sums
    from signs and a bias, with rounding, so they may miss zero."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = sums_of_tenths(model, rng, LEVELS["dorefa"](model, model.input(1, 6, 6, 32)), 32)
    source = model.finish(model.conv(model.sign(x), sign_weights(rng, 8, 3, 3, 32)))
    converted = litebnn.convert_tflite(source)
    found = verify_conversion(source, converted, [np.zeros_like(SAMPLE)])
    assert (found.flipped[0].flipped > 0, found.flipped[0].distance, found.difference) == (True, 0, 0)
    broken = with_changed(converted, {"LceBconv2d"}, 1, lambda filters: ~filters, at=-1)
    with pytest.raises(litebnn.ConversionError, match=r'first layer that differs is "conv_2d_.* off by 2'):
        verify_conversion(source, broken, [np.zeros_like(SAMPLE)])
    broken = with_changed(converted, {"LceBconv2d"}, 4, lambda thresholds: thresholds + 3)
    with pytest.raises(litebnn.ConversionError, match=r'first layer that differs is "sign_'):
        verify_conversion(source, broken, [SAMPLE])


@pytest.mark.usefixtures("library")
def test_without_samples_nothing_is_verified() -> None:
    source = two_layers(0)
    with pytest.raises(litebnn.ConversionError, match="cannot be verified: there are no samples"):
        verify_conversion(source, litebnn.convert_tflite(source), [SAMPLE[:0]])


@pytest.mark.usefixtures("library")
def test_signs_that_a_layer_reads_as_floats_may_be_flipped_by_rounding() -> None:
    """If a sum is exactly 0, the op SIGN gives 0. If rounding left the sum next to zero, SIGN gives 1 or -1."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = sums_of_tenths(model, rng, model.sign(model.input(1, 8, 8, 32)), 32)
    x = model.elementwise("ADD", x, model.const(np.float32(0.1) * rng.choice([-16, -8, 8, 16], 32)))
    shifted = model.elementwise("ADD", model.op("SIGN", [x], x.shape), model.const(0.1))
    signs = model.op("SIGN", [shifted], x.shape)
    source = model.finish(model.conv(signs, rng.standard_normal((8, 3, 3, 32)).astype(np.float32)))
    _, report = litebnn.convert_tflite(source, verify=True, return_report=True)
    assert [layer.binary for layer in report.layers] == [True, False]
    assert report.verification.samples == 2
    assert report.verification.flipped
    assert report.difference < 1e-5


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("is_read", [False, True])
def test_an_output_of_signs_may_be_flipped_by_rounding(is_read: bool) -> None:
    source, name, samples = sums_near_zero(32, 6, 0)
    model = read_model(source)
    graph = model.graphs[0]
    signs = next(op.output for op in graph.ops if op.output.name == name)
    graph.outputs = [*graph.outputs, signs] if is_read else [signs]
    model.signatures = None
    source = write_model(model)
    converted = litebnn.convert_tflite(source)
    found = verify_conversion(source, converted, [samples])
    assert found.flipped
    assert found.difference < 1e-5
    broken = with_changed(converted, {"LceBconv2d"}, 4, lambda thresholds: thresholds + 3)
    with pytest.raises(litebnn.ConversionError, match="first layer that differs"):
        verify_conversion(source, broken, [samples])


@pytest.mark.usefixtures("library")
def test_signs_of_several_rows_in_an_unknown_batch_may_be_flipped_by_rounding() -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.sign(model.input(1, 4, 32, signature=(-1, 4, 32)))
    weights = np.float32(0.1) * sign_weights(rng, 32, 32, alpha=False)
    x = model.op("FULLY_CONNECTED", [x, model.const(weights), None], (-1, 4, 32), keep_num_dims=True)
    x = model.elementwise("ADD", x, model.const(np.float32(0.1) * rng.choice([-16, -8, 8, 16], 32)))
    last = model.const(sign_weights(rng, 8, 32))
    source = model.finish(model.op("FULLY_CONNECTED", [model.sign(x), last, None], (-1, 4, 8), keep_num_dims=True))
    samples = rng.standard_normal((64, 4, 32)).astype(np.float32)
    assert verify_conversion(source, litebnn.convert_tflite(source), [samples]).flipped


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("is_binary", [False, True])
def test_after_levels_that_rounding_flipped_the_layers_are_held_to_the_source(is_binary: bool) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = sums_of_tenths(model, rng, model.sign(model.input(1, 6, 6, 32)), 64)
    few = LEVELS["ternary_rounded"](model, model.elementwise("ADD", x, model.const(0.1)))
    weights = sign_weights(rng, 8, 3, 3, 64) if is_binary else rng.standard_normal((8, 3, 3, 64))
    source = model.finish(model.conv(few, weights))
    samples = rng.standard_normal((4, 6, 6, 32)).astype(np.float32)
    found = verify_conversion(source, litebnn.convert_tflite(source), [samples])
    assert found.flipped
    assert found.difference < 1e-5


@pytest.mark.deep
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("channels_first", [False, True])
@pytest.mark.parametrize("channels", [32, 40])
def test_sums_that_are_zero_by_the_hundred_are_verified(channels: int, channels_first: bool) -> None:
    """The scales of an untrained batch norm are equal. Here all terms of a sum are ±0.1, so many sums are zero, apart
    from rounding."""
    for seed in range(8):
        source, sign, _ = sums_near_zero(channels, 8, seed, channels_first)
        _, report = litebnn.convert_tflite(source, verify=True, return_report=True)
        assert report.verification.samples == 2
        assert report.difference < 1e-6
        assert [divergence.layer for divergence in report.verification.flipped] == [sign]


@pytest.mark.usefixtures("library")
def test_the_report_says_which_signs_rounding_flipped() -> None:
    source, sign, samples = sums_near_zero(32, 8, seed=0)
    quiet = samples.copy()
    quiet[1:] = np.abs(samples[1:]) + 1  # its sums are far from zero
    _, report = litebnn.convert_tflite(source, verify=quiet, return_report=True)
    found = report.verification
    assert found.samples == len(samples)
    [divergence] = found.flipped
    assert divergence.by_rounding
    assert (divergence.layer, divergence.samples) == (sign, 1)
    [written] = report.to_dict()["verification"]["flipped"]
    assert written["flipped"] == divergence.flipped > 0
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
    assert report.verification.in_integers
    moved = f"verified, rounding to integers moves the outputs by {report.difference:.1e} of their root mean square"
    assert f"{moved} at most (0.5 passes; litebnn evaluate measures what that costs)" in report.summary()


@pytest.mark.usefixtures("library")
def test_the_summary_says_what_a_difference_is_of() -> None:
    source = GOLDEN / "residual.float.tflite"
    _, report = litebnn.convert_tflite(source, verify=True, return_report=True)
    assert not report.verification.in_integers
    assert report.summary().endswith(f"the outputs differ by {report.difference:.1e} of their largest value at most")


@pytest.mark.usefixtures("library")
def test_what_int8_loses_is_held_to_the_root_mean_square() -> None:
    sample = np.load(GOLDEN / "residual.npz")["input"][:1]
    source = (GOLDEN / "residual.float.tflite").read_bytes()
    converted = litebnn.convert_tflite(source, representative_dataset=[sample])
    broken = with_changed(converted, {"LceBconv2d"}, 2, lambda multipliers: multipliers * -1, at=-1)
    with pytest.raises(litebnn.ConversionError, match=r"off by .* of their root mean square, expected 0.5 at most"):
        verify_conversion(source, broken, [sample])
