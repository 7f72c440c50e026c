"""Images for training and validation: their list, their order, and random crops.

Every random number is made from the seed and its purpose: the order of an epoch, or the crop of an image in an epoch.
Therefore the images of a step do not depend on earlier steps or on the number of processes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from examples.train.options import Options
from litebnn.errors import naming
from litebnn.evaluate.batches import Unreadable
from litebnn.evaluate.images import decode, resize, with_channels
from litebnn.evaluate.recipes import open_recipe
from litebnn.evaluate.sources import FolderSource, open_source
from litebnn.zoo.preprocessing import MEAN, STD

Array = npt.NDArray[Any]
File = tuple[str, int]  # an image's path and its label

CHANNELS = 3
# The purposes of random numbers. Each purpose has its own sequence of random numbers.
_SPLIT, _ORDER, _CROP = range(3)
_TRIES = 10
_ASPECT = 4 / 3  # the largest ratio of a crop's sides
_BATCHES_AHEAD = 3


class Batch(NamedTuple):
    """The images of one step, or the part of them that one process takes."""

    images: Array  # float32 [n, size, size, 3]
    labels: Array  # int32 [n]
    weights: Array  # float32 [n], 0 for images that only fill the batch up
    # The number of real images in the whole batch, without those that only fill it up.
    count: int


@dataclass(frozen=True)
class Images:
    """The training and validation images of a training."""

    training: tuple[File, ...]
    validation: tuple[File, ...]
    classes: tuple[str, ...]
    options: Options

    @property
    def steps_of_an_epoch(self) -> int:
        """The number of whole batches in an epoch. Images that do not fill a batch are left to later epochs, which have
        another order."""
        return len(self.training) // self.options.batch

    def training_batches(self, first: int, last: int, part: slice) -> Iterator[Batch]:
        """Yields one process's part of each batch, for the training steps from `first` to before `last`. The process
        gets the slice `part` of the images of every batch.
        """

        def samples() -> Iterator[tuple[int, list[_Sample]]]:
            options, epoch, order = self.options, -1, np.array([], int)
            for step in range(first, last):
                if step // self.steps_of_an_epoch != epoch:
                    epoch = step // self.steps_of_an_epoch
                    order = _random(options.seed, _ORDER, epoch).permutation(len(self.training))
                start = step % self.steps_of_an_epoch * options.batch
                chosen = order[start : start + options.batch][part]
                read = [_Sample(*self.training[index], 1, self._cropped(epoch, index)) for index in chosen]
                yield options.batch, read

        return _read(samples(), self.options.workers)

    def validation_batches(self, part: slice) -> Iterator[Batch]:
        """Yields the batches of all validation images. Each batch has only the images in its slice `part`, which one
        process takes. The last batch is filled up with copies of an image, which have the weight 0.
        """
        batch, shape = self.options.batch, (self.options.size, self.options.size, CHANNELS)
        prepared = open_recipe("zoo").prepared()

        def samples() -> Iterator[tuple[int, list[_Sample]]]:
            for start in range(0, len(self.validation), batch):
                files = self.validation[start : start + batch]
                weighted = [(*file, 1) for file in files] + [(*files[0], 0)] * (batch - len(files))
                yield len(files), [_Sample(*file, lambda pixels: prepared(pixels, shape)) for file in weighted[part]]

        return _read(samples(), self.options.workers)

    def _cropped(self, epoch: int, index: int) -> Callable[[Array], Array]:
        return lambda pixels: augmented(pixels, _random(self.options.seed, _CROP, epoch, index), self.options)


class _Sample(NamedTuple):
    """An image that is to be read: its file, label and weight, and the function from its pixels to the network's
    input."""

    file: str
    label: int
    weight: int
    prepare: Callable[[Array], Array]

    def read(self) -> Array:
        with naming(self.file):
            content = Path(self.file).read_bytes()
        pixels = decode(content, self.file)
        if isinstance(pixels, Unreadable):
            raise ValueError(f"{pixels.name} cannot be read: {pixels.reason}")
        return self.prepare(with_channels(pixels, CHANNELS))


def open_images(options: Options) -> Images:
    """Lists the images. If the options name no validation folder, sets some images aside for validation.

    Raises:
        ValueError: a folder has no class folders, the two folders have different classes, or there are too few images.
    """
    folder = _open(options.data)
    classes = tuple(folder.classes.get(label, str(label)) for label in range(max(folder.classes) + 1))
    if options.validation is not None:
        training, validation = folder.files, _open(options.validation).files
        unknown = sorted({Path(file).parent.name for file, label in validation if label >= len(classes)})
        if unknown or _open(options.validation).classes != folder.classes:
            raise ValueError(f"{options.validation} has other classes than {options.data}: expected the same folders")
    else:
        order = _random(options.seed, _SPLIT).permutation(len(folder.files))
        count = round(len(order) * options.validation_share)
        validation = tuple(folder.files[index] for index in sorted(order[:count]))
        training = tuple(folder.files[index] for index in sorted(order[count:]))
    if len(training) < options.batch:
        raise ValueError(f"{options.data} has {len(training)} images to train on, fewer than --batch {options.batch}")
    return Images(training, validation, classes, options)


def _open(path: Path) -> FolderSource:
    source = open_source(path)
    if not isinstance(source, FolderSource):
        raise ValueError(f"{path} is no folder of class folders with images, such as {path}/cat/1.jpg")
    return source


def crop_box(random: np.random.Generator, height: int, width: int, least: float) -> tuple[int, int, int, int]:
    """Top, left, height and width of a random part of an image.

    The area of the part is a random share of the image's area, from `least` to 1. The part's aspect ratio is from 3/4
    to 4/3. If the image is too long for such a part, the result is the middle of the image.

    Source: Szegedy et al., "Going deeper with convolutions", 2014, https://arxiv.org/abs/1409.4842
    """
    for _ in range(_TRIES):
        area = height * width * random.uniform(least, 1)
        ratio = math.exp(random.uniform(-math.log(_ASPECT), math.log(_ASPECT)))
        box_width, box_height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < box_width <= width and 0 < box_height <= height:
            top, left = random.integers(0, (height - box_height + 1, width - box_width + 1))
            return int(top), int(left), box_height, box_width
    box_height, box_width = min(height, round(width * _ASPECT)), min(width, round(height * _ASPECT))
    return (height - box_height) // 2, (width - box_width) // 2, box_height, box_width


def augmented(pixels: Array, random: np.random.Generator, options: Options) -> Array:
    """A random crop of an image in the network's size, mirrored or not, and normalized: float32 [size, size, 3]."""
    top, left, height, width = crop_box(random, *pixels.shape[:2], options.crop)
    is_mirrored = options.flip and bool(random.integers(2))
    cropped = resize(pixels[top : top + height, left : left + width], options.size, options.size)
    normal = (cropped[:, :: -1 if is_mirrored else 1] - np.array(MEAN, np.float32)) / np.array(STD, np.float32)
    return normal.astype(np.float32)


def _random(*numbers: int) -> np.random.Generator:
    return np.random.default_rng(numbers)


def _read(batches: Iterable[tuple[int, list[_Sample]]], workers: int) -> Iterator[Batch]:
    """Yields a batch for each pair in `batches`. A pair has the batch's `count` and the samples to read. Threads read
    some batches ahead."""
    waiting: deque[tuple[int, list[_Sample], list[Future[Array]]]] = deque()

    def first() -> Batch:
        count, samples, images = waiting.popleft()
        labels, weights = [sample.label for sample in samples], [sample.weight for sample in samples]
        read = np.stack([image.result() for image in images]).astype(np.float32)
        return Batch(read, np.array(labels, np.int32), np.array(weights, np.float32), count)

    threads = ThreadPoolExecutor(workers)
    try:
        for count, samples in batches:
            waiting.append((count, samples, [threads.submit(sample.read) for sample in samples]))
            if len(waiting) > _BATCHES_AHEAD:
                yield first()
        while waiting:
            yield first()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
