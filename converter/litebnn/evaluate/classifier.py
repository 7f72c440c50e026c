"""Classification of photographs by a `.tflite` file that has its labels and its preprocessing in its metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from litebnn.errors import ConversionError, boundary, shown, whole_number
from litebnn.evaluate.batches import Array, Samples
from litebnn.evaluate.recipes import automatic_recipe, open_recipe
from litebnn.evaluate.scoring import Ready
from litebnn.files import read_content
from litebnn.flatbuffer.metadata import read_metadata
from litebnn.runtime import Interpreter


class Classifier:
    """Classifies photographs.

    Args:
        model: the bytes or the path of a `.tflite` file with TFLite Metadata, as `litebnn zoo` writes it. Its input is
            float32, uint8 or int8. For a quantized input, a table converts pixels to integers directly. Its output has
            a score for each label: [1, labels], or with other dimensions of size 1.
        options: those of `litebnn.Interpreter`.

    Attributes:
        name: the network's name in the metadata.
        labels: the names of the classes.

    Raises:
        ConversionError: the file has no metadata of an image classifier, or the metadata is damaged.
        ValueError: the model has several inputs or outputs, or its output is no array of numbers.
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
        self._file = name
        types = self._interpreter.output_types
        if len(types) != 1 or types[0].kind not in "fiu":
            raise ValueError(f"{name} has the outputs {', '.join(map(str, types))}, expected one of scores")

    def __call__(self, pixels: Any, top: int = 5) -> list[tuple[str, float]]:
        """The most likely classes of an image and their probabilities, the likeliest first.

        Args:
            pixels: uint8 [height, width, 3] of any size.
            top: the number of classes to return, at least 1; all classes if there are fewer.

        Raises:
            ValueError: `pixels` is not an array of this type and shape, or `top` is less than 1. Or the model has not
                one score for each label.
            TypeError: `top` is no whole number.
        """
        top = whole_number("top", top, 1)
        try:
            pixels = np.asarray(pixels)
        except ValueError:
            raise ValueError(f"an image is {shown(pixels)}, expected uint8 [height, width, 3]") from None
        if pixels.ndim != 3 or pixels.dtype != np.uint8 or not pixels.size:
            raise ValueError(f"an image is {pixels.dtype} {list(pixels.shape)}, expected uint8 [height, width, 3]")
        output = self._interpreter.predict(self._ready.inputs(Samples([pixels], None)))
        # Checked after the run, because some models compute the shape of their output while they run.
        if output.shape[-1:] != (len(self.labels),) or output.size != self._ready.batch * len(self.labels):
            found = f"{self._file} gives {list(output.shape)}"
            raise ValueError(f"{found}, expected a score for each of its {len(self.labels)} labels")
        scores = _real(output.reshape(-1, len(self.labels))[0], *self._interpreter.output_quantization[0])
        best = np.argsort(-scores, kind="stable")[:top]
        return [(self.labels[index], float(scores[index])) for index in best]


def _real(scores: Array, scale: float, zero_point: int) -> Array:
    """Scores as real numbers. Integers without a scale stand for 0 to 1, as in TensorFlow's label_image."""
    if scores.dtype.kind == "f":
        return scores
    if not scale:
        scale, zero_point = 1 / 255, -128 if scores.dtype == np.int8 else 0
    return (scores.astype(np.float32) - zero_point) * np.float32(scale)
