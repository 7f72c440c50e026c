"""Tests files from other training frameworks, one for each way of writing a sign. All their hidden layers must become
binary.

The scripts in `tests/golden_trainers/` wrote these files; docs/idioms.md has the table of results.
"""

from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from tests.support.float_models import op_names

FOLDER = Path(__file__).parents[1] / "golden_trainers"
FILES = sorted(FOLDER.glob("*.tflite"))
# The output types of the binary layers of a network, in their order: bits or FLOAT32. OUTPUTS lists the networks whose
# types are not those of BITS.
BITS = ["bits", "FLOAT32"]
OUTPUTS = {
    "concatenation": ["FLOAT32", "FLOAT32"],
    "flatten": ["bits", "bits", "FLOAT32"],
    "flatten_norm": ["FLOAT32", "FLOAT32"],
    "react_blocks": ["FLOAT32", "FLOAT32"],
    "rounded_before_clamp": ["FLOAT32", "FLOAT32"],  # falling signs behind a pool
    "rounded_pact": ["FLOAT32", "FLOAT32"],
    "strides": ["FLOAT32", "FLOAT32"],
}
# The number of TRANSPOSE ops that remain after conversion: one for the input, and one for an output if it is an image.
TRANSPOSES = {"channels_last": 0, "linear": 0, "conv1d": 2}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_spelling_is_binary_from_layer_to_layer(path: Path, library: None) -> None:
    name = path.stem
    assume_nonzero = name.startswith("lone_")
    source = path.read_bytes()
    converted, report = litebnn.convert_tflite(source, assume_nonzero=assume_nonzero, return_report=True)
    assert [layer.output for layer in report.layers if layer.binary] == OUTPUTS.get(name, BITS)
    assert any("assume_nonzero" in warning for warning in report.warnings) == assume_nonzero
    assert op_names(converted).count("TRANSPOSE") == TRANSPOSES.get(name, not name.startswith("keras_"))
    _assert_close(source, converted)


@pytest.mark.parametrize("path", [p for p in FILES if p.stem.startswith("lone_")], ids=lambda path: path.stem)
def test_a_lone_sign_stays_float_unless_zero_does_not_matter(path: Path) -> None:
    with pytest.warns(UserWarning, match="no binary layer"):
        assert litebnn.convert_tflite(path) == path.read_bytes()


def _assert_close(source: bytes, converted: bytes) -> None:
    shape = read_model(source).graphs[0].inputs[0].shape
    float_model, binary_model = litebnn.Interpreter(source), litebnn.Interpreter(converted)
    rng = np.random.default_rng(0)
    for _ in range(4):
        x = rng.standard_normal(shape).astype(np.float32)
        np.testing.assert_allclose(binary_model.predict(x), float_model.predict(x), rtol=1e-4, atol=1e-4)
