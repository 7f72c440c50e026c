"""Keras models, of Keras 2 (tf-keras) and of Keras 3 with the TensorFlow backend -> .tflite bytes."""

from __future__ import annotations

import importlib
from typing import Any

from litebnn.errors import ConversionError
from litebnn.frontends.tensorflow import load_tensorflow, to_tflite


def keras_to_tflite(model: Any) -> bytes:
    """The float .tflite file of a Keras model; an unknown batch size becomes 1.

    Raises:
        ConversionError: not a built Keras model, mixed precision, a Keras 3 backend other than TensorFlow, or a model
            that TensorFlow's converter refuses.
    """
    if not callable(model) or not hasattr(model, "layers") or not hasattr(model, "inputs"):
        raise ConversionError(f"expected a Keras model, got {type(model).__name__}")
    tensorflow = load_tensorflow()
    keras_3 = _is_keras_3(model)
    if keras_3:
        _check_backend()
    policy = getattr(getattr(model, "dtype_policy", None), "name", "float32")
    if policy != "float32":
        raise ConversionError(f'the model computes in "{policy}": convert it to float32 first')
    if not model.inputs:
        raise ConversionError(
            "the model has no input shapes yet: call it once on data, or build it with an Input layer"
        )

    specs = []
    for tensor in model.inputs:
        shape = list(tensor.shape)
        if None in shape[1:]:
            raise ConversionError(
                f'input "{tensor.name}" has shape {shape}: only the first dimension may be unknown; '
                "build the model with a fixed input shape"
            )
        dtype = tensorflow.as_dtype(tensor.dtype)
        specs.append(tensorflow.TensorSpec([shape[0] or 1, *shape[1:]], dtype, name=tensor.name.split(":")[0]))

    def call(*inputs: Any) -> Any:
        return model(list(inputs) if len(inputs) > 1 else inputs[0], training=False)

    function = tensorflow.function(call, input_signature=specs).get_concrete_function()
    # TensorFlow looks for the variables in the object that owns them; Keras 3 wraps them in objects of its own.
    owner = tensorflow.Module() if keras_3 else model
    if keras_3:
        owner.held = [variable.value for variable in model.variables]
    return to_tflite(function, owner)


def _is_keras_3(model: Any) -> bool:
    if not any(base.__module__.startswith("keras.") for base in type(model).__mro__):
        return False
    return not str(importlib.import_module("keras").__version__).startswith("2")


def _check_backend() -> None:
    backend = importlib.import_module("keras").config.backend()
    if backend != "tensorflow":
        raise ConversionError(
            f'Keras 3 runs on the backend "{backend}": set KERAS_BACKEND=tensorflow, load the model again and '
            "convert it"
        )
