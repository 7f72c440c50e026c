"""Keras models, of Keras 2 (tf-keras) and of Keras 3 with the backends TensorFlow and torch -> .tflite bytes."""

from __future__ import annotations

import importlib
import importlib.util
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model, write_model
from litebnn.frontends.interface import keyed, set_interface
from litebnn.frontends.tensorflow import first_line, load_tensorflow, to_tflite
from litebnn.unique_names import unique_names


def keras_to_tflite(model: Any) -> bytes:
    """The float .tflite file of a Keras model; an unknown batch size becomes 1.

    Inputs and outputs come in the order of `model.inputs` and `model.outputs`. The signature names them by their keys
    where the model takes or gives dictionaries, else by Keras's names.

    Raises:
        ConversionError: not a built Keras model, mixed precision, a Keras 3 backend that cannot export (JAX), a missing
            package, or a model that the exporter refuses.
    """
    if not callable(model) or not hasattr(model, "layers"):
        raise ConversionError(f"expected a Keras model, got {type(model).__name__}")
    export = _export_from_tensorflow
    if _is_keras_3(model):
        backend = importlib.import_module("keras").config.backend()
        if backend not in _EXPORTS:
            raise ConversionError(
                f'Keras 3 runs on the backend "{backend}", which cannot export: set KERAS_BACKEND=tensorflow or torch, '
                "load the model again and convert it"
            )
        export = _EXPORTS[backend]
    policy = getattr(getattr(model, "dtype_policy", None), "name", "float32")
    if policy != "float32":
        raise ConversionError(f'the model computes in "{policy}": convert it to float32 first')
    if not getattr(model, "inputs", None):
        raise ConversionError(
            "the model has no input shapes yet: call it once on data, or build it with an Input layer (a Keras 3 model "
            "with a call method of its own: keras.Model(x, model(x)) for x = keras.Input(shape))"
        )
    return export(model)


def _export_from_tensorflow(model: Any) -> bytes:
    tensorflow = load_tensorflow()
    keras_3 = _is_keras_3(model)
    tree = importlib.import_module("keras").tree if keras_3 else tensorflow.nest
    structure = getattr(model, "input", model.inputs[0])
    inputs = _input_names(structure, model)
    specs = [
        tensorflow.TensorSpec(_fixed_shape(name, tensor), tensorflow.as_dtype(tensor.dtype), name=key)
        for (key, name), tensor in zip(inputs.items(), model.inputs, strict=True)
    ]
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
    tflite = to_tflite(function, owner)
    scope = re.compile(rf"^{re.escape(model.name)}(_\d+)?/")

    def short(name: str) -> str:
        """The names of the first and last of the ops that became one, without the model's."""
        parts = [scope.sub("", part) for part in name.split(";")]
        return ";".join(dict.fromkeys((parts[0], parts[-1])))

    return set_interface(_renamed(tflite, short) if keras_3 else tflite, inputs, outputs)


def _export_from_torch(model: Any) -> bytes:
    """By Keras's own exporter, of a model around this one that takes a list and gives a dictionary by our keys."""
    keras = importlib.import_module("keras")
    if importlib.util.find_spec("litert_torch") is None:
        raise ConversionError("converting a Keras model from the torch backend needs pip install litert-torch")
    if not _exports_from_torch(keras.__version__):
        raise ConversionError(
            f"Keras {keras.__version__} cannot export from the torch backend: pip install 'keras>=3.15', or set "
            "KERAS_BACKEND=tensorflow"
        )
    structure = getattr(model, "input", model.inputs[0])
    inputs = _input_names(structure, model)
    results: list[Any] = []

    def call(_: Any, tensors: list[Any]) -> dict[str, Any]:
        results.append(model(keras.tree.pack_sequence_as(structure, tensors), training=False))
        return {_key("output", index): tensor for index, tensor in enumerate(keras.tree.flatten(results[-1]))}

    exported = type(_EXPORTED, (keras.Model,), {"call": call})()
    exported.exported_model = model
    specs = [
        keras.InputSpec(shape=_fixed_shape(name, tensor), dtype=tensor.dtype)
        for name, tensor in zip(inputs.values(), model.inputs, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "exported.tflite"
        try:
            exported.export(path, format="litert", input_signature=[specs], verbose=False)
        except Exception as error:
            raise ConversionError(f"litert-torch refuses the model: {first_line(error)}") from error
        tflite = path.read_bytes()
    outputs = _names("output", results[-1], keras.tree.flatten(results[-1]), getattr(model, "output_names", []))
    names_by_keras = {f"args_0_{index}": name for index, name in enumerate(inputs.values())}
    # litert-torch names tensors by the classes of the modules that they come from, which Keras's layers are not.
    classes = re.compile(rf"{re.escape(__name__)}\.{_EXPORTED}(/[\w.]+)?")

    def short(name: str) -> str:
        return ";".join(dict.fromkeys(part for part in classes.sub(model.name, name).split(";") if part))

    return set_interface(_renamed(tflite, short), names_by_keras, outputs)


def _renamed(tflite: bytes, rename: Callable[[str], str]) -> bytes:
    """The file with its tensors renamed, and no two of a name that had different ones."""
    model = read_model(tflite)
    for graph in model.graphs:
        tensors = list(graph.all_tensors())
        for tensor, name in zip(tensors, unique_names(rename(tensor.name) for tensor in tensors), strict=True):
            tensor.name = name
    return write_model(model)


_EXPORTED = "Exported"
_EXPORTS = {"tensorflow": _export_from_tensorflow, "torch": _export_from_torch}


def _exports_from_torch(version: str) -> bool:
    return tuple(int(part) for part in version.split(".")[:2]) >= (3, 15)


def _fixed_shape(name: str, tensor: Any) -> list[int]:
    """The shape of an input for one sample."""
    shape = list(tensor.shape)
    if None in shape[1:]:
        raise ConversionError(
            f'input "{name}" has shape {shape}: only the first dimension may be unknown; '
            "build the model with a fixed input shape"
        )
    return [shape[0] or 1, *shape[1:]]


def _input_names(structure: Any, model: Any) -> dict[str, str]:
    return _names("input", structure, model.inputs, [tensor.name.split(":")[0] for tensor in model.inputs])


def _key(side: str, index: int) -> str:
    """What TensorFlow calls an input or output: names that it leaves as they are, and that sort by the index."""
    return f"{side}_{index:04d}"


def _names(side: str, structure: Any, tensors: list[Any], given: list[str]) -> dict[str, str]:
    """Names by TensorFlow's: a tensor's key where `structure` has it in a dictionary, else the name that Keras gave."""
    keys: dict[int, list[str]] = {}
    for key, tensor in keyed(structure):
        keys.setdefault(id(tensor), []).append(key)
    if len(given) != len(tensors):
        given = [f"{side}_{index}" for index in range(len(tensors))]
    own = [keys[id(tensor)].pop(0) if keys.get(id(tensor)) else "" for tensor in tensors]
    # Keys come first and so are kept where a name of Keras's is the same.
    order = sorted(range(len(own)), key=lambda index: not own[index])
    names = dict(zip(order, unique_names(own[index] or given[index] for index in order), strict=True))
    return {_key(side, index): names[index] for index in range(len(tensors))}


def _is_keras_3(model: Any) -> bool:
    if not any(base.__module__.startswith("keras.") for base in type(model).__mro__):
        return False
    return not str(importlib.import_module("keras").__version__).startswith("2")
