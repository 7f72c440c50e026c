"""Tests the parts of examples/train that both frameworks share."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.train import checkpoint
from examples.train.__main__ import main
from examples.train.images import Images, crop_box, open_images
from examples.train.options import Options, parse
from examples.train.recipe import factor
from tests.needs import need

STATE = {"network/0": np.arange(4.0), "optimizer/0": np.array(3)}


def options_of(data: Path, **changes: Any) -> Options:
    return Options(**{"data": data, "output": data / "out", "size": 8, "batch": 4, "workers": 1, **changes})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with 13 images of three classes. All color values of image i are i."""
    need("evaluate")
    from PIL import Image

    for number in range(13):
        path = tmp_path / "images" / "abc"[number % 3] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (10, 9), (number, number, number)).save(path)
    return tmp_path / "images"


def test_the_rates_rise_and_fall() -> None:
    factors = [factor(step, 100, 0.1) for step in range(100)]
    assert factors[:10] == pytest.approx(np.arange(1, 11) / 10)
    assert factors[9:] == sorted(factors[9:], reverse=True)
    assert factors[55] == pytest.approx(0.5)
    assert 0 < factors[-1] < 1e-3
    assert [factor(step, 2, 0.0) for step in range(2)] == [1.0, 0.5]


def test_crops_are_parts_of_the_image_of_all_sizes() -> None:
    random = np.random.default_rng(0)
    for height, width in ((100, 80), (1, 1), (1, 50), (60, 2)):
        boxes = [crop_box(random, height, width, 0.2) for _ in range(200)]
        for top, left, box_height, box_width in boxes:
            assert top >= 0
            assert left >= 0
            assert 0 < box_height <= height - top
            assert 0 < box_width <= width - left
        if height == 100:
            shares = np.array([h * w / 8000 for _, _, h, w in boxes])
            ratios = np.array([w / h for _, _, h, w in boxes])
            assert 0.19 < shares.min() < 0.3
            assert 0.85 < shares.max() <= 1
            assert ratios.min() > 0.73
            assert ratios.max() < 1.37
            assert len({box[:2] for box in boxes}) > 100


def batches(images: Images, first: int, last: int, part: slice) -> list[Any]:
    return list(images.training_batches(first, last, part))


def test_steps_do_not_depend_on_where_a_training_starts_or_on_the_number_of_processes(folder: Path) -> None:
    images = open_images(options_of(folder, validation_share=0.2))
    assert (len(images.training), len(images.validation), images.steps_of_an_epoch) == (10, 3, 2)
    assert not {*images.training} & {*images.validation}
    whole = batches(images, 0, 6, slice(None))
    for step, batch in enumerate(batches(images, 3, 6, slice(None)), 3):
        np.testing.assert_array_equal(batch.images, whole[step].images)
        np.testing.assert_array_equal(batch.labels, whole[step].labels)
    halves = [batches(images, 0, 6, slice(part, None, 2)) for part in range(2)]
    for step, batch in enumerate(whole):
        for part in range(2):
            np.testing.assert_array_equal(halves[part][step].images, batch.images[part::2])
    # In one epoch no image occurs twice, and the next epoch has another order.
    orders = [np.concatenate([batch.labels for batch in whole[start : start + 2]]) for start in (0, 2, 4)]
    colours = [batch.images[:, 0, 0, 0] for batch in whole]
    assert len(np.unique(np.concatenate(colours[:2]))) == 8
    assert not np.array_equal(orders[0], orders[1]) or not np.array_equal(colours[0], colours[2])


def test_another_seed_is_another_order(folder: Path) -> None:
    one, other = (open_images(options_of(folder, seed=seed, validation_share=0.0)) for seed in (1, 2))
    assert one.training == other.training
    first, second = (batches(images, 0, 1, slice(None))[0].images for images in (one, other))
    assert not np.array_equal(first, second)


def test_validation_has_each_image_once(folder: Path) -> None:
    images = open_images(options_of(folder, validation=folder))
    found = list(images.validation_batches(slice(None)))
    assert [batch.count for batch in found] == [4, 4, 4, 1]
    assert [len(batch.images) for batch in found] == [4, 4, 4, 4]
    assert [int(batch.weights.sum()) for batch in found] == [4, 4, 4, 1]
    labels = np.concatenate([batch.labels[: batch.count] for batch in found])
    assert sorted(labels) == sorted(number % 3 for number in range(13))


def test_a_checkpoint_comes_back_and_belongs_to_its_options(tmp_path: Path) -> None:
    options = options_of(tmp_path)
    assert checkpoint.load(tmp_path, options.computation()) is None
    checkpoint.save(tmp_path, 7, options.computation(), STATE)
    loaded = checkpoint.load(tmp_path, dataclasses.replace(options, workers=3, log_every=2).computation())
    assert loaded is not None
    assert loaded[0] == 7
    assert loaded[1].keys() == STATE.keys()
    np.testing.assert_array_equal(loaded[1]["network/0"], STATE["network/0"])
    with pytest.raises(ValueError, match="is of another training: --batch was 4 and is 5; give the same"):
        checkpoint.load(tmp_path, dataclasses.replace(options, batch=5).computation())
    path = tmp_path / checkpoint.NAME
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match="is no checkpoint of a training"):
        checkpoint.load(tmp_path, options.computation())


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--batch=0", "--batch is 0, expected 1 or more"),
        ("--crop=0", "--crop is 0.0, expected more than 0 and at most 1"),
        ("--warmup=1", "--warmup is 1.0, expected at least 0 and less than 1"),
        ("--learning-rate=-1", "--learning-rate is -1.0, expected a positive number"),
        ("--teacher-share=2", "--teacher-share is 2.0, expected a number from 0 to 1"),
        ("--validation-share=nan", "--validation-share is nan"),
    ],
)
def test_wrong_options_are_named(argument: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--data=images", "--output=out", argument])
    assert message in capsys.readouterr().err


def test_wrong_images_are_one_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    other = tmp_path / "other" / "d" / "0.png"
    other.parent.mkdir(parents=True)
    other.write_bytes((folder / "a" / "0.png").read_bytes())
    for arguments, message in (
        ([f"--data={tmp_path / 'empty'}"], "has no images in class folders"),
        ([f"--data={tmp_path / 'nothing'}"], "is no file or folder"),
        ([f"--data={folder}"], "has 12 images to train on, fewer than --batch 256"),
        ([f"--data={folder}", f"--validation={tmp_path / 'other'}"], "has other classes than"),
    ):
        assert main([*arguments, f"--output={tmp_path / 'out'}"]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line
    (folder / "a" / "0.png").write_bytes(b"text")
    images = open_images(options_of(folder, validation_share=0.0, batch=13))
    with pytest.raises(ValueError, match="0.png cannot be read: it is no image"):
        batches(images, 0, 1, slice(None))
