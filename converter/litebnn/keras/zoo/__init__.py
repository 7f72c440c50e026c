"""The networks of larq-zoo in Keras 3, with the same names, arguments and weights.

::

    from litebnn.keras import zoo

    model = zoo.QuickNet(weights="imagenet")
    probabilities = model.predict(zoo.preprocess_input(photo)[None])
    zoo.decode_predictions(probabilities)

Each function takes these arguments, by name:

- `input_shape`: (height, width, channels) of the images, by default (224, 224, 3).
- `input_tensor`: a Keras tensor to use as the images, instead of a new input.
- `weights`: "imagenet" for pretrained weights, None for random ones, or the path of a file. Pretrained weights are
  fetched once. larq-zoo's `.h5` files, which Keras 2 wrote, can be loaded too.
- `include_top`: False for the features alone, without the layers that classify.
- `num_classes`: the number of classes, which must be 1,000 for pretrained weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import keras
import numpy as np

from litebnn.errors import told_by
from litebnn.keras.zoo import alexnet, densenet, quicknet, resnet
from litebnn.keras.zoo.blocks import Architecture
from litebnn.keras.zoo.weights import load_weights
from litebnn.zoo.fetch import fetch_weights
from litebnn.zoo.networks import CLASSES, NETWORKS, imagenet_classes
from litebnn.zoo.preprocessing import IMAGE_SIZE, preprocessed

ARCHITECTURES: dict[str, Architecture] = {
    "QuickNetSmall": quicknet.QuickNet(filters=(32, 64, 256, 512)),
    "QuickNet": quicknet.QuickNet(),
    "QuickNetLarge": quicknet.QuickNet(blocks=(6, 8, 12, 6)),
    "BinaryAlexNet": alexnet.BinaryAlexNet(),
    "XNORNet": alexnet.XNORNet(),
    "DoReFaNet": alexnet.DoReFaNet(),
    "BiRealNet": resnet.BiRealNet(),
    "BinaryResNetE18": resnet.BinaryResNetE18(),
    "RealToBinaryNet": resnet.RealToBinaryNet(),
    "BinaryDenseNet28": densenet.BinaryDenseNet((6, 6, 6, 5), (2.7, 2.7, 2.2)),
    "BinaryDenseNet37": densenet.BinaryDenseNet((6, 8, 12, 6), (3.3, 3.3, 4)),
    "BinaryDenseNet37Dilated": densenet.BinaryDenseNet((6, 8, 12, 6), (3.3, 3.3, 4), dilations=(1, 1, 2, 4)),
    "BinaryDenseNet45": densenet.BinaryDenseNet((6, 12, 14, 8), (2.7, 3.3, 4)),
    "MeliusNet22": densenet.MeliusNet((4, 5, 4, 4), (160, 224, 256)),
}


class Builder(Protocol):
    """The type of a function that builds a network."""

    def __call__(
        self,
        *,
        input_shape: Sequence[int | None] | None = None,
        input_tensor: Any = None,
        weights: str | Path | None = "imagenet",
        include_top: bool = True,
        num_classes: int = CLASSES,
    ) -> Any: ...


def _builder(name: str) -> Builder:
    network, architecture = NETWORKS[name], ARCHITECTURES[name]

    def build(
        *,
        input_shape: Sequence[int | None] | None = None,
        input_tensor: Any = None,
        weights: str | Path | None = "imagenet",
        include_top: bool = True,
        num_classes: int = CLASSES,
    ) -> Any:
        if keras.config.image_data_format() != "channels_last":
            raise ValueError(f'{name} is for the image data format "channels_last", which keras.config sets')
        if weights == "imagenet" and include_top and num_classes != CLASSES:
            raise ValueError(f"num_classes is {num_classes}, but the pretrained weights of {name} are for {CLASSES}")
        images = _images(name, input_shape, input_tensor, include_top)
        try:
            outputs = architecture.features(images)
            if include_top:
                outputs = architecture.top(outputs, num_classes)
        except ValueError as error:
            raise ValueError(f"{name} cannot take images of {tuple(images.shape[1:])}: {told_by(error)}") from None
        sources = [images] if input_tensor is None else keras.utils.get_source_inputs(images)
        model = keras.Model(sources[0] if len(sources) == 1 else sources, outputs, name=network.model)
        if weights is not None:
            load_weights(model, fetch_weights(network, include_top) if weights == "imagenet" else weights)
        return model

    build.__name__ = build.__qualname__ = name
    build.__doc__ = (
        f"{name} as a Keras model: {network.top_1} % top-1 and {network.top_5} % top-5 on ImageNet.\n\n"
        f'Source: "{network.paper.title}", {network.paper.address}'
    )
    return build


def _images(name: str, input_shape: Sequence[int | None] | None, input_tensor: Any, include_top: bool) -> Any:
    """The Keras tensor of a network's input images."""
    if input_tensor is not None:
        images = input_tensor if keras.utils.is_keras_tensor(input_tensor) else keras.Input(tensor=input_tensor)
        shape = tuple(images.shape[1:])
    else:
        side = IMAGE_SIZE if include_top else None
        shape = (side, side, 3) if input_shape is None else tuple(input_shape)
        images = None
    if len(shape) != 3 or shape[2] is None:
        raise ValueError(f"input_shape of {name} is {shape}, expected (height, width, channels)")
    if include_top and None in shape:
        raise ValueError(f"input_shape of {name} is {shape}: with include_top the height and width must be known")
    return keras.Input(shape) if images is None else images


QuickNetSmall = _builder("QuickNetSmall")
QuickNet = _builder("QuickNet")
QuickNetLarge = _builder("QuickNetLarge")
BinaryAlexNet = _builder("BinaryAlexNet")
XNORNet = _builder("XNORNet")
DoReFaNet = _builder("DoReFaNet")
BiRealNet = _builder("BiRealNet")
BinaryResNetE18 = _builder("BinaryResNetE18")
RealToBinaryNet = _builder("RealToBinaryNet")
BinaryDenseNet28 = _builder("BinaryDenseNet28")
BinaryDenseNet37 = _builder("BinaryDenseNet37")
BinaryDenseNet37Dilated = _builder("BinaryDenseNet37Dilated")
BinaryDenseNet45 = _builder("BinaryDenseNet45")
MeliusNet22 = _builder("MeliusNet22")


def preprocess_input(image: Any) -> Any:
    """Preprocesses an image as in the training of the networks: float32 [224, 224, 3].

    Args:
        image: a NumPy array or a tensor [height, width, 3] of values from 0 to 255.

    Raises:
        ValueError: the image has another number of dimensions.
    """
    if len(image.shape) != 3:
        raise ValueError(f"an image is {tuple(image.shape)}, expected [height, width, 3]")
    return preprocessed(image, ops=np if isinstance(image, np.ndarray) else keras.ops)


def decode_predictions(predictions: Any, top: int = 5) -> list[list[tuple[str, str, float]]]:
    """The most likely classes of each image, the likeliest first: (synset, name, probability).

    Args:
        predictions: an array or tensor [images, 1000], as a network returns it.
        top: the number of classes for each image.

    Raises:
        ValueError: the array has another shape.
    """
    scores = np.asarray(keras.ops.convert_to_numpy(predictions))
    if scores.ndim != 2 or scores.shape[1] != CLASSES:
        raise ValueError(f"predictions are {list(scores.shape)}, expected [images, {CLASSES}]")
    classes = imagenet_classes()
    best = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    return [
        [(classes[index].synset, classes[index].name.replace(" ", "_"), float(row[index])) for index in indices]
        for row, indices in zip(scores, best, strict=True)
    ]


# Modules with the names by which users of larq-zoo know the networks.
sota, literature = (
    SimpleNamespace(**{name: globals()[name] for name, network in NETWORKS.items() if network.kind == kind})
    for kind in ("sota", "literature")
)
