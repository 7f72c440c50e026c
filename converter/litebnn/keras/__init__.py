"""Layers, quantizers and optimizers to train binarized neural networks with Keras 3, on any of its backends.

Names and arguments are those of Larq, so that users of Larq change only one import::

    import keras
    import litebnn.keras as lq

    model = keras.Sequential([
        keras.Input((28, 28, 1)),
        lq.layers.QuantConv2D(32, 3, kernel_quantizer="ste_sign", kernel_constraint="weight_clip"),
        keras.layers.BatchNormalization(scale=False),
        lq.layers.QuantConv2D(
            64, 3, input_quantizer="ste_sign", kernel_quantizer="ste_sign", kernel_constraint="weight_clip"
        ),
        keras.layers.GlobalAveragePooling2D(),
    ])
    lq.models.summary(model)

`litebnn.convert_keras_model` converts such a model to a binary `.tflite` file, on the backends TensorFlow and torch.
Importing this package imports Keras and the backend that `KERAS_BACKEND` names, and no other framework.
"""

try:
    import keras as _keras

    if not _keras.__version__.startswith("3."):
        raise ImportError(f"this is Keras {_keras.__version__}")
except ImportError as error:
    raise ImportError(
        f"litebnn.keras needs Keras 3 and a backend for it (pip install 'litebnn[keras]'): {error}"
    ) from None

from litebnn.keras import (
    activations,
    callbacks,
    constraints,
    context,
    layers,
    math,
    metrics,
    models,
    optimizers,
    quantizers,
)

__all__ = [
    "activations",
    "callbacks",
    "constraints",
    "context",
    "layers",
    "math",
    "metrics",
    "models",
    "optimizers",
    "quantizers",
]
