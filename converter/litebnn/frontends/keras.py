"""Keras models, of Keras 2 (tf-keras) and of Keras 3 with the TensorFlow backend -> .tflite bytes."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from litebnn.errors import ConversionError
from litebnn.frontends.interface import set_interface
from litebnn.frontends.tensorflow import load_tensorflow, to_tflite
from litebnn.unique_names import unique_names


def keras_to_tflite(model: Any) -> bytes:
    """The float .tflite file of a Keras model; an unknown batch size becomes 1.

    Inputs and outputs come in the order of `model.inputs` and `model.outputs`. The signature names them by their keys
    where the model takes or gives dictionaries, else by Keras's names.

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

    tree = importlib.import_module("keras").tree if keras_3 else tensorflow.nest
    structure = getattr(model, "input", model.inputs[0])
    inputs = _names("input", structure, model.inputs, [tensor.name.split(":")[0] for tensor in model.inputs])
    specs = []
    for (key, name), tensor in zip(inputs.items(), model.inputs, strict=True):
        shape = list(tensor.shape)
        if None in shape[1:]:
            raise ConversionError(
                f'input "{name}" has shape {shape}: only the first dimension may be unknown; '
                "build the model with a fixed input shape"
            )
        specs.append(tensorflow.TensorSpec([shape[0] or 1, *shape[1:]], tensorflow.as_dtype(tensor.dtype), name=key))
    results: list[Any] = []

    def call(*tensors: Any) -> dict[str, Any]:
        results.append(model(tree.pack_sequence_as(structure, tensors), training=False))
        return {_key("output", index): tensor for index, tensor in enumerate(tree.flatten(results[-1]))}

    function = tensorflow.function(call, input_signature=specs).get_concrete_function()
    outputs = _names("output", results[-1], tree.flatten(results[-1]), getattr(model, "output_names", []))
    # TensorFlow looks for the variables in the object that owns them; Keras 3 wraps them in objects of its own.
    owner = tensorflow.Module() if keras_3 else model
    if keras_3:
        owner.held = [variable.value for variable in model.variables]
    return set_interface(to_tflite(function, owner), inputs, outputs)


def _key(side: str, index: int) -> str:
    """What TensorFlow calls an input or output: names that it leaves as they are, and that sort by the index."""
    return f"{side}_{index:04d}"


def _names(side: str, structure: Any, tensors: list[Any], given: list[str]) -> dict[str, str]:
    """Names by TensorFlow's: a tensor's key where `structure` has it in a dictionary, else the name that Keras gave."""
    keys: dict[int, list[str]] = {}
    for key, tensor in _keyed(structure):
        keys.setdefault(id(tensor), []).append(key)
    if len(given) != len(tensors):
        given = [f"{side}_{index}" for index in range(len(tensors))]
    own = [keys[id(tensor)].pop(0) if keys.get(id(tensor)) else "" for tensor in tensors]
    # Keys come first and so are kept where a name of Keras's is the same.
    order = sorted(range(len(own)), key=lambda index: not own[index])
    names = dict(zip(order, unique_names(own[index] or given[index] for index in order), strict=True))
    return {_key(side, index): names[index] for index in range(len(tensors))}


def _keyed(structure: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf, with the key that it has in the innermost dictionary; without one the key is empty."""
    if isinstance(structure, Mapping):
        for inner, part in structure.items():
            yield from _keyed(part, str(inner))
    elif isinstance(structure, list | tuple):
        for part in structure:
            yield from _keyed(part, key)
    else:
        yield key, structure


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
