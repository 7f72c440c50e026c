"""Converts Keras models to .tflite bytes: Keras 2 (tf-keras), and Keras 3 on TensorFlow or torch."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import math
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from litebnn.errors import ConversionError, told_by
from litebnn.frontends.interface import keyed, set_interface
from litebnn.frontends.tensor_names import Part, part_name, rename_tensors
from litebnn.frontends.tensorflow import load_tensorflow, to_tflite, trace
from litebnn.graph import Graph, Tensor, unique_names


def keras_to_tflite(model: Any) -> bytes:
    """The float .tflite file of a Keras model; an unknown batch size becomes 1.

    Inputs and outputs keep the order of `model.inputs` and `model.outputs`. If the model uses dictionaries, the
    signature names them by the dictionaries' keys, else by Keras's names.

    A model of a class of the user's has the inputs with which it was first called.

    Raises:
        ConversionError: the model is not a built Keras model, or has mixed precision. The same error is raised if a
            package is missing, the backend cannot export (JAX), or the exporter fails.
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
    return export(_with_inputs(model))


def _with_inputs(model: Any) -> Any:
    """The model itself if it has inputs. A subclassed model gets the inputs with which it was called.

    Raises:
        ConversionError: the model was never called, or cannot be called on symbolic inputs.
    """
    if getattr(model, "inputs", None):
        return model
    package = next(base for base in type(model).__mro__ if base.__module__.partition(".")[0] in ("keras", "tf_keras"))
    keras = importlib.import_module(package.__module__.partition(".")[0])
    arguments, named = _called_with(model, keras.Input)
    if not arguments and not named:
        raise ConversionError(
            "the model has no input shapes yet: call it once on data, model(x), or build it with an Input layer"
        )
    is_single = len(arguments) == 1 and not named
    inputs = arguments[0] if is_single else [tensor for _, tensor in keyed([*arguments, named])]
    try:
        return keras.Model(inputs, model(*arguments, **named))
    except Exception as error:
        raise ConversionError(
            f"the model cannot be called on symbolic inputs: {told_by(error)}; convert keras.Model(inputs, "
            "model(inputs)), whose inputs keras.Input makes"
        ) from error


def _called_with(model: Any, make_input: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
    """The positional and the named arguments of a subclassed model's first call, as symbolic inputs.

    Keras 2 notes the tensors of the call, Keras 3 their shapes.
    """

    def symbolic(structure: Any, name: str | None = None) -> Any:
        if isinstance(structure, Mapping):
            return {key: symbolic(part) for key, part in structure.items()}
        shape, dtype = getattr(structure, "shape", structure), getattr(structure, "dtype", None)
        if all(size is None or isinstance(size, int) for size in shape):
            return make_input(shape[1:], dtype=dtype, name=name and name.strip("_"))
        return [symbolic(part) for part in structure]

    names = list(inspect.signature(model.call).parameters)
    specs = model.save_spec() if hasattr(model, "save_spec") else None
    if specs is not None:
        arguments, named = specs
        given = [part for part in arguments if part is not None]
        return list(map(symbolic, given, names)), {name: symbolic(part, name) for name, part in named.items()}
    built = model.get_build_config() or {}
    if "shapes_dict" in built:
        by_name = {name.removesuffix("_shape"): shape for name, shape in built["shapes_dict"].items()}
        return [], {name: symbolic(shape, name) for name, shape in by_name.items()}
    return ([symbolic(built["input_shape"], names[0])] if built.get("input_shape") else []), {}


def _export_from_tensorflow(model: Any) -> bytes:
    tensorflow = load_tensorflow()
    keras_3 = _is_keras_3(model)
    tree = importlib.import_module("keras").tree if keras_3 else tensorflow.nest
    structure = getattr(model, "input", model.inputs[0])
    inputs = _input_names(structure, model)
    specs = [
        tensorflow.TensorSpec(_shape_of_one(tensor), tensorflow.as_dtype(tensor.dtype), name=key)
        for key, tensor in zip(inputs, model.inputs, strict=True)
    ]
    call, results = _keyed_call(model, structure, tree)
    function = trace(lambda *tensors: call(tensors), specs)
    outputs = _output_names(model, results[-1], tree)
    # TensorFlow saves the object that owns the variables. For a Keras 2 model, it would trace each layer again, which
    # takes most of the time of a conversion. In a Keras 3 model, it does not find the variables, because Keras 3 wraps
    # them in other objects. Therefore a new module holds only the variables.
    owner = tensorflow.Module()
    owner.held = [variable.value if keras_3 else variable for variable in model.variables]
    tflite = to_tflite(function, owner)
    scope = re.compile(rf"^{re.escape(model.name)}(_\d+)?/")

    def short(_: Graph, tensor: Tensor) -> str:
        """The names of the first and the last op that the exporter merged into the op that computes a tensor. The
        model's name is left out.
        """
        parts = [scope.sub("", part) for part in tensor.name.split(";")]
        return ";".join(dict.fromkeys((parts[0], parts[-1])))

    return set_interface(rename_tensors(tflite, short) if keras_3 else tflite, inputs, outputs)


def _export_from_torch(model: Any) -> bytes:
    """Exports with Keras's own exporter, through a wrapper that takes a list and returns a dictionary with litebnn's
    keys."""
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
    call, results = _keyed_call(model, structure, keras.tree)
    exported = type(_EXPORTED, (keras.Model,), {"call": lambda _, tensors: call(tensors)})()
    exported.exported_model = model
    # torch finds a layer only if it is an attribute of another layer. Therefore every layer becomes an attribute of the
    # exported model.
    layers = list(_layers_of(model))
    for index, layer in enumerate(layers):
        exported.add_module(f"{_LAYER}{index}", layer)
    specs = [
        keras.InputSpec(shape=_fixed_shape(name, tensor), dtype=tensor.dtype)
        for name, tensor in zip(inputs.values(), model.inputs, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "exported.tflite"
        try:
            exported.export(path, format="litert", input_signature=[specs], verbose=False)
        except Exception as error:
            raise ConversionError(f"litert-torch refuses the model: {told_by(error)}") from error
        tflite = path.read_bytes()
    outputs = _output_names(model, results[-1], keras.tree)
    names_by_keras = {f"args_0_{index}": name for index, name in enumerate(inputs.values())}

    def find_part(name: str) -> Part | None:
        """Finds the layer at a path of nested layers and models."""
        on_the_way = [layers[int(index)] for index in re.findall(rf"_{_LAYER}(\d+)(?=/|$)", name)]
        if on_the_way:
            return Part("/".join(layer.name for layer in on_the_way), _largest_weight(on_the_way[-1]))
        return Part(model.name, 0) if name.startswith(f"{__name__}.{_EXPORTED}") else None

    named = rename_tensors(tflite, lambda graph, tensor: part_name(graph, tensor, find_part))
    return set_interface(named, names_by_keras, outputs)


def _keyed_call(model: Any, structure: Any, tree: Any) -> tuple[Callable[[Sequence[Any]], dict[str, Any]], list[Any]]:
    """Wraps the model in a function from a list of inputs to a dictionary of outputs with litebnn's keys. Also returns
    a list, to which this function appends the outputs as the model returned them.
    """
    results: list[Any] = []

    def call(tensors: Sequence[Any]) -> dict[str, Any]:
        results.append(model(tree.pack_sequence_as(structure, tensors), training=False))
        return {_key("output", index): tensor for index, tensor in enumerate(tree.flatten(results[-1]))}

    return call, results


def _layers_of(layer: Any) -> Iterator[Any]:
    """Yields all nested layers, containers first. A model lists its layers in Keras's attribute `layers`. In any other
    layer, they are found by torch's method `children`.
    """
    for below in layer.layers if hasattr(layer, "layers") else layer.children():
        if hasattr(below, "compute_output_spec"):
            yield below
            yield from _layers_of(below)


def _largest_weight(layer: Any) -> int:
    return 0 if hasattr(layer, "layers") else max((math.prod(weight.shape) for weight in layer.weights), default=0)


_EXPORTED, _LAYER = "Exported", "layer"
_EXPORTS = {"tensorflow": _export_from_tensorflow, "torch": _export_from_torch}


def _exports_from_torch(version: str) -> bool:
    return tuple(int(part) for part in version.split(".")[:2]) >= (3, 15)


def _shape_of_one(tensor: Any) -> list[int | None]:
    """The shape of an input for one sample; None for a size that may vary."""
    return [tensor.shape[0] or 1, *tensor.shape[1:]]


def _fixed_shape(name: str, tensor: Any) -> list[int]:
    """The shape of an input for one sample, for an exporter that knows no sizes that vary."""
    shape = list(tensor.shape)
    if None in shape[1:]:
        raise ConversionError(
            f'input "{name}" has shape {shape}: only the first dimension may be unknown; '
            "build the model with a fixed input shape"
        )
    return [shape[0] or 1, *shape[1:]]


def _input_names(structure: Any, model: Any) -> dict[str, str]:
    return _names("input", structure, model.inputs, [tensor.name.split(":")[0] for tensor in model.inputs])


def _output_names(model: Any, result: Any, tree: Any) -> dict[str, str]:
    return _names("output", result, tree.flatten(result), getattr(model, "output_names", []))


def _key(side: str, index: int) -> str:
    """The key of an input or output. TensorFlow keeps such keys unchanged, and sorting them by name sorts them by
    their index.
    """
    return f"{side}_{index:04d}"


def _names(side: str, structure: Any, tensors: list[Any], given: list[str]) -> dict[str, str]:
    """Maps litebnn's keys of a model's inputs or outputs (`tensors`) to their names. If `structure` has a tensor in a
    dictionary, the tensor's name is the dictionary's key, otherwise the name in `given`.
    """
    keys: dict[int, list[str]] = {}
    for key, tensor in keyed(structure):
        keys.setdefault(id(tensor), []).append(key)
    if len(given) != len(tensors):
        given = [f"{side}_{index}" for index in range(len(tensors))]
    own = [keys[id(tensor)].pop(0) if keys.get(id(tensor)) else "" for tensor in tensors]
    # Tensors with a dictionary's key are named before the others. If Keras's name of a tensor is equal to a key, a
    # number is then appended to Keras's name, and not to the key.
    order = sorted(range(len(own)), key=lambda index: not own[index])
    names = dict(zip(order, unique_names(own[index] or given[index] for index in order), strict=True))
    return {_key(side, index): names[index] for index in range(len(tensors))}


def _is_keras_3(model: Any) -> bool:
    if not any(base.__module__.startswith("keras.") for base in type(model).__mro__):
        return False
    return not str(importlib.import_module("keras").__version__).startswith("2")
