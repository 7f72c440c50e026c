from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.runtime.find import LIBRARY_VARIABLE
from tests.support.float_models import FloatModel, sign_weights, with_changed

SAMPLE = np.random.default_rng(1).standard_normal((1, 6, 6, 32)).astype(np.float32)


def lone_signs(layers: int = 1, *, zeros: int = 0) -> bytes:
    """Binary layers whose inputs are SIGN ops, with `zeros` weights of exactly 0 in each."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.input(1, 6, 6, 32)
    for _ in range(layers):
        weights = sign_weights(rng, 32, 3, 3, 32)
        weights.reshape(-1)[[*range(0, 1000 * zeros, 1000)]] = 0
        x = model.conv(model.elementwise("SIGN", x), weights, rng.standard_normal(32), same=True)
    return model.finish(x)


def with_zeros(count: int) -> np.ndarray[Any, Any]:
    sample = SAMPLE.copy()
    sample.reshape(-1)[:count] = 0
    return sample


@pytest.mark.usefixtures("library")
def test_inputs_that_are_exactly_0_are_what_the_option_says() -> None:
    _, report = litebnn.convert_tflite(lone_signs(2), assume_nonzero=True, verify=with_zeros(1), return_report=True)
    found = report.verification
    first, second = found.exact_zeros
    assert (first.sign, first.zeros, first.inputs) == ("sign_2", 1, SAMPLE.size)
    assert (second.zeros, first.are_common) == (0, False)
    assert found.difference < 1e-6 < 1e-3 < found.assumed
    assert "1 of 1,152 inputs of sign was exactly 0, which assume_nonzero takes as +1" in found.summary()
    assert '"sign_2": 1 of 1,152 inputs of sign was exactly 0' in report.remarks()
    assert report.to_dict()["verification"]["exact_zeros"][0]["zeros"] == 1


@pytest.mark.usefixtures("library")
def test_many_zeros_are_warned_of() -> None:
    samples = np.concatenate([SAMPLE, with_zeros(100)])
    with pytest.warns(UserWarning, match='"sign_2": 4.3% of its inputs are exactly 0, so assume_nonzero changes'):
        _, report = litebnn.convert_tflite(lone_signs(), assume_nonzero=True, verify=samples, return_report=True)
    assert report.verification.exact_zeros[0].are_common
    assert '; warning: "sign_2": 4.3% of its inputs are exactly 0' in report.summary()


@pytest.mark.usefixtures("library")
def test_weights_of_0_in_several_layers_are_verified() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, report = litebnn.convert_tflite(lone_signs(3, zeros=4), assume_nonzero=True, return_report=True)
    assert [layer.zero_weights for layer in report.layers] == [4, 4, 4]
    assert report.difference < 1e-5
    assert report.verification.assumed > 1e-3
    assert "what assume_nonzero assumes moves the source's outputs by" in report.summary()


@pytest.mark.usefixtures("library")
def test_a_mistake_is_an_error_whatever_is_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    source = lone_signs(2, zeros=1)
    converted = litebnn.convert_tflite(source, assume_nonzero=True, verify=False)
    broken = with_changed(converted, {"LceBconv2d"}, 4, lambda thresholds: thresholds + 5)
    monkeypatch.setattr("litebnn.convert.write_result", lambda model, source: broken)
    for options in ({}, {"verify": with_zeros(3)}):
        with pytest.raises(litebnn.ConversionError, match='the first layer that differs is "sign_') as caught:
            litebnn.convert_tflite(source, assume_nonzero=True, **options)
        assert ("(verify=False leaves out this check)" in str(caught.value)) == (not options)
    assert litebnn.convert_tflite(source, assume_nonzero=True, verify=False) == broken


@pytest.mark.usefixtures("library")
def test_the_samples_of_a_conversion_are_those_of_its_verification() -> None:
    samples = [with_zeros(3), SAMPLE]
    _, report = litebnn.convert_tflite(
        lone_signs(), assume_nonzero=True, representative_dataset=samples, return_report=True
    )
    [zeros] = report.verification.exact_zeros
    assert (report.verification.samples, zeros.zeros, zeros.inputs) == (2, 3, 2 * SAMPLE.size)
    assert report.verification.in_integers


def batches() -> Iterator[np.ndarray[Any, Any]]:
    yield from (np.concatenate([with_zeros(zeros), SAMPLE]) for zeros in (2, 5, 7))


@pytest.mark.usefixtures("library")
def test_a_data_set_is_verified_as_a_whole_only_on_request() -> None:
    images = litebnn.DataSet(batches, "none", workers=0)
    for verify, samples, zeros in ((None, 2, 2), (True, 6, 14)):
        _, report = litebnn.convert_tflite(
            lone_signs(), assume_nonzero=True, representative_dataset=images, verify=verify, return_report=True
        )
        assert report.verification.samples == samples
        assert report.verification.exact_zeros[0].zeros == zeros


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    "options",
    [
        {"verify": False, "assume_nonzero": True},
        {"assume_nonzero": False},
        {"assume_nonzero": True, "experimental_default_int8_range": (-3, 3)},
    ],
)
def test_other_conversions_are_not_verified(options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, report = litebnn.convert_tflite(lone_signs(), **options, return_report=True)
    assert report.verification is None


def test_a_model_that_cannot_be_run_is_converted_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIBRARY_VARIABLE, "nowhere.so")
    with pytest.warns(UserWarning, match="the conversion is not verified: verify needs a runtime and litebnn's lib"):
        _, report = litebnn.convert_tflite(lone_signs(), assume_nonzero=True, return_report=True)
    assert report.layers[0].binary
    assert report.verification is None
    with pytest.raises(litebnn.ConversionError, match="verify needs a runtime and litebnn's library"):
        litebnn.convert_tflite(lone_signs(), assume_nonzero=True, verify=True)
