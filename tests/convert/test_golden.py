"""Converts the float files of the golden models, and compares the results with Keras and with Larq Compute Engine's
files."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.errors import ConversionError
from litebnn.report.macs import count_macs
from litebnn.verify.verification import difference

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = sorted(json.loads((GOLDEN / "index.json").read_text()))
NOT_BINARY = ("depthwise", "ste_tern_not_binary")
MOST_BYTES_MORE = 640

pytestmark = pytest.mark.filterwarnings("ignore:no binary layer")

# The name of a golden model with an int8 sum. TFLite's reference kernel rounds such a sum twice, so the sign of a sum
# near 0 may differ from that of Keras's float sum.
INT8_SUM = "int8_qat"


def converted(name: str) -> bytes:
    return bytes(litebnn.convert_tflite(GOLDEN / f"{name}.float.tflite"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("library")
def test_outputs_are_those_of_keras(name: str) -> None:
    golden = np.load(GOLDEN / f"{name}.npz")
    actual = litebnn.Interpreter(converted(name)).predict(golden["input"])
    if name == INT8_SUM:
        np.testing.assert_array_equal(actual, golden["lce"])
        return
    assert difference(golden["keras"], actual) <= 1e-4
    np.testing.assert_array_equal(actual.argmax(axis=-1), golden["keras"].argmax(axis=-1))


@pytest.mark.parametrize("name", NAMES)
def test_no_less_is_binary_than_in_the_peers_file(name: str) -> None:
    peer = (GOLDEN / f"{name}.lce.tflite").read_bytes()
    ours = converted(name)
    assert count_macs(ours).binary >= count_macs(peer).binary
    assert len(ours) <= len(peer) + MOST_BYTES_MORE


@pytest.mark.parametrize("name", NOT_BINARY)
def test_a_model_without_a_binary_layer_stays_as_it_is(name: str) -> None:
    source = (GOLDEN / f"{name}.float.tflite").read_bytes()
    with pytest.warns(UserWarning, match="no binary layer"):
        result, report = litebnn.convert_tflite(source, return_report=True)
    assert result == source
    assert all(layer.reasons for layer in report.layers)


@pytest.mark.parametrize("name", NAMES)
def test_a_converted_file_passes_through(name: str) -> None:
    peer = (GOLDEN / f"{name}.lce.tflite").read_bytes()
    if b"Lce" in peer:
        result, report = litebnn.convert_tflite(peer, return_report=True)
        assert result == peer
        assert report.status == "already converted"


def test_a_dense_layer_becomes_binary_and_small() -> None:
    assert len(converted("quant_dense")) <= 12_000


@pytest.mark.parametrize(
    ("name", "ops"),
    [
        ("conv_pool_bn_conv", ["LceQuantize", "LceBconv2d", "LceBMaxPool2d", "LceBconv2d"]),
        ("bitpacked_chain", ["LceQuantize", "LceBconv2d", "LceBconv2d", "LceBconv2d"]),
        ("same_zero_relu_bn_s2", ["LceQuantize", "LceBconv2d"]),
        ("int8_qat", ["QUANTIZE", "LceQuantize", "LceBconv2d", "ADD", "LceQuantize", "LceBconv2d", "DEQUANTIZE"]),
        ("where_quantizer", ["SUB", "LceQuantize", "LceBconv2d"]),
        ("sign_reused", ["LceQuantize", "LceDequantize", "LceBconv2d", "CONCATENATION"]),
    ],
)
def test_layers_stay_in_bits(name: str, ops: list[str]) -> None:
    from tests.support.float_models import op_names

    assert op_names(converted(name)) == ops


@pytest.mark.filterwarnings("ignore:experimental_default_int8_range makes")
@pytest.mark.parametrize(
    "options",
    [
        {"representative_dataset": np.zeros((1, 10, 12, 64), np.float32)},
        {"low_bit_weights": "int4", "dynamic_range": True},
        {"experimental_default_int8_range": (-1, 1)},
        {"inference_output_type": "int8"},
        {"assume_nonzero": True},
        {"larq_compatible": True, "verify": True},
    ],
)
def test_what_is_converted_already_cannot_be_converted_otherwise(options: dict[str, Any]) -> None:
    converted = litebnn.convert_tflite(GOLDEN / "1x1.float.tflite")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert litebnn.convert_tflite(converted) == converted
    refused = [name for name in options if name != "verify"]
    reason = f"^{', '.join(refused)}: the model is converted already, expected its float model$"
    with pytest.raises(ConversionError, match=reason):
        litebnn.convert_tflite(converted, **options)
