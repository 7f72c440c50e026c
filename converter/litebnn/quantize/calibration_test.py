from typing import Any

import numpy as np
import pytest

from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.quantize.calibration import assume_range, observe_ranges
from tests.support.float_models import FloatModel, any_size_model, recurrent_model


def model_of_two_inputs() -> tuple[FloatModel, list[Tensor]]:
    model = FloatModel()
    a, b = model.input(1, 2), model.input(1, 2)
    total = model.elementwise("ADD", a, b)
    return model, [a, b, total, model.elementwise("RELU", total)]


@pytest.mark.usefixtures("library")
def test_ranges_are_those_of_all_samples_and_hold_zero() -> None:
    model, (a, b, total, relu) = model_of_two_inputs()
    relu.name = total.name  # a file may give one name to several tensors
    samples = [[np.array([first], np.float32), np.array([[-3, 0.5]], np.float32)] for first in ([1, 2], [4, 8])]
    runs: list[int] = []
    ranges = observe_ranges(model.model(relu), samples, runs.append)
    assert runs == [1, 2]
    assert ranges == {a: (0.0, 8.0), b: (-3.0, 0.5), total: (-2.0, 8.5), relu: (0.0, 8.5)}
    assert model.graph.outputs == [relu]


@pytest.mark.usefixtures("library")
def test_a_sample_may_be_a_dictionary_by_the_signatures_names() -> None:
    model, (a, b, total, relu) = model_of_two_inputs()
    built = model.model(relu)
    assert built.signatures is not None
    built.signatures[0].inputs = [("left", b), ("right", a)]
    sample = {"left": np.array([[-3, 0]], np.float32), "right": np.array([[1, 2]], np.float32)}
    assert observe_ranges(built, [sample]) == {
        a: (0.0, 2.0),
        b: (-3.0, 0.0),
        total: (-2.0, 2.0),
        relu: (0.0, 2.0),
    }
    with pytest.raises(ConversionError, match="representative_dataset: sample 0: inputs a given, expected right, left"):
        observe_ranges(built, [{"a": sample["left"]}])


@pytest.mark.usefixtures("library")
def test_no_sample_reaches_the_next_by_a_state() -> None:
    samples = np.random.default_rng(0).standard_normal((4, 1, 3, 32)).astype(np.float32)
    model = read_model(recurrent_model())
    found = [observe_ranges(model, order) for order in (samples, samples[::-1])]
    assert found[0] == found[1]


@pytest.mark.usefixtures("library")
def test_samples_of_several_sizes() -> None:
    model = read_model(any_size_model())
    rng = np.random.default_rng(0)
    samples = [rng.uniform(-2, 3, (1, *size, 3)).astype(np.float32) for size in ((9, 9), (20, 5))]
    ranges = observe_ranges(model, samples)
    expected = min(map(np.min, samples)), max(map(np.max, samples))
    assert ranges[model.graphs[0].inputs[0]] == expected


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("dataset", "reason"),
    [
        ([], "gave no sample"),
        (lambda: iter([]), "gave no sample"),
        (lambda: 3, " returns int, expected a function that yields samples"),
        ([[np.zeros((1, 2), np.float32)]], "sample 0: 1 inputs given, expected 2"),
        ([[np.zeros((1, 2), np.float32), np.full((1, 2), np.inf, np.float32)]], 'sample 0: tensor ".*" is not finite'),
    ],
)
def test_samples_that_do_not_fit(dataset: Any, reason: str) -> None:
    model, (*_, relu) = model_of_two_inputs()
    with pytest.raises(ConversionError, match=f"representative_dataset.*{reason}"):
        observe_ranges(model.model(relu), dataset)


def test_one_range_for_all() -> None:
    model, tensors = model_of_two_inputs()
    assert assume_range(model.model(tensors[-1]), (-3.0, 3.0)) == dict.fromkeys(tensors, (-3.0, 3.0))
