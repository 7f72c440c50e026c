"""The converter's functions: each reads a model, runs the rules, and writes the result.

What only some conversions need is imported by these: frontends, calibration, verification, the report.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litebnn.analysis.quantization import Ranges
from litebnn.analysis.weights import computed_weights
from litebnn.contract import CUSTOM_OPS, LCE_BCONV_2D
from litebnn.errors import ConversionError, boundary, warn
from litebnn.files import read_file
from litebnn.flatbuffer import read_model, write_result
from litebnn.graph import Model, begin_rewriting, facts, finish_rewriting
from litebnn.options import (
    ConvertOptions,
    asked_rewrites,
    asks_for_more,
    asks_to_verify,
    checked,
    shows_options,
    verifies,
)
from litebnn.rules.build.notes import ALREADY_CONVERTED, CONVERTED, INT8_ONLY, NO_BINARY_LAYER, Notes, Request
from litebnn.rules.phases import BINARY_PHASES, FINAL_PHASES, INT8_PHASES, PHASES_WITHOUT_BITS, run_phases

if TYPE_CHECKING:
    from typing_extensions import Unpack


@shows_options
def convert_tflite(
    model: bytes | bytearray | memoryview | str | os.PathLike[str], **options: Unpack[ConvertOptions]
) -> Any:
    """Converts the binary layers of a `.tflite` model; needs no TensorFlow.

    A model that already has litebnn's ops is returned unchanged, after a check that a runtime can load the ops. Options
    that ask for another result are refused. A model without binary layers is returned unchanged too, with a warning,
    unless int8 is requested. Two things still change in such a model. Layers that were trained with fake quantization
    become int8. Weights that the model computes from constants at every inference become constants, if the file does
    not grow.

    Args:
        model: the model's bytes, or the path of its file.
        inference_input_type: the type of the result's inputs: float32, int8 or uint8. It is a name, or a type of NumPy
            or TensorFlow. int8 and uint8 need a quantized model, or a `stem`.
        inference_output_type: the type of the result's outputs, as for `inference_input_type`.
        target: "arm", the only value; the result runs on every CPU that litebnn supports.
        experimental_default_int8_range: the (min, max) for every tensor with an unknown range, to measure the latency
            of int8 without samples. The outputs are then meaningless.
        representative_dataset: samples that show the ranges of the activations. They make the layers that are not
            binary int8. A sample is an array of the input's shape. For several inputs it is a list, or a dictionary by
            the names of the model's signature. A function that yields samples, or a `litebnn.DataSet`, is accepted too.
        stem: "int8" to quantize only the convolutions of 1 to 4 channels that read the network's images. The
            option needs `input_range`, and no samples.
        input_range: the (min, max) of the network's images, after preprocessing.
        larq_compatible: True for a file that Larq Compute Engine's own runtime reads too; layers that pad with zeros
            are slower in it.
        low_bit_weights: "int4" or "int2" to write the ternary and ±alpha weights of dense layers that are not binary in
            this type. The file gets smaller and needs a newer runtime, which the report names. With either value,
            ±alpha weights of float convolutions take one bit each, and ternary ones two, which needs litebnn's library.
            Results are equal.
        dynamic_range: True to make the layers of `low_bit_weights` quantize their inputs to int8 at run time. They get
            faster, and results change by about 1 %.
        assume_nonzero: True to treat sign(x), which is 0 for x = 0, as a sign that is +1 there. The report names each
            such sign. The sign functions of PyTorch and TensorFlow need this option. Zeros that are certain or likely,
            such as those of padding and of sums of signs, stay 0.
        verify: True to run source and result in the installed runtime on the samples of `representative_dataset`, else
            on random inputs, and compare the outputs. Instead of True, the inputs themselves: an array, or a list or
            dictionary with one for each input, batch first; or a `litebnn.DataSet`. By default, conversions with
            `assume_nonzero` are verified, with a warning instead of an error if the models cannot be run.
        return_report: True to return (bytes, ConversionReport) instead of bytes.
        progress: called with the name of each step.

    Returns:
        The bytes of the converted `.tflite` file, or a pair of these and the report.

    Raises:
        ConversionError: the model cannot be read or converted, or `verify` found a difference. Also raised if litebnn
            itself fails, which the message says.
        ValueError: an option has a value that it cannot have.
        TypeError: there is no option of that name, or an option's value has a type that it cannot have. Errors that
            `progress` and `representative_dataset` raise are passed on unchanged.

    Example:
        >>> converted = litebnn.convert_tflite("float.tflite")  # doctest: +SKIP
        >>> pathlib.Path("binary.tflite").write_bytes(converted)  # doctest: +SKIP
    """
    settings = checked(options)
    source, name = _bytes_and_name(model)
    return _converted(source, name, settings)


@shows_options
def convert_keras_model(model: Any, **options: Unpack[ConvertOptions]) -> Any:
    """Converts a Keras model, of tf-keras (Keras 2, which larq needs) or of Keras 3 (with which litebnn.keras
    trains).

    Keras 3 can export with the backends TensorFlow and torch, but not with JAX. With torch it needs litert-torch and
    Keras 3.15.

    An unknown batch size becomes 1. All arguments but the first, the result and the errors are those of
    `convert_tflite`.

    Args:
        model: a built `keras.Model` in float32, or the path of a `.keras` or `.h5` file or of a SavedModel folder. A
            model of a class of yours is built when it has been called, by itself or in `fit` or `predict`.

    Example:
        >>> model = larq_zoo.sota.QuickNet(weights=None)  # doctest: +SKIP
        >>> converted = litebnn.convert_keras_model(model)  # doctest: +SKIP
    """
    from litebnn.frontends.files import keras_file_to_tflite
    from litebnn.frontends.keras import keras_to_tflite

    settings = checked(options)
    settings["progress"]("Keras's exporter")
    with boundary():
        is_path = isinstance(model, str | os.PathLike)
        source = keras_file_to_tflite(Path(model)) if is_path else keras_to_tflite(model)
    return _converted(source, "", settings)


@shows_options
def convert_saved_model(saved_model_dir: str | os.PathLike[str], **options: Unpack[ConvertOptions]) -> Any:
    """Converts the `serving_default` signature of a SavedModel.

    An unknown batch size becomes 1. All arguments but the first, the result and the errors are those of
    `convert_tflite`.

    Args:
        saved_model_dir: the SavedModel's folder.

    Example:
        >>> converted = litebnn.convert_saved_model("saved_model")  # doctest: +SKIP
    """
    from litebnn.frontends.tensorflow import saved_model_to_tflite

    settings = checked(options)
    settings["progress"]("TensorFlow's converter")
    with boundary():
        source = saved_model_to_tflite(saved_model_dir)
    return _converted(source, "", settings)


@shows_options
def convert_torch_model(
    module: Any, example_inputs: Any, *, channels_last: bool = False, **options: Unpack[ConvertOptions]
) -> Any:
    """Converts a PyTorch module, through litert-torch; needs no TensorFlow.

    The module is converted in evaluation mode and not changed. The file's inputs have the shapes of the examples,
    including the batch size. Its signature names inputs after the arguments of `forward`. Outputs are named by the keys
    of the returned dictionary, else output_0, output_1 and so on. All other arguments, the result and the errors are
    those of `convert_tflite`.

    Args:
        module: a `torch.nn.Module` in float32 on the CPU.
        example_inputs: a tensor, a list with one tensor for each input, or a dictionary of them by the names of
            `forward`'s arguments.
        channels_last: True to transpose the module's inputs and outputs [n, channels, height, width] to
            [n, height, width, channels] in the file. Cameras and most users of `.tflite` files have these.

    Example:
        >>> module = nn.Sequential(nn.Conv2d(3, 32, 3), litebnn.torch.BinaryConv2d(32, 64, 3))  # doctest: +SKIP
        >>> converted = litebnn.convert_torch_model(module, torch.randn(1, 3, 32, 32))  # doctest: +SKIP
    """
    from litebnn.frontends.torch import torch_to_tflite

    settings = checked(options)
    settings["progress"]("litert-torch")
    with boundary():
        source = torch_to_tflite(module, example_inputs, channels_last)
    return _converted(source, "", settings)


def _bytes_and_name(model: Any) -> tuple[bytes, str]:
    """The bytes of a model, and the file's name for messages. The name is empty for a model in memory."""
    if isinstance(model, bytes | bytearray | memoryview):
        return bytes(model), ""
    if not isinstance(model, str | os.PathLike):
        raise ConversionError(f"expected the bytes or the path of a .tflite file, got {type(model).__name__}")
    try:
        return read_file(model), os.fspath(model)
    except OSError as error:
        raise ConversionError(f"{os.fspath(model)} cannot be read: {error.strerror}") from None
    except MemoryError:
        raise ConversionError(f"{os.fspath(model)} cannot be read: there is not enough memory") from None


def _converted(source: bytes, name: str, options: ConvertOptions) -> Any:
    """Reads, rewrites, writes, reports on and, on request, verifies a model."""
    if options["experimental_default_int8_range"] is not None:
        warn(
            "experimental_default_int8_range makes an int8 model for measuring latency: its results are meaningless",
            __name__,
        )
    options["progress"]("reading")
    with boundary():
        model = _read(source, name)
        names = model.input_names
        notes = Notes(model, _request(options))
        folds = any(list(computed_weights(graph, op)) for graph in model.graphs for op in graph.ops)
        is_trained = any(op.name == "QUANTIZE" and op.input(0).type == "FLOAT32" for op in model.ops())
    status = _rewrite(model, notes, options)
    is_changed = status == CONVERTED
    if status == NO_BINARY_LAYER:
        # The source is read again, because the rules' changes are useful only for binary layers.
        trained = _as_trained(source, notes, options) if is_trained else None
        if trained is not None:
            model, notes, status = trained
            is_changed = True
        elif folds:
            with boundary():
                model = read_model(source)
            is_changed = _fold_weights(model, options)
    result, verification = source, None
    if is_changed:
        options["progress"]("writing")
        with boundary():
            result = write_result(model, source)
        if verifies(options) and (status == CONVERTED or asks_to_verify(options)):
            from litebnn.verify.on_request import verification_of

            verification = verification_of(source, result, names, notes.layers, options)
    elif asks_to_verify(options):
        warn("nothing is verified: the result is the source itself", __name__)
    if not options["return_report"]:
        return result
    from litebnn.report.conversion import make_report

    with boundary():
        return result, make_report(notes, model, source, len(result), status, verification)


def _read(source: bytes, name: str) -> Model:
    try:
        return read_model(source)
    except ConversionError as error:
        raise ConversionError(f"{name}: {error}" if name else str(error)) from error


def _rewrite(model: Model, notes: Notes, options: ConvertOptions) -> str:
    """Runs the rules on the graph, and returns the status of the conversion for the report."""
    if any(op.name in CUSTOM_OPS for op in model.ops()):
        from litebnn.safety import check_loads

        with boundary():
            check_loads(model, "the model")
        if asked := asked_rewrites(options):
            raise ConversionError(f"{', '.join(asked)}: the model is converted already, expected its float model")
        return ALREADY_CONVERTED
    begin_rewriting(model)
    run_phases(model, BINARY_PHASES, notes, options["progress"])
    if not any(op.name == LCE_BCONV_2D for op in model.ops()):
        warn("no binary layer was found (the report says why for each layer)", __name__)
        if not asks_for_more(options):
            return NO_BINARY_LAYER
    notes.request = replace(notes.request, ranges=_ranges(model, notes, options))
    run_phases(model, FINAL_PHASES, notes, options["progress"])
    with boundary():
        finish_rewriting(model)
    return CONVERTED


def _ranges(model: Model, notes: Notes, options: ConvertOptions) -> Ranges:
    """The ranges of the activations that become int8; empty if no option gives any."""
    given = options["representative_dataset"], options["experimental_default_int8_range"], options["input_range"]
    if all(value is None for value in given):
        return {}
    from litebnn.quantize.calibration import find_ranges

    return find_ranges(model, notes, options)


def _as_trained(source: bytes, binary: Notes, options: ConvertOptions) -> tuple[Model, Notes, str] | None:
    """Makes the layers and weights int8 that were trained with fake quantization. Returns None if there are none.

    Args:
        binary: the notes of the rules for binary layers. Their reasons go into the notes that are returned.
    """
    with boundary():
        model = read_model(source)
        notes = Notes(model, binary.request)
    reasons = {layer.name: layer.reasons for layer in binary.layers}
    for layer in notes.layers:
        layer.reasons.update(reasons.get(layer.name, {}))
    layers, constants = _int8_layers(model), _quantized_constants(model)
    begin_rewriting(model)
    run_phases(model, INT8_PHASES, notes, options["progress"])
    status = INT8_ONLY if _int8_layers(model) > layers else NO_BINARY_LAYER
    if status == NO_BINARY_LAYER and _quantized_constants(model) == constants:
        return None
    with boundary():
        finish_rewriting(model)
        notes.finish(model.graphs)
    return model, notes, status


def _int8_layers(model: Model) -> int:
    return sum(bool(facts(op).layer) and op.output.type == "INT8" for op in model.ops())


def _quantized_constants(model: Model) -> int:
    """The number of constants that the model quantizes at every inference."""
    return sum(op.name == "QUANTIZE" and op.input(0).is_constant for op in model.ops())


def _fold_weights(model: Model, options: ConvertOptions) -> bool:
    """Folds the weights that a model without binary layers computes at run time into constants. Returns True if
    there were any.
    """
    begin_rewriting(model)
    if not run_phases(model, PHASES_WITHOUT_BITS[:1], notes := Notes(model), options["progress"]):
        return False
    run_phases(model, PHASES_WITHOUT_BITS[1:], notes, options["progress"])
    with boundary():
        finish_rewriting(model)
    return True


def _request(options: ConvertOptions) -> Request:
    return Request(
        assume_nonzero=options["assume_nonzero"],
        input_type=options["inference_input_type"],
        output_type=options["inference_output_type"],
        low_bit_weights=(options["low_bit_weights"] or "").upper(),
        dynamic_range=options["dynamic_range"],
        larq_compatible=options["larq_compatible"],
    )
