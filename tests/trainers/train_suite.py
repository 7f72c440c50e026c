"""The tests of an engine of examples/train, for the framework that the variable LITEBNN_FRAMEWORK names.

The suite runs where the framework is installed (test_train.py), with a folder of a few images in LITEBNN_IMAGES.
"""

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.train.engines import Engine, load_engine
from examples.train.images import open_images
from examples.train.options import Options

FRAMEWORK = os.environ["LITEBNN_FRAMEWORK"]
IMAGES = Path(os.environ["LITEBNN_IMAGES"])
OPTIONS = Options(
    data=IMAGES, output=Path("unused"), framework=FRAMEWORK, network="small", size=16, batch=16, validation_share=0.25,
    learning_rate=0.01, bop_gamma=0.1, bop_threshold=0.0, workers=1,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _float32() -> Iterator[None]:
    yield
    if FRAMEWORK == "keras":
        import keras

        keras.config.set_dtype_policy("float32")


def losses(engine: Engine, steps: range, batch: Any) -> list[float]:
    found = []
    for step in steps:
        engine.step(batch.images, batch.labels, 1.0, step)
        found.append(engine.loss())
    return found


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of a network that predicts class 2 for every image."""
    folder = tmp_path_factory.mktemp("teacher")
    if FRAMEWORK == "keras":
        import keras

        layers = [keras.layers.Flatten(), keras.layers.Dense(4, activation="softmax", kernel_initializer="zeros")]
        model = keras.Sequential([keras.Input((16, 16, 3)), *layers])
        model.layers[-1].bias.assign([0, 0, 8, 0])
        model.save(folder / "teacher.keras")
        return folder / "teacher.keras"
    import torch

    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, 4))
    module[1].weight.data.zero_()
    module[1].bias.data = torch.tensor([0.0, 0, 8, 0])
    program = torch.export.export(module, (torch.zeros(2, 3, 16, 16),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    torch.export.save(program, folder / "teacher.pt2")
    return folder / "teacher.pt2"


@pytest.mark.parametrize(
    "changes",
    [{}, {"precision": "float16", "optimizer": "bop"}],
    ids=["adam", "bop"],
)
def test_a_step_lowers_the_loss_and_continues_from_its_state(changes: dict[str, Any]) -> None:
    options = dataclasses.replace(OPTIONS, **changes)
    images = open_images(options)
    batch = next(images.training_batches(0, 1, slice(None)))
    engine = load_engine(options, 4)
    found = losses(engine, range(6), batch)
    assert found[-1] < found[0]
    state = {name: value.copy() for name, value in engine.state().items()}
    expected = losses(engine, range(6, 8), batch)
    other = load_engine(dataclasses.replace(options, seed=2), 4)
    assert any((value != state[name]).any() for name, value in other.state().items())
    other.options = options
    other.load_state(state)
    assert losses(other, range(6, 8), batch) == expected
    for name, value in engine.state().items():
        np.testing.assert_array_equal(other.state()[name], value, err_msg=name)
    if changes.get("optimizer") == "bop":
        binary = [value for value in state.values() if value.ndim == 4 and set(np.unique(value)) == {-1, 1}]
        assert len(binary) == 5


def test_a_state_of_another_network_is_refused() -> None:
    state = load_engine(OPTIONS, 4).state()
    with pytest.raises(ValueError, match="the checkpoint is of another network") as caught:
        load_engine(OPTIONS, 5).load_state(state)
    assert "\n" not in str(caught.value)


def test_a_network_learns_from_its_teacher(teacher: Path) -> None:
    options = dataclasses.replace(OPTIONS, teacher=teacher, teacher_share=1.0, temperature=2.0)
    batch = next(open_images(options).training_batches(0, 1, slice(None)))
    engine = load_engine(options, 4)
    found = losses(engine, range(25), batch)
    assert found[-1] < found[0] / 2
    # The images have four classes, but the teacher always predicts class 2, and the network must learn to do the same.
    assert (engine.predict(batch.images).argmax(axis=-1) == 2).mean() > 0.7


def linear(classes: int, size: int) -> Any:
    """A network without batch norms, which computes the same values in training and in evaluation mode."""
    if FRAMEWORK == "keras":
        import keras

        layers = [keras.layers.Flatten(), keras.layers.Dense(classes, activation="softmax")]
        return keras.Sequential([keras.Input((size, size, 3)), *layers])
    import torch

    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(size * size * 3, classes))


def log_softmax(scores: Any) -> Any:
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def test_a_loss_is_that_of_the_formula(teacher: Path) -> None:
    network = "tests.trainers.train_suite:linear"
    options = dataclasses.replace(OPTIONS, teacher=teacher, teacher_share=0.25, temperature=2.0, network=network)
    batch = next(open_images(options).training_batches(0, 1, slice(None)))
    engine = load_engine(options, 4)
    scores = engine.predict(batch.images).astype(np.float64)
    logits = np.log(scores) if FRAMEWORK == "keras" else scores
    taught, learned = log_softmax(np.array([[0.0, 0, 8, 0]]) / 2), log_softmax(logits / 2)
    distance = (np.exp(taught) * (taught - learned)).sum(axis=1).mean()
    plain = -log_softmax(logits)[np.arange(16), batch.labels].mean()
    assert losses(engine, range(1), batch) == [pytest.approx(0.75 * plain + 0.25 * 2**2 * distance, rel=1e-4)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": "nothing"}, '--network is "nothing", expected one of small, quicknet'),
        ({"network": "no.module:function"}, "--network no.module:function cannot be found"),
        ({"teacher": IMAGES}, "--teacher .* (cannot be loaded|is no file)"),
        ({"weights": "imagenet", "network": "small"}, 'the zoo has no network "small"'),
    ],
)
def test_mistakes_are_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        load_engine(dataclasses.replace(OPTIONS, **changes), 4)
    assert "\n" not in str(caught.value)


def test_the_accuracy_counts_each_image_once() -> None:
    engine, images = load_engine(OPTIONS, 4), open_images(dataclasses.replace(OPTIONS, validation_share=0.3))
    batches = list(images.validation_batches(slice(None)))
    assert [batch.count for batch in batches] == [16, 3]
    right = sum(
        int((engine.predict(batch.images).argmax(axis=-1) == batch.labels)[: batch.count].sum()) for batch in batches
    )
    assert engine.accuracy(batches) == pytest.approx(right / 19)
