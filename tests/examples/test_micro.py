"""Tests the example for microcontrollers: its gestures, and the network that recognizes them."""

import numpy as np
import pytest

from examples.micro.__main__ import NETWORKS, samples_header
from examples.micro.gestures.data import NAMES, made_gestures
from litebnn import Interpreter


def test_equal_seeds_make_equal_gestures() -> None:
    one, again, other = (made_gestures(8, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.traces, again.traces)
    assert not np.array_equal(one.traces, other.traces)
    assert one.traces.shape == (8, 64, 3, 1)
    assert one.labels.tolist() == [0, 1, 2, 3] * 2
    # The hand rests at first, so the sensor measures only gravity, which is 32 in the sensor's int8 values.
    assert np.linalg.norm(one.traces[:, 0, :, 0].astype(float), axis=1) == pytest.approx(32, abs=12)


@pytest.mark.usefixtures("library")
def test_the_network_recognises_made_gestures() -> None:
    gestures = made_gestures(200, seed=4)
    network = Interpreter(NETWORKS["gestures"].model.read_bytes())
    found = network.predict(gestures.traces).argmax(axis=1)
    assert np.mean(found == gestures.labels) >= 0.95


@pytest.mark.long
@pytest.mark.needs("keras")
def test_training_reaches_what_the_file_reaches() -> None:
    from examples.micro.gestures.train import convert, train

    training, test = made_gestures(2000, seed=1), made_gestures(200, seed=4)
    network = Interpreter(convert(train(training, epochs=8), training))
    assert np.mean(network.predict(test.traces).argmax(axis=1) == test.labels) >= 0.85


def test_a_network_for_other_inputs_is_refused() -> None:
    traces = made_gestures(len(NAMES), seed=3).traces
    header = "enum { NETWORK_INPUT_SIZE = 192,\nvoid network_run(const int8_t* input, float* output);"
    assert "typedef int8_t Input;\ntypedef float Output;\n" in samples_header(traces, header)
    for other in (header.replace("const int8_t", "const float"), header.replace("192", "191")):
        with pytest.raises(ValueError, match="expected one input of 192 int8_t"):
            samples_header(traces, other)
