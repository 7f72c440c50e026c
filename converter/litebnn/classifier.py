"""Classification of photographs by a `.tflite` file that has its labels and its preprocessing in its metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from litebnn.errors import ConversionError, boundary
from litebnn.evaluate.batches import Array, Samples
from litebnn.evaluate.recipes import automatic_recipe, open_recipe
from litebnn.evaluate.scoring import Ready
from litebnn.flatbuffer import read_metadata
from litebnn.model_files import read_content
from litebnn.runtime import Interpreter


class Classifier:
    """Classifies photographs.

    Args:
        model: the bytes or the path of a `.tflite` file with TFLite Metadata, as `litebnn zoo` writes it. Its input is
            float32, uint8 or int8. For a quantized input, a table converts pixels to integers directly.
        options: those of `litebnn.Interpreter`.

    Attributes:
        name: the network's name in the metadata.
        labels: the names of the classes.

    Raises:
        ConversionError: the file has no metadata of an image classifier, or the metadata is damaged.
        ValueError, OSError, ImportError: the errors of `litebnn.Interpreter`.

    Example:
        >>> classify = litebnn.Classifier("quicknet.tflite")  # doctest: +SKIP
        >>> classify(photo)[0]  # photo: uint8 [any height, any width, 3]  # doctest: +SKIP
        ('tabby', 0.61)
    """

    def __init__(self, model: bytes | str | Path, **options: Any) -> None:
        name, content = read_content(model)
        with boundary():
            metadata = read_metadata(content)
        if metadata is None or not metadata.labels:
            raise ConversionError(f"{name} has no labels in its metadata: expected a file that litebnn zoo has written")
        self.name = metadata.name
        self.labels = metadata.labels
        self._interpreter = Interpreter(content, **options)
        self._ready = Ready(name, self._interpreter, open_recipe(automatic_recipe([metadata])))

    def __call__(self, pixels: Any, top: int = 5) -> list[tuple[str, float]]:
        """The most likely classes of an image and their probabilities, the likeliest first.

        Args:
            pixels: uint8 [height, width, 3] of any size.
            top: the number of classes to return.

        Raises:
            ValueError: `pixels` is not an array of this type and shape.
        """
        pixels = np.asarray(pixels)
        if pixels.ndim != 3 or pixels.dtype != np.uint8 or not pixels.size:
            raise ValueError(f"an image is {pixels.dtype} {list(pixels.shape)}, expected uint8 [height, width, 3]")
        output = self._interpreter.predict(self._ready.inputs(Samples([pixels], None)))[0]
        scores = _real(output, *self._interpreter.output_quantization[0])
        best = np.argsort(-scores, kind="stable")[:top]
        return [(self.labels[index], float(scores[index])) for index in best]


def _real(scores: Array, scale: float, zero_point: int) -> Array:
    """Scores as real numbers. Integers without a scale stand for 0 to 1, as in TensorFlow's label_image."""
    if scores.dtype.kind == "f":
        return scores
    if not scale:
        scale, zero_point = 1 / 255, -128 if scores.dtype == np.int8 else 0
    return (scores.astype(np.float32) - zero_point) * np.float32(scale)
