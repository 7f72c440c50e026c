"""Tests what Interpreter and CompiledModel have in common: state, threads, and inputs of any size."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.runtime.predictor import Predictor
from tests.needs import need
from tests.support.float_models import FloatModel, any_size_model, counting_model, recurrent_model, sign_weights

pytestmark = pytest.mark.usefixtures("library")


def interpreter(runtime: str) -> Callable[..., Predictor]:
    def load(model: bytes, **options: Any) -> Predictor:
        need(runtime)
        return litebnn.Interpreter(model, runtime=runtime, **options)

    return load


def compiled(model: bytes, **options: Any) -> Predictor:
    need("compiled-model")
    return litebnn.CompiledModel(model, **options)


INTERPRETERS = [pytest.param(interpreter(name), id=name) for name in ("ai-edge-litert", "tflite-runtime")]
PREDICTORS = [*INTERPRETERS, pytest.param(compiled, id="compiled-model")]


def steps(count: int) -> bytes:
    """An LSTM alone, from [1, count, 8] to [1, count, 4]."""
    model = FloatModel()
    return model.finish(model.lstm(model.input(1, count, 8), 4))


@pytest.mark.parametrize("load", INTERPRETERS)
def test_each_sample_begins_with_a_zero_state(load: Callable[..., Predictor]) -> None:
    model = litebnn.convert_tflite(recurrent_model())
    samples = np.random.default_rng(0).standard_normal((4, 3, 32)).astype(np.float32)
    alone = np.concatenate([load(model).predict(sample[None]) for sample in samples])
    shared = load(model)
    for _ in range(2):
        np.testing.assert_array_equal(shared.predict(samples), alone)


@pytest.mark.parametrize("load", INTERPRETERS)
def test_a_stream_of_steps_is_one_sequence(load: Callable[..., Predictor]) -> None:
    sequence = np.random.default_rng(0).standard_normal((1, 6, 8)).astype(np.float32)
    whole = load(steps(6)).predict(sequence)
    stream = load(steps(1), keep_state=True)
    for _ in range(2):
        found = [stream.predict(sequence[:, :2].reshape(2, 1, 8)), stream.predict(sequence[:, 2:].reshape(4, 1, 8))]
        np.testing.assert_allclose(np.concatenate(found).reshape(1, 6, 4), whole, atol=1e-6)
        stream.reset_state()


@pytest.mark.parametrize("load", PREDICTORS)
def test_variables_that_are_resources(load: Callable[..., Predictor]) -> None:
    """A reset gives them the values of the model's initialization, which need not be zeros."""
    zeros = np.zeros((3, 4), np.float32)
    model = load(counting_model())
    for _ in range(2):
        assert model.predict(zeros)[:, 0].tolist() == [1, 1, 1]
    stream = load(counting_model(), keep_state=True)
    assert stream.predict(zeros)[:, 0].tolist() == [1, 2, 3]
    assert stream.predict(zeros)[:, 0].tolist() == [4, 5, 6]
    stream.reset_state()
    assert stream.predict(zeros)[:, 0].tolist() == [1, 2, 3]


def test_a_compiled_model_refuses_a_state_that_litert_does_not_know() -> None:
    with pytest.raises(ValueError, match="use litebnn.Interpreter: it keeps its state in the tensor state_"):
        compiled(recurrent_model())


def test_a_verification_of_several_samples_compares_each_alone() -> None:
    source = recurrent_model()
    samples = np.random.default_rng(0).standard_normal((5, 3, 32)).astype(np.float32)
    _, report = litebnn.convert_tflite(source, verify=samples, return_report=True)
    assert report.verification.samples == 5
    assert report.verification.difference < 1e-6


@pytest.mark.parametrize("load", [*INTERPRETERS[:1], PREDICTORS[-1]])
def test_eight_threads_share_a_model(load: Callable[..., Predictor]) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.sign(model.input(1, 8, 8, 32))
    shared = load(litebnn.convert_tflite(model.finish(model.conv(x, sign_weights(rng, 32, 3, 3, 32)))))
    inputs = rng.standard_normal((8, 2, 8, 8, 32)).astype(np.float32)
    expected = [shared.predict(x) for x in inputs]
    wrong: list[Any] = []

    def run(index: int) -> None:
        try:
            wrong.extend(1 for _ in range(50) if not np.array_equal(shared.predict(inputs[index]), expected[index]))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("load", PREDICTORS)
def test_inputs_of_any_height_and_width(load: Callable[..., Predictor]) -> None:
    rng = np.random.default_rng(0)
    source = any_size_model(stride=2)
    model, floats = load(litebnn.convert_tflite(source)), litebnn.Interpreter(source)
    assert model.input_shapes == [(1, -1, -1, 3)]
    assert model.output_shapes == [(1, -1, -1, 8)]
    for height, width in ((9, 14), (20, 7), (9, 14), (3, 3)):
        images = rng.standard_normal((2, height, width, 3)).astype(np.float32)
        found = model.predict(images)
        assert found.shape == (2, *(-(-((size - 3) // 2 + 1) // 2) for size in (height, width)), 8)
        np.testing.assert_allclose(found, floats.predict(images), atol=1e-4)


@settings(max_examples=12)
@given(height=st.integers(3, 40), width=st.integers(3, 40), channels=st.sampled_from([32, 40]), known=st.booleans())
def test_any_size_is_the_size_of_a_fixed_model(height: int, width: int, channels: int, known: bool) -> None:
    images = np.random.default_rng(1).standard_normal((1, height, width, 3)).astype(np.float32)
    fixed, open_ = (
        litebnn.Interpreter(litebnn.convert_tflite(any_size_model(channels, 1, sizes)))
        for sizes in ((height, width), (height, -1) if known else (-1, -1))
    )
    np.testing.assert_array_equal(open_.predict(images), fixed.predict(images))


@pytest.mark.parametrize("load", PREDICTORS)
def test_a_size_that_does_not_fit_is_one_line(load: Callable[..., Predictor]) -> None:
    model = load(litebnn.convert_tflite(any_size_model()))
    for shape in ((1, 9, 9, 4), (9, 9, 3), (1, 0, 9, 3)):
        with pytest.raises(ValueError, match=r"^input input_1 has shape .*, expected \(1, -1, -1, 3\) [^\n]*-1$"):
            model.predict(np.zeros(shape, np.float32))
    with pytest.raises(ValueError, match="^the model [^\n]*$"):
        model.predict(np.zeros((1, 1, 1, 3), np.float32))
    assert model.predict(np.zeros((1, 9, 9, 3), np.float32)).shape == (1, 4, 4, 8)
