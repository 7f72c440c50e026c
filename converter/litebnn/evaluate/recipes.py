"""Preprocessing recipes, which turn a data set's samples into a model's input. A recipe is chosen by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from litebnn.errors import check_type, shown
from litebnn.evaluate.batches import Array
from litebnn.evaluate.extras import failures_named, fingerprint_of, import_function, is_function_name, name_of
from litebnn.evaluate.images import resize, with_channels
from litebnn.flatbuffer.metadata import ImageClassifier
from litebnn.runtime.predictor import fits
from litebnn.zoo.preprocessing import CROP, MEAN, STD, center_crop, resized_bicubic

# The prefix of recipes that preprocess uint8 pixels, and leave samples of other types unchanged.
_AUTO = "auto="
NAMES = ("auto", "none", "[-1,1]", "[0,1]", "zoo")
_KNOWN: dict[str, tuple[Any, ...]] = {
    "auto": (127.5, 127.5),
    "none": (),
    "[-1,1]": (127.5, 127.5),
    "[0,1]": (0.0, 255.0),
    "zoo": (MEAN, STD, CROP),
}


@dataclass(frozen=True)
class Recipe:
    """A way of preprocessing the samples of a data set for a model."""

    # The text that the user gave for the recipe. Another process can make the same recipe from this text.
    name: str
    # A folder in which Python looks for the module of a user's function, after its own search path.
    folder: str = ""
    # A text that identifies the recipe. For a function, it also identifies the version of the function.
    fingerprint: str = ""
    function: Callable[[Array], Any] | None = field(default=None, compare=False)

    @property
    def of_plain_pixels(self) -> Recipe:
        """The recipe for a quantized input without a scale. The recipe "auto" then crops and resizes, but does not
        normalize.
        """
        if self.name != "auto" and not self.name.startswith(_AUTO):
            return self
        numbers = _numbers(self.name.removeprefix(_AUTO))
        return replace(self, name="/".join([f"{_AUTO}0/1", *map(repr, numbers[2:])]))

    def prepared(self, levels: Callable[[Array], Array] | None = None) -> Callable[[Array, tuple[int, ...]], Array]:
        """A function of a sample and of the model's input shape (without the batch) that preprocesses the sample.

        For a size of -1, which the model leaves open, the sample keeps its own size.

        The function returns float32. If there is a function `levels`, which quantizes numbers for the model element by
        element, it is applied to these values. Pixels become levels by a table of 256 entries, without an array of
        floats, unless the recipe resizes them bicubically. A user's function returns what it likes, and `levels` does
        not apply to its result.

        Raises:
            ValueError: the user's function does not exist.
        """
        if self.function is not None:
            return lambda sample, shape: _by_function(self.function, self.name, sample, shape)
        if is_function_name(self.name):
            function = import_function(self.name, self.folder, self.fingerprint)
            return lambda sample, shape: _by_function(function, self.name, sample, shape)
        numbers = _numbers(self.name.removeprefix(_AUTO))
        unchanged = () if self.name == "auto" or self.name.startswith(_AUTO) else numbers

        def scaled(sample: Array, shape: tuple[int, ...]) -> Array:
            chosen = numbers if sample.dtype == np.uint8 else unchanged
            shape = _closed(shape, sample)
            if len(chosen) < 3:
                return _scaled(sample, shape, levels, *chosen)
            values = _cropped(sample, shape, *chosen)
            return values if levels is None else levels(values)

        return scaled


def open_recipe(preprocess: str | Callable[[Array], Any], folder: str = "") -> Recipe:
    """Parses a recipe.

    Args:
        preprocess: one of NAMES; MEAN/STD, each a number or numbers for the channels, separated by commas; or a
            function, or its name module:function. MEAN/STD/CROP crops this share of the shorter side, and resizes
            bicubically. The function takes one sample as the data set holds it (images: uint8 [height, width,
            channels]) and returns the model's input.
        folder: a folder of modules, which Python searches after its own search path.

    Raises:
        ValueError: `preprocess` is none of these.
        TypeError: `preprocess` is neither a text nor a function.

    Example:
        >>> open_recipe("127.5/127.5").prepared()(np.full((1, 1, 1), 255, np.uint8), (1, 1, 1))
        array([[[1.]]], dtype=float32)
    """
    if callable(preprocess):
        return Recipe(name_of(preprocess), folder, fingerprint_of(preprocess), preprocess)
    check_type("preprocess", preprocess, "a text or a function", str)
    if is_function_name(preprocess):
        return Recipe(preprocess, folder, fingerprint_of(import_function(preprocess, folder)))
    _numbers(preprocess.removeprefix(_AUTO))
    return Recipe(preprocess, folder, preprocess)


def range_of_pixels(name: str) -> tuple[float, float] | None:
    """The (min, max) to which a recipe maps the pixels 0 to 255; None for "auto", a function and other texts.

    Example:
        >>> range_of_pixels("[-1,1]")
        (-1.0, 1.0)
    """
    try:
        numbers = () if name == "auto" else _numbers(name)
    except ValueError:
        return None
    if not numbers:
        return (0.0, 255.0) if name == "none" else None
    ends = [(np.float32(pixel) - np.float32(numbers[0])) / np.float32(numbers[1]) for pixel in (0, 255)]
    return float(np.min(ends)), float(np.max(ends))


def automatic_recipe(found: Iterable[ImageClassifier]) -> str:
    """The recipe that "auto" stands for if models have this metadata, as a text for `open_recipe`.

    Raises:
        ValueError: the models ask for different preprocessing.
    """
    texts = sorted({_text(metadata) for metadata in found if metadata.mean})
    if len(texts) > 1:
        raise ValueError(f"the models' metadata asks for different preprocessing, {' and '.join(texts)}: name one")
    return f"{_AUTO}{texts[0]}" if texts else "auto"


def _text(metadata: ImageClassifier) -> str:
    sides = (
        ",".join(np.format_float_positional(np.float32(v), trim="-") for v in side)
        for side in (metadata.mean or (0.0,), metadata.std or (1.0,))
    )
    text = "/".join([*sides, *([] if metadata.crop is None else [repr(metadata.crop)])])
    return next((name for name in NAMES[1:] if _are_equal(_numbers(name), _numbers(text))), text)


def _numbers(name: str) -> tuple[Any, ...]:
    """The mean to subtract, the deviation to divide by, and the share to crop. A value that the recipe does not name
    is missing.
    """
    if name in _KNOWN:
        return _KNOWN[name]
    try:
        mean, std, *crop = (np.array([float(part) for part in side.split(",")], np.float32) for side in name.split("/"))
        if not (np.isfinite(mean).all() and np.isfinite(std).all() and std.all()) or len(crop) > 1:
            raise ValueError
        if len({mean.size, std.size} - {1}) > 1:
            raise ValueError
        if crop and not (crop[0].size == 1 and 0 < crop[0][0] <= 1):
            raise ValueError
    except ValueError:
        expected = f"{', '.join(NAMES)}, MEAN/STD such as 127.5/127.5, MEAN/STD/CROP, or module:function"
        raise ValueError(f"preprocess is {shown(name)}, expected {expected}") from None
    return mean, std, *(float(share[0]) for share in crop)


def _are_equal(numbers: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    one, other = ([np.ravel(np.float32(each)).tolist() for each in side] for side in (numbers, others))
    return one == other


def _scaled(
    sample: Array, shape: tuple[int, ...], levels: Callable[[Array], Array] | None, mean: Any = 0.0, std: Any = 1.0
) -> Array:
    values = _fitting(sample, shape)
    count = max(np.size(mean), np.size(std))
    if count > 1 and (not shape or count not in (shape[-1], shape[0])):
        raise ValueError(f"preprocess has {count} numbers, the model takes {list(shape)}")
    axis = -1 if count in (1, *shape[-1:]) else 0

    def scaled(values: Array, axis: int) -> Array:
        dims = (-1,) if axis == -1 else (-1, *(1,) * (values.ndim - 1))
        shift, scale = (np.reshape(np.float32(side), dims) for side in (mean, std))
        return ((values.astype(np.float32) - shift) / scale).astype(np.float32)

    if levels is None:
        return scaled(values, axis)
    if values.dtype != np.uint8:
        return levels(scaled(values, axis))
    table = levels(scaled(np.arange(256).repeat(count).reshape(256, count), -1))
    if count == 1:
        return np.take(table, values)
    planes = zip(table.T, np.moveaxis(values, axis, 0), strict=True)
    return np.stack([np.take(of_channel, plane) for of_channel, plane in planes], axis=axis)


def _cropped(sample: Array, shape: tuple[int, ...], mean: Any, std: Any, share: float) -> Array:
    """Preprocesses an image: a center crop, a bicubic resize, and a mean and deviation, as in larq-zoo's
    preprocess_input."""
    height, width, channels, is_first = _image_shape(shape)
    pixels = center_crop(with_channels(_as_image(sample), channels), share)
    for numbers in (mean, std):
        if np.size(numbers) not in (1, channels):
            raise ValueError(f"the recipe is for images of {np.size(numbers)} channels, the model takes {list(shape)}")
    values = (resized_bicubic(pixels, height, width) - np.float32(mean)) / np.float32(std)
    return np.moveaxis(values, -1, 0) if is_first else values


def _by_function(function: Any, name: str, sample: Array, shape: tuple[int, ...]) -> Array:
    with failures_named(name):
        result = np.asarray(function(sample))
    if not fits(result.shape, shape):
        raise ValueError(f"{name} gives {list(result.shape)}, the model takes {list(shape)}")
    return result


def _closed(shape: tuple[int, ...], sample: Array) -> tuple[int, ...]:
    """The model's input shape, with the sample's sizes in place of -1."""
    if -1 not in shape:
        return shape
    own = sample.shape
    if len(shape) == 3:
        height, width, channels = _as_image(sample).shape
        own = (channels, height, width) if _is_channels_first(shape) else (height, width, channels)
    if len(own) != len(shape):
        raise ValueError(f"a sample is {list(sample.shape)}, the model takes {list(shape)}")
    return tuple(own_size if size < 0 else size for size, own_size in zip(shape, own, strict=True))


def _fitting(sample: Array, shape: tuple[int, ...]) -> Array:
    """Fits a sample to the model's input shape. The layout, size and number of channels of an image are converted."""
    if sample.shape == shape:
        return sample
    if sample.ndim != len(shape) and sample.size == int(np.prod(shape)):
        return sample.reshape(shape)
    if len(shape) != 3:
        raise ValueError(f"a sample is {list(sample.shape)}, the model takes {list(shape)}")
    height, width, channels, is_first = _image_shape(shape)
    image = with_channels(_as_image(sample), channels)
    if image.shape[:2] != (height, width):
        if image.dtype != np.uint8:
            raise ValueError(f"a sample is {list(sample.shape)}, the model takes {list(shape)}")
        image = resize(image, height, width)
    return np.moveaxis(image, -1, 0) if is_first else image


def _as_image(sample: Array) -> Array:
    """Reshapes a sample to [height, width, channels]."""
    if sample.ndim == 2:
        sample = sample[..., None]
    if sample.ndim != 3 or not sample.size:
        raise ValueError(f"a sample is {list(sample.shape)}, expected an image")
    return np.moveaxis(sample, 0, -1) if _is_channels_first(sample.shape) else sample


def _image_shape(shape: tuple[int, ...]) -> tuple[int, int, int, bool]:
    """Height, width and channels of a shape, and True if the channels come first."""
    if len(shape) != 3:
        raise ValueError(f"the model takes {list(shape)}, expected images")
    if _is_channels_first(shape):
        return shape[1], shape[2], shape[0], True
    return shape[0], shape[1], shape[2], False


def _is_channels_first(shape: tuple[int, ...]) -> bool:
    return shape[0] in (1, 3) and shape[-1] not in (1, 3)
