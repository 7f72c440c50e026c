from pathlib import Path

import numpy as np
import pytest

from litebnn.evaluate.recipes import automatic_recipe, open_recipe
from litebnn.flatbuffer.metadata import ImageClassifier
from litebnn.zoo.preprocessing import CROP, MEAN, STD, resized_bicubic
from tests.needs import need

PIXELS = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)


def made(recipe, sample, shape) -> np.ndarray:
    return open_recipe(recipe).prepared()(sample, shape)


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        ("none", PIXELS),
        ("[-1,1]", PIXELS / 127.5 - 1),
        ("auto", PIXELS / 127.5 - 1),
        ("[0,1]", PIXELS / 255),
        ("10/2", (PIXELS.astype(float) - 10) / 2),
        ("1,2,3/4,5,6", (PIXELS - np.array([1.0, 2, 3])) / [4, 5, 6]),
    ],
)
def test_named_recipes(recipe: str, expected: np.ndarray) -> None:
    result = made(recipe, PIXELS, (4, 6, 3))
    assert result.dtype == np.float32
    assert np.allclose(result, expected, atol=1e-6)
    assert np.allclose(made(recipe, PIXELS, (3, 4, 6)), np.moveaxis(expected, -1, 0), atol=1e-6)


@pytest.mark.parametrize("recipe", ["none", "auto", "[0,1]", "10/2", "1,2,3/4,5,6", "zoo"])
@pytest.mark.parametrize("shape", [(4, 6, 3), (3, 4, 6)])
@pytest.mark.parametrize("sample", [PIXELS, PIXELS / 50.0 - 1], ids=["pixels", "floats"])
def test_pixels_become_the_levels_that_floats_would(recipe: str, shape: tuple[int, ...], sample: np.ndarray) -> None:
    quantized_floats = 0

    def levels(values: np.ndarray) -> np.ndarray:
        nonlocal quantized_floats
        quantized_floats += values.size
        return np.clip(np.round(values / 0.05) + 3, -128, 127).astype(np.int8)

    expected = levels(made(recipe, sample, shape))
    quantized_floats = 0
    result = open_recipe(recipe).prepared(levels)(sample, shape)
    assert result.dtype == np.int8
    assert np.array_equal(result, expected)
    if sample.dtype == np.uint8 and recipe != "zoo":
        assert quantized_floats in (256, 3 * 256)


@pytest.mark.parametrize("metadata", [ImageClassifier(mean=MEAN, std=STD), ImageClassifier()])
def test_an_input_without_a_scale_gets_plain_pixels(metadata: ImageClassifier) -> None:
    recipe = open_recipe(automatic_recipe([metadata]))
    assert np.array_equal(recipe.of_plain_pixels.prepared()(PIXELS, (4, 6, 3)), PIXELS)
    cropping = open_recipe(automatic_recipe([ImageClassifier(mean=MEAN, std=STD, crop=0.5)]))
    cropped = open_recipe("0/1/0.5").prepared()(PIXELS, (2, 2, 3))
    assert np.array_equal(cropping.of_plain_pixels.prepared()(PIXELS, (2, 2, 3)), cropped)
    assert open_recipe("zoo").of_plain_pixels == open_recipe("zoo")


def test_numbers_that_are_no_pixels_stay_as_they_are() -> None:
    sample = np.random.default_rng(0).standard_normal((4, 6, 3)).astype(np.float32)
    assert np.array_equal(made("auto", sample, (4, 6, 3)), sample)
    assert np.array_equal(made("auto", sample.ravel(), (4, 6, 3)), sample)


def test_colours_and_sizes() -> None:
    need("evaluate")
    grey = PIXELS[..., :1]
    assert np.array_equal(made("none", grey, (4, 6, 3)), grey.repeat(3, axis=-1))
    assert np.array_equal(made("none", grey[..., 0], (4, 6, 1)), grey)
    assert np.allclose(made("none", PIXELS, (4, 6, 1))[..., 0], PIXELS @ [0.299, 0.587, 0.114], atol=0.5)
    assert made("none", PIXELS, (8, 8, 3)).shape == (8, 8, 3)
    assert np.allclose(made("none", np.full((9, 5, 3), 7, np.uint8), (8, 8, 3)), 7)


@pytest.mark.parametrize(
    ("sample", "shape", "expected"),
    [
        ((4, 6, 3), (-1, -1, 3), (4, 6, 3)),
        ((4, 6), (-1, -1, 3), (4, 6, 3)),
        ((4, 6, 3), (3, -1, -1), (3, 4, 6)),
        ((4, 6, 3), (8, -1, 3), (8, 6, 3)),
        ((7,), (-1,), (7,)),
        ((7, 2), (-1, 2), (7, 2)),
    ],
)
def test_a_sample_keeps_a_size_that_the_model_leaves_open(
    sample: tuple[int, ...], shape: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert open_recipe("[0,1]").prepared()(np.zeros(sample, np.uint8), shape).shape == expected


def test_bicubic_as_tensorflow_1_does_it() -> None:
    """The expected numbers come from TensorFlow 2.21's tf.compat.v1.image.resize_bicubic."""
    rows = resized_bicubic(np.array([0, 10, 40, 90], np.uint8).reshape(1, 4, 1), 1, 6)[0, :, 0]
    assert np.allclose(rows, BICUBIC, atol=0.1)
    square = resized_bicubic(PIXELS, 2, 3)
    assert np.allclose(square, PIXELS[::2, ::2], atol=1e-4)


BICUBIC = [0.0, 3.522, 17.7713, 40.0, 75.9411, 95.5555]


def test_zoo_is_what_larq_zoo_does() -> None:
    """The expected numbers come from larq-zoo 2.4.0's preprocess_input."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (10, 13, 3), np.uint8).repeat(30, axis=0).repeat(30, axis=1)
    result = made("zoo", coarse, (224, 224, 3))
    for (y, x), expected in ZOO.items():
        assert np.allclose(result[y, x], expected, atol=5e-3), (y, x)


@pytest.mark.parametrize("recipe", ["zoo", "auto=zoo", "0/1/0.01"])
@pytest.mark.parametrize("size", [(1, 1), (1, 9), (9, 1), (2, 3)])
def test_a_crop_of_less_than_a_pixel_is_a_pixel(recipe: str, size: tuple[int, int]) -> None:
    pixel = np.array([7, 80, 200], np.uint8)
    single = made(recipe, pixel.reshape(1, 1, 3), (4, 6, 3))
    np.testing.assert_allclose(made(recipe, np.tile(pixel, (*size, 1)), (4, 6, 3)), single, rtol=1e-5, atol=1e-5)


ZOO = {
    (0, 0): (-1.861, 0.8179, -1.2293),
    (17, 200): (1.6495, 0.7829, 2.2217),
    (111, 57): (-0.3279, 1.7713, -0.3972),
    (223, 223): (-1.2788, 0.3627, 0.9668),
    (100, 31): (2.0777, -0.9328, -1.6824),
}


@pytest.mark.parametrize("recipe", ["zo", "1/0", "1", "a/b", "1,nan/2", "/", "1/2/3", "1,2,3/1,2"])
def test_what_is_no_recipe_is_one_line(recipe: str) -> None:
    with pytest.raises(ValueError, match="expected auto, none, ") as error:
        open_recipe(recipe)
    assert f"preprocess is {recipe}, " in str(error.value)


@pytest.mark.parametrize(
    ("recipe", "sample", "shape", "message"),
    [
        ("none", np.zeros((4, 4, 3), np.float32), (5, 5, 3), "a sample is [4, 4, 3], the model takes [5, 5, 3]"),
        ("none", np.zeros(7), (5,), "a sample is [7], the model takes [5]"),
        ("none", np.zeros((4, 4, 2)), (4, 4, 3), "images have 2 channels, the model takes 3"),
        ("1,2/3,4", PIXELS, (4, 6, 3), "preprocess has 2 numbers, the model takes [4, 6, 3]"),
        ("zoo", PIXELS, (4, 6, 1), "the recipe is for images of 3 channels"),
        ("zoo", PIXELS[:0], (4, 6, 3), "a sample is [0, 6, 3], expected an image"),
        ("none", PIXELS[:, :0, 0], (4, 6, 3), "a sample is [4, 0, 1], expected an image"),
        ("zoo", PIXELS, (72,), "the model takes [72], expected images"),
    ],
)
def test_what_does_not_fit_is_said(recipe: str, sample: np.ndarray, shape: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=".") as error:
        made(recipe, sample, shape)
    assert message in str(error.value)


def test_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_halving.py").write_text("def halve(image):\n    return image / 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert np.array_equal(made("my_halving:halve", PIXELS, (4, 6, 3)), PIXELS / 2)
    assert np.array_equal(made(lambda image: image * 2.0, PIXELS, (4, 6, 3)), PIXELS * 2.0)
    with pytest.raises(ValueError, match=r"my_halving:halve gives \[4, 6, 3\], the model takes \[2, 2, 3\]"):
        made("my_halving:halve", PIXELS, (2, 2, 3))
    before = open_recipe("my_halving:halve").fingerprint
    (tmp_path / "my_halving.py").write_text("def halve(image):\n    return image / 3\n")
    assert open_recipe("my_halving:halve").fingerprint != before


def test_auto_is_what_the_models_metadata_says() -> None:
    zoo = ImageClassifier(mean=MEAN, std=STD, crop=CROP)
    assert automatic_recipe([zoo, ImageClassifier(), zoo]) == "auto=zoo"
    assert automatic_recipe([ImageClassifier(mean=(127.5,), std=(127.5,))]) == "auto=[-1,1]"
    assert automatic_recipe([ImageClassifier(mean=(1, 2.5, 3), std=(4, 5, 6))]) == "auto=1,2.5,3/4,5,6"
    assert automatic_recipe([ImageClassifier(mean=(1.0,), std=(2.0,), crop=0.5)]) == "auto=1/2/0.5"
    assert automatic_recipe([]) == automatic_recipe([ImageClassifier()]) == "auto"
    with pytest.raises(ValueError, match="asks for different preprocessing, \\[-1,1\\] and zoo: name one"):
        automatic_recipe([zoo, ImageClassifier(mean=(127.5,), std=(127.5,))])


def test_auto_of_metadata_leaves_numbers_that_are_no_pixels() -> None:
    sample = np.random.default_rng(0).standard_normal((4, 6, 3)).astype(np.float32)
    assert np.array_equal(made("auto=zoo", sample, (4, 6, 3)), sample)
    assert np.array_equal(made("auto=zoo", PIXELS, (3, 4, 3)), made("zoo", PIXELS, (3, 4, 3)))


def test_a_crop_may_follow_mean_and_deviation() -> None:
    cropped = made("0/1/0.5", PIXELS, (2, 2, 3))
    assert np.array_equal(cropped, PIXELS[1:3, 2:4])
    for wrong in ("0/1/0", "0/1/2", "0/1/1,1", "0/1/1/1"):
        with pytest.raises(ValueError, match="MEAN/STD/CROP"):
            open_recipe(wrong)
