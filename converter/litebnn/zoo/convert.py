"""Converts networks of the zoo to `.tflite` files with their labels and their preprocessing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from litebnn.convert import convert_keras_model
from litebnn.errors import boundary
from litebnn.flatbuffer.metadata import ImageClassifier, with_metadata
from litebnn.report.conversion import ConversionReport
from litebnn.zoo.labels import imagenet_classes
from litebnn.zoo.networks import Network, find_network
from litebnn.zoo.preprocessing import CROP, MEAN, STD


def convert_network(
    name: str, *, weights: str | Path | None = "imagenet", labels: Sequence[str] = (), **options: Any
) -> tuple[bytes, ConversionReport]:
    """Builds and converts a network of the zoo; needs Keras 3 on the backend TensorFlow or torch.

    Args:
        name: the network's name, for example "quicknet".
        weights: "imagenet" for pretrained weights, None for random ones, or the path of a file.
        labels: the names of the classes, by default ImageNet's.
        options: the options of `litebnn.convert_keras_model`.

    Returns:
        The bytes of a `.tflite` file with metadata, and the report of the conversion.

    Raises:
        FetchError: the pretrained weights cannot be fetched.
        ConversionError: the network cannot be converted.
        ValueError: there is no such network, or the weights belong to another network.
    """
    from litebnn.keras import zoo

    network = find_network(name)
    labels = tuple(labels) or tuple(each.name for each in imagenet_classes())
    model = getattr(zoo, network.name)(weights=weights, num_classes=len(labels))
    converted, report = convert_keras_model(model, **{**options, "return_report": True})
    with boundary():
        return with_metadata(converted, metadata_of(network, weights == "imagenet", labels)), report


def metadata_of(network: Network, pretrained: bool, labels: tuple[str, ...]) -> ImageClassifier:
    """The metadata of a network: its labels, its preprocessing, and who trained it if it is pretrained."""
    of_larq_zoo = {
        "description": f"A binarized network, which classifies {network.top_1} % of ImageNet's images correctly.",
        "author": "the authors of larq-zoo",
        "license": "Apache-2.0",
    }
    texts = of_larq_zoo if pretrained else {}
    return ImageClassifier(network.name, labels=labels, mean=MEAN, std=STD, crop=CROP, **texts)
