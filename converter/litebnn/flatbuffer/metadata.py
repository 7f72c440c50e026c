"""TFLite Metadata of image classifiers: labels and preprocessing in the .tflite file, in the format of LiteRT's task
library.

The metadata is a flatbuffer in one of the model's buffers. Files that belong to the metadata, such as labels, are in a
zip archive after the model's own bytes. This module defines those tables of the schema that image classifiers use. The
schema is metadata_schema.fbs of tflite-support, version 1.5.0:
https://github.com/google-ai-edge/LiteRT/blob/main/tflite/schema.
"""

from __future__ import annotations

import codecs
import io
import unicodedata
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litebnn.errors import ConversionError
from litebnn.flatbuffer.reader import read_model
from litebnn.flatbuffer.tables import Schema
from litebnn.flatbuffer.writer import DAMAGES, MOST_FILE_BYTES, with_file, write_model
from litebnn.graph import Buffer, Graph

BUFFER_NAME = "TFLITE_METADATA"
LABELS_FILE = "labels.txt"
# The name of the metadata entry that holds the crop, because the schema has no field for it. The value is a text: the
# share of the image's shorter side.
CROP = "litebnn_center_crop"
_IDENTIFIER = b"M001"
_PARSER_VERSION = "1.5.0"  # the first with custom metadata
# The schema's numbers for color spaces. The keys are the image's numbers of channels.
_COLOR_SPACES = {1: 2, 3: 1}
_UNKNOWN_COLOR_SPACE = 0
_AXIS_LABELS = 2
_TEXTS = ("name", "description", "author", "license")
# Unicode's categories of characters that end a line, control a terminal, or have no encoding in UTF-8.
_SURROGATES = "Cs"
_NOT_IN_LABELS = frozenset({"Cc", "Zl", "Zp", _SURROGATES})
_BYTE_ORDER_MARK = "\ufeff"

SCHEMA = Schema(
    {
        "AssociatedFile": ("name:string", "description:string", "type:byte", "locale:string", "version:string"),
        "ImageSize": ("width:uint", "height:uint"),
        "FeatureProperties": (),
        "ImageProperties": ("color_space:byte", "default_size:ImageSize"),
        "ValueRange": ("min:int", "max:int"),
        "Content": ("content_properties:ContentProperties", "range:ValueRange"),
        "NormalizationOptions": ("mean:[float]", "std:[float]"),
        "ProcessUnit": ("options:ProcessUnitOptions",),
        "Stats": ("max:[float]", "min:[float]"),
        "TensorMetadata": (
            "name:string",
            "description:string",
            "dimension_names:[string]",
            "content:Content",
            "process_units:[ProcessUnit]",
            "stats:Stats",
            "associated_files:[AssociatedFile]",
        ),
        "TensorGroup": ("name:string", "tensor_names:[string]"),
        "CustomMetadata": ("name:string", "data:[ubyte]"),
        "SubGraphMetadata": (
            "name:string",
            "description:string",
            "input_tensor_metadata:[TensorMetadata]",
            "output_tensor_metadata:[TensorMetadata]",
            "associated_files:[AssociatedFile]",
            "input_process_units:[ProcessUnit]",
            "output_process_units:[ProcessUnit]",
            "input_tensor_groups:[TensorGroup]",
            "output_tensor_groups:[TensorGroup]",
            "custom_metadata:[CustomMetadata]",
        ),
        "ModelMetadata": (
            "name:string",
            "description:string",
            "version:string",
            "subgraph_metadata:[SubGraphMetadata]",
            "author:string",
            "license:string",
            "associated_files:[AssociatedFile]",
            "min_parser_version:string",
        ),
    },
    {"ContentProperties": ("FeatureProperties", "ImageProperties"), "ProcessUnitOptions": ("NormalizationOptions",)},
)


@dataclass(frozen=True)
class ImageClassifier:
    """The metadata of an image classifier."""

    name: str = ""
    # A sentence about the network.
    description: str = ""
    # The people who trained the network.
    author: str = ""
    # The license of the weights.
    license: str = ""
    # The names of the classes, in the order of the output. Each is one line of text.
    labels: tuple[str, ...] = ()
    # The mean of each channel, or one mean for all, which preprocessing subtracts from the pixels (0 to 255).
    mean: tuple[float, ...] = ()
    # For each mean, the standard deviation (above 0) by which preprocessing divides the pixels after it has subtracted
    # the mean.
    std: tuple[float, ...] = ()
    # The share of an image's shorter side that is cropped from the middle, before a bicubic resize: above 0, at most 1.
    # None if the whole image is resized bilinearly.
    crop: float | None = None


def with_metadata(tflite: bytes, metadata: ImageClassifier) -> bytes:
    """Adds metadata to the file of a model, or replaces earlier metadata.

    Raises:
        ConversionError: the model does not take one image and give one score for each label. Or the metadata does not
            fit the model, or cannot be written: see `ImageClassifier`.
    """
    model = read_model(tflite)
    shape = _image_shape(model.graphs[0], len(metadata.labels))
    _check_numbers(metadata, shape[-1])
    _check_texts(metadata)
    content = SCHEMA.pack("ModelMetadata", _tables(metadata, shape), _IDENTIFIER)
    model.metadata = [(name, buffer) for name, buffer in model.metadata if name != BUFFER_NAME]
    model.buffers.append(Buffer(np.frombuffer(content, np.uint8)))
    model.metadata.append((BUFFER_NAME, model.buffers[-1]))
    text = "".join(f"{label}\n" for label in metadata.labels)
    return with_file(write_model(model), LABELS_FILE, text.encode("utf-8"))


def read_metadata(tflite: bytes) -> ImageClassifier | None:
    """Reads the metadata of an image classifier; None if the file has no metadata, or metadata of another kind of
    model.

    Raises:
        ConversionError: the metadata is damaged.
    """
    content = next((buffer.data for name, buffer in read_model(tflite).metadata if name == BUFFER_NAME), None)
    if content is None:
        return None
    tables = SCHEMA.unpack("ModelMetadata", np.asarray(content).tobytes())
    graph: dict[str, Any] = next(iter(tables.get("subgraph_metadata", ())), {})
    inputs, outputs = graph.get("input_tensor_metadata", ()), graph.get("output_tensor_metadata", ())
    if len(inputs) != 1 or inputs[0].get("content", {}).get("content_properties", ("",))[0] != "ImageProperties":
        return None
    normalization: dict[str, Any] = next(
        (unit["options"][1] for unit in inputs[0].get("process_units", ()) if "options" in unit), {}
    )
    custom = {each.get("name"): each.get("data", b"") for each in graph.get("custom_metadata", ())}
    files = [file for tensor in outputs[:1] for file in tensor.get("associated_files", ())]
    name = next((file.get("name", "") for file in files if file.get("type") == _AXIS_LABELS), "")
    return ImageClassifier(
        **{key: tables.get(key, "") for key in _TEXTS},
        labels=_labels(tflite, name) if name else (),
        mean=tuple(normalization.get("mean", ())),
        std=tuple(normalization.get("std", ())),
        crop=_share(custom[CROP]) if CROP in custom else None,
    )


def labels_in(content: bytes, name: str) -> tuple[str, ...]:
    r"""The labels in a text file, one a line, as label_image reads them. Blank lines at the end are no labels, nor is
    the byte order mark that some editors write at the start.

    Raises:
        ValueError: the file `name` is no text in UTF-8.

    >>> labels_in(b"cat\r\ndog\r\n\r\n", "labels.txt")
    ('cat', 'dog')
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError(f"{name} is text in UTF-16, expected UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is no text in UTF-8: {error}") from None
    if "\0" in text:
        raise ValueError(f"{name} is no text in UTF-8: it has zero bytes")
    lines = text.rstrip("\r\n")
    return tuple(line.removesuffix("\r") for line in lines.split("\n")) if lines else ()


def _image_shape(graph: Graph, labels: int) -> list[int]:
    """The shape of the image that a classifier takes: [1, height, width, channels].

    Raises:
        ConversionError: the graph does not take one image, or does not give a score for each label.
    """
    inputs, outputs = ([list(tensor.shape) for tensor in side] for side in (graph.inputs, graph.outputs))
    scores = [shape[-1:] for shape in outputs]
    if len(inputs) != 1 or len(inputs[0]) != 4 or scores != [[labels]]:
        raise ConversionError(
            f"the model takes {inputs} and gives {outputs}: expected an image, and a score for each of the {labels} "
            "labels"
        )
    if min(inputs[0]) < 1:
        raise ConversionError(f"the model takes images of {inputs[0]}, expected a known height and width")
    return inputs[0]


def _check_numbers(metadata: ImageClassifier, channels: int) -> None:
    if not _can_normalize(metadata.mean, metadata.std):
        raise ConversionError(
            f"the metadata has the deviations {metadata.std} for the means {metadata.mean}: expected one above 0 each, "
            "and a result within float32"
        )
    if len(metadata.mean) not in (0, 1, channels):
        raise ConversionError(
            f"the metadata has {len(metadata.mean)} means, but the model takes images of {channels} channels: expected "
            "one mean, or one for each channel"
        )
    # Programs read the crop as float32, so a crop that is 0 in float32 is refused too.
    if metadata.crop is not None and not (np.float32(metadata.crop) > 0.0 and metadata.crop <= 1.0):
        raise ConversionError(f"the metadata has the crop {metadata.crop}, expected a number above 0, at most 1")


def _check_texts(metadata: ImageClassifier) -> None:
    for number, label in enumerate(metadata.labels):
        # A byte order mark before the first label would be read as that of the file.
        if not label or label[0] == _BYTE_ORDER_MARK or _NOT_IN_LABELS & set(map(unicodedata.category, label)):
            raise ConversionError(f'the metadata has the label "{label}" for class {number}, expected one line of text')
    for field in _TEXTS:
        if _SURROGATES in map(unicodedata.category, getattr(metadata, field)):
            raise ConversionError(f'the {field} "{getattr(metadata, field)}" has no encoding in UTF-8')


def _can_normalize(mean: Sequence[float], std: Sequence[float]) -> bool:
    """True if float32 pixels from 0 to 255 can be normalized by these means and deviations."""
    if len(mean) != len(std):
        return False
    with np.errstate(all="ignore"):
        means, deviations = (np.array(numbers, np.float32) for numbers in (mean, std))
        ends = (np.array([[0], [255]], np.float32) - means) / deviations
    return bool(np.all(deviations > 0) and np.all(np.isfinite([means, deviations, *ends])))


def _tables(metadata: ImageClassifier, shape: list[int]) -> dict[str, Any]:
    _, height, width, channels = shape
    image: dict[str, Any] = {
        "name": "image",
        "description": "The image to classify.",
        "content": {
            "content_properties": (
                "ImageProperties",
                {
                    "color_space": _COLOR_SPACES.get(channels, _UNKNOWN_COLOR_SPACE),
                    "default_size": {"width": width, "height": height},
                },
            )
        },
    }
    if metadata.mean:
        normalization = {"mean": list(metadata.mean), "std": list(metadata.std)}
        image["process_units"] = [{"options": ("NormalizationOptions", normalization)}]
        image["stats"] = {
            side: [(v - m) / s for m, s in zip(metadata.mean, metadata.std, strict=True)]
            for side, v in (("max", 255.0), ("min", 0.0))
        }
    scores = {
        "name": "probability",
        "description": "The probability of each class.",
        "content": {"content_properties": ("FeatureProperties", {})},
        "stats": {"max": [1.0], "min": [0.0]},
        "associated_files": [
            {"name": LABELS_FILE, "description": "The name of each class, one a line.", "type": _AXIS_LABELS}
        ],
    }
    graph: dict[str, Any] = {"input_tensor_metadata": [image], "output_tensor_metadata": [scores]}
    if metadata.crop is not None:
        graph["custom_metadata"] = [{"name": CROP, "data": repr(float(metadata.crop)).encode()}]
    texts = {key: getattr(metadata, key) for key in _TEXTS}
    return {**texts, "subgraph_metadata": [graph], "min_parser_version": _PARSER_VERSION}


def _labels(tflite: bytes, name: str) -> tuple[str, ...]:
    try:
        with zipfile.ZipFile(io.BytesIO(tflite)) as archive:
            if archive.getinfo(name).file_size > MOST_FILE_BYTES:
                raise ConversionError(f"the labels {name} in the metadata have more than 16 MiB")
            content = archive.read(name)
    except ConversionError:
        raise
    except DAMAGES as error:
        reason = error.args[0] if isinstance(error, KeyError) else error
        raise ConversionError(
            f"the metadata names {name}, which cannot be read from the archive after the model: {reason}"
        ) from None
    try:
        return labels_in(content, f"{name} in the metadata")
    except ValueError as error:
        raise ConversionError(error) from None


def _share(data: bytes) -> float:
    try:
        share = float(data.decode("ascii"))
    except ValueError:
        share = 0.0
    if not 0.0 < share <= 1.0:
        raise ConversionError(f"the metadata {CROP} is {data[:20]!r}, expected a number from 0 to 1")
    return share
