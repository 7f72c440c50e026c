"""The converter's functions: read a model, run the passes, write it."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from litebnn.calibration import assume_range, observe_ranges
from litebnn.contract import CUSTOM_OPS, LCE_BCONV_2D
from litebnn.errors import ConversionError, boundary, warn
from litebnn.evaluate.data_set import DataSet
from litebnn.flatbuffer import read_model, write_model
from litebnn.frontends.keras import keras_to_tflite
from litebnn.frontends.saved_model import saved_model_to_tflite
from litebnn.frontends.torch import torch_to_tflite
from litebnn.graph import Model, check_control_dependencies, check_custom_ops, compact, drop_control_dependencies
from litebnn.model_files import read_file
from litebnn.options import ConvertOptions, asks_for_more, asks_to_verify, checked, shows_options
from litebnn.passes import BINARY_PHASES, run_phases
from litebnn.passes.find_signs.assume_nonzero import assume_nonzero
from litebnn.passes.int8.insert_quantization import Ranges, insert_quantization
from litebnn.passes.int8.narrow_weights import narrow_weights
from litebnn.passes.int8.set_interface_types import set_interface_types
from litebnn.report.conversion import make_report
from litebnn.report.verify import Verification, verify_apart, verify_data_set
from litebnn.rewriting.notes import Notes
from litebnn.runtime.predictor import arrays_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

_VERIFIED_SAMPLES = 16


@shows_options
def convert_tflite(
    model: bytes | bytearray | memoryview | str | os.PathLike[str], **options: Unpack[ConvertOptions]
) -> Any:
    """Converts the binary layers of a `.tflite` model; needs no TensorFlow.

    A model that holds litebnn's ops already, or no binary layer (and no request for int8), comes back as it is, the
    former if they would load, the latter with a warning. Weights that it computes from constants at every inference
    become constants all the same, where the file does not grow by it.

    Args:
        model: the model's bytes, or the path of its file.
        inference_input_type: type of the result's inputs, float32 or int8 (a name, a NumPy or a TensorFlow type).
            int8 needs a quantized model.
        inference_output_type: the same of its outputs.
        target: "arm", for every CPU that litebnn runs on.
        experimental_default_int8_range: (min, max) for every tensor whose range is not known, to measure the latency
            of an int8 model without having one; its results are meaningless.
        representative_dataset: samples that show the ranges of the activations: makes the layers that are not binary
            int8. A sample is an array of the input's shape, or a list with one for each input, or a dictionary of them
            by the names of the model's signature; or a function that yields such samples; or a `litebnn.DataSet`.
        larq_compatible: write what Larq Compute Engine's own runtime reads too, which is slower where layers pad with
            zeros.
        low_bit_weights: "int4" or "int2" to write the ternary and ±alpha weights of dense layers that are not binary
            in this type. The file gets smaller and needs a newer runtime, which the report names; results stay.
        dynamic_range: such layers quantize their inputs to int8 when they run. They get faster, and results change by
            about 1 %.
        assume_nonzero: take sign(x), which is 0 where x is 0, for a sign of two values that is +1 there. The report
            names each that is. PyTorch's and TensorFlow's own sign functions need it.
        verify: True to run source and result on random inputs in the installed runtime, or the inputs to run them on
            (an array, or a list or dictionary with one for each input; batch first; or a `litebnn.DataSet`).
        return_report: return (bytes, ConversionReport).
        progress: is called with the name of each step.

    Returns:
        The bytes of the converted `.tflite` file, or a pair of these and the report.

    Raises:
        ConversionError: the model cannot be read or converted, or `verify` found a difference; also where litebnn
            itself fails, which the message says.
        ValueError: an option has a value that it cannot have.
        TypeError: there is no option of that name.
        Whatever `progress` and `representative_dataset` raise comes through as it is.

    Example:
        >>> converted = litebnn.convert_tflite("float.tflite")  # doctest: +SKIP
        >>> pathlib.Path("binary.tflite").write_bytes(converted)  # doctest: +SKIP
    """
    settings = checked(options)
    return _converted(*_bytes_and_name(model), settings)


@shows_options
def convert_keras_model(model: Any, **options: Unpack[ConvertOptions]) -> Any:
    """Converts a Keras model: of tf-keras (Keras 2, which larq needs) or of Keras 3, which litebnn.keras trains.

    Keras 3 exports from the backends TensorFlow and torch (this needs litert-torch and Keras 3.15), and not from JAX.

    An unknown batch size becomes 1. All arguments but the first, the result and the errors are those of
    `convert_tflite`.

    Args:
        model: a built `keras.Model` in float32.

    Example:
        >>> model = larq_zoo.sota.QuickNet(weights=None)  # doctest: +SKIP
        >>> converted = litebnn.convert_keras_model(model)  # doctest: +SKIP
    """
    settings = checked(options)
    settings["progress"]("Keras's exporter")
    with boundary():
        source = keras_to_tflite(model)
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

    The module is converted in evaluation mode and left as it was. The file has one shape for each input, that of the
    example, batch size and all. Its signature names inputs as the arguments of `forward`, and outputs by the keys of
    the dictionary that it gives, else output_0, output_1 and so on. All other arguments, the result and the errors
    are those of `convert_tflite`.

    Args:
        module: a `torch.nn.Module` in float32 on the CPU.
        example_inputs: a tensor, or a list with one for each input, or a dictionary of them by the names of the
            arguments of `forward`.
        channels_last: what has four axes, [n, channels, height, width] for the module, is [n, height, width, channels]
            in the file, as cameras and most users of `.tflite` files have it. By default the file is as the module.

    Example:
        >>> module = nn.Sequential(nn.Conv2d(3, 32, 3), litebnn.torch.BinaryConv2d(32, 64, 3))  # doctest: +SKIP
        >>> converted = litebnn.convert_torch_model(module, torch.randn(1, 3, 32, 32))  # doctest: +SKIP
    """
    settings = checked(options)
    settings["progress"]("litert-torch")
    with boundary():
        source = torch_to_tflite(module, example_inputs, channels_last)
    return _converted(source, "", settings)


def _bytes_and_name(model: Any) -> tuple[bytes, str]:
    """What is to be converted, and the file it comes from for messages, empty where it comes from none."""
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
    """The way of every model: it is read, rewritten, written, reported on and, where that is asked for, verified."""
    if options["experimental_default_int8_range"] is not None:
        warn(
            "experimental_default_int8_range makes an int8 model for measuring latency: its results are meaningless",
            __name__,
        )
    options["progress"]("reading")
    with boundary():
        model = _read(source, name)
        notes = Notes(model)
    status = _rewrite(model, notes, options)
    is_changed = status == "converted"
    if status == "no binary layer":
        with boundary():
            model = _read(source, name)  # what the passes have prepared for bits is of no use without them
        is_changed = _fold_weights(model, options)
    result, verification = source, None
    if is_changed:
        options["progress"]("writing")
        with boundary():
            result = write_model(model)
            _check_loads(read_model(result), "the converted model")
        verification = _verification(source, result, model.input_names, options)
    elif asks_to_verify(options):
        warn("nothing is verified: the result is the source itself", __name__)
    with boundary():
        report = make_report(notes, model, len(source), len(result), status, verification)
    return (result, report) if options["return_report"] else result


def _read(source: bytes, name: str) -> Model:
    try:
        return read_model(source)
    except ConversionError as error:
        raise ConversionError(f"{name}: {error}" if name else str(error)) from error


def _rewrite(model: Model, notes: Notes, options: ConvertOptions) -> str:
    """Runs the passes, and returns the status for the report."""
    progress = options["progress"]
    input_type, output_type = options["inference_input_type"], options["inference_output_type"]
    if any(op.name in CUSTOM_OPS for op in model.ops()):
        with boundary():
            _check_loads(model, "the model")
        if asks_for_more(options):
            warn("the model is converted already and stays as it is: int8 and int4 are for its float model", __name__)
        return "already converted"
    drop_control_dependencies(model)
    if options["assume_nonzero"]:
        run_phases(model, ("layout", "find_signs"), notes, progress)
        assume_nonzero(model, notes)
    run_phases(model, BINARY_PHASES, notes, progress)
    if not any(op.name == LCE_BCONV_2D for op in model.ops()):
        warn("no binary layer was found (the report says why for each layer)", __name__)
        if not asks_for_more(options):
            return "no binary layer"
    if (ranges := _ranges(model, options)) is not None:
        with boundary():
            insert_quantization(model, ranges, input_type, notes)
    run_phases(model, ("int8",), notes, progress)
    if options["low_bit_weights"] is not None:
        with boundary():
            narrow_weights(model, options["low_bit_weights"].upper(), options["dynamic_range"], notes)
    with boundary():
        set_interface_types(model, input_type, output_type)
    if options["larq_compatible"]:
        run_phases(model, ("for_larq",), notes, progress)
    run_phases(model, ("tidy",), notes, progress)
    with boundary():
        compact(model)
        notes.finish(model.graphs)
    return "converted"


def _fold_weights(model: Model, options: ConvertOptions) -> bool:
    """Makes constants of what a model without bits computes its weights from; whether there were any."""
    notes = Notes(model)
    if not run_phases(model, ("without_bits",), notes, options["progress"]):
        return False
    drop_control_dependencies(model)
    run_phases(model, ("tidy",), notes, options["progress"])
    with boundary():
        compact(model)
    return True


def _check_loads(model: Model, what: str) -> None:
    """Looks at litebnn's ops, and who waits for them, as a runtime would: what could not load is never handed out."""
    try:
        for graph in model.graphs:
            check_custom_ops(graph)
        check_control_dependencies(model)
    except ConversionError as error:
        raise ConversionError(f"{what} would not load: {error}") from error


def _ranges(model: Model, options: ConvertOptions) -> Ranges | None:
    """The ranges to quantize the activations for; None where they are to stay as they are."""
    if options["representative_dataset"] is not None:
        step = "running the representative dataset"
        options["progress"](step)
        return observe_ranges(
            model, options["representative_dataset"], lambda runs: options["progress"](f"{step}: {runs} runs")
        )
    limits = options["experimental_default_int8_range"]
    return None if limits is None else assume_range(model, limits)


def _verification(source: bytes, result: bytes, names: list[str], options: ConvertOptions) -> Verification | None:
    """What verifying finds: on the given inputs, else on samples that ranges were found with, else on random ones."""
    if not asks_to_verify(options):
        return None
    inputs, dataset = options["verify"], options["representative_dataset"]
    options["progress"]("verifying")
    large = next((each for each in (inputs, dataset) if isinstance(each, DataSet)), None)
    if large is not None and (inputs is True or inputs is large):
        return verify_data_set(source, result, large)
    if inputs is True:
        inputs = None
        if dataset is not None:
            samples = islice(dataset() if callable(dataset) else dataset, _VERIFIED_SAMPLES)
            columns = zip(*(arrays_of(sample, names) for sample in samples), strict=True)
            inputs = [np.concatenate(column) for column in columns] or None
    return verify_apart(source, result, inputs)
