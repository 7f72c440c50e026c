"""The converter's functions: read a model, run the passes, write it."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from litebnn.calibration import insert_quantization, observe_ranges, set_interface_types
from litebnn.contract import BCONV_2D, CUSTOM_OPS
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Model, compact
from litebnn.inspect.report import ConversionReport, make_report
from litebnn.inspect.verify import verify_conversion
from litebnn.passes import BINARY_PHASES, run_phases
from litebnn.rewriting.notes import Notes

_FLOAT_OR_INT8 = ("float32", "int8")
_TARGETS = ("arm",)
_VERIFIED_SAMPLES = 16
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """The options that every `convert_*` function takes, checked."""

    inference_input_type: str = "float32"
    inference_output_type: str = "float32"
    experimental_default_int8_range: tuple[float, float] | None = None
    representative_dataset: Callable[[], Iterable[Any]] | Iterable[Any] | None = None
    verify: Any = False
    progress: Progress = lambda step: None

    @property
    def quantizes(self) -> bool:
        """Whether ranges are to be found for tensors that the model has none for."""
        return self.representative_dataset is not None or self.experimental_default_int8_range is not None


def convert_tflite(
    model: bytes | bytearray | memoryview | str | os.PathLike[str],
    *,
    inference_input_type: Any = "float32",
    inference_output_type: Any = "float32",
    target: str = "arm",
    experimental_default_int8_range: tuple[float, float] | None = None,
    representative_dataset: Callable[[], Iterable[Any]] | Iterable[Any] | None = None,
    verify: Any = False,
    return_report: bool = False,
    progress: Progress = lambda step: None,
) -> Any:
    """Converts the binary layers of a `.tflite` model; needs no TensorFlow.

    A model that holds litebnn's ops already, or no binary layer (and no request for int8), comes back as it is, the
    latter with a warning.

    Args:
        model: the model's bytes, or the path of its file.
        inference_input_type: type of the result's inputs, float32 or int8 (a name, a NumPy or a TensorFlow type).
            int8 needs a quantized model.
        inference_output_type: the same of its outputs.
        target: "arm", for every CPU that litebnn runs on.
        experimental_default_int8_range: (min, max) for every tensor whose range is not known, to measure the latency
            of an int8 model without having one; its results are meaningless.
        representative_dataset: samples that show the ranges of the activations: makes the layers that are not binary
            int8. A sample is an array of the input's shape, or a list with one for each input; or a function that
            yields such samples.
        verify: True to run source and result on random inputs in the installed runtime, or the inputs to run them on
            (an array, or a list with one for each input; batch first).
        return_report: return (bytes, ConversionReport).
        progress: is called with the name of each step.

    Returns:
        The bytes of the converted `.tflite` file, or a pair of these and the report.

    Raises:
        ConversionError: the model cannot be read or converted, or `verify` found a difference.
        ValueError: an option has a value that it cannot have.

    Example:
        >>> converted = litebnn.convert_tflite("float.tflite")  # doctest: +SKIP
        >>> pathlib.Path("binary.tflite").write_bytes(converted)  # doctest: +SKIP
    """
    options = _checked(
        target,
        inference_input_type=inference_input_type,
        inference_output_type=inference_output_type,
        experimental_default_int8_range=experimental_default_int8_range,
        representative_dataset=representative_dataset,
        verify=verify,
        progress=progress,
    )
    converted, report = _convert(*_bytes_and_name(model), options)
    return (converted, report) if return_report else converted


def convert_keras_model(
    model: Any,
    *,
    inference_input_type: Any = "float32",
    inference_output_type: Any = "float32",
    target: str = "arm",
    experimental_default_int8_range: tuple[float, float] | None = None,
    representative_dataset: Callable[[], Iterable[Any]] | Iterable[Any] | None = None,
    verify: Any = False,
    return_report: bool = False,
    progress: Progress = lambda step: None,
) -> Any:
    """Converts a Keras model: of tf-keras (Keras 2, which larq needs) or of Keras 3 with the TensorFlow backend.

    An unknown batch size becomes 1. All arguments but the first, the result and the errors are those of
    `convert_tflite`.

    Args:
        model: a built `keras.Model` in float32.

    Example:
        >>> model = larq_zoo.sota.QuickNet(weights=None)  # doctest: +SKIP
        >>> converted = litebnn.convert_keras_model(model)  # doctest: +SKIP
    """
    options = _checked(
        target,
        inference_input_type=inference_input_type,
        inference_output_type=inference_output_type,
        experimental_default_int8_range=experimental_default_int8_range,
        representative_dataset=representative_dataset,
        verify=verify,
        progress=progress,
    )
    from litebnn.frontends.keras import keras_to_tflite

    progress("TensorFlow's converter")
    converted, report = _convert(keras_to_tflite(model), "", options)
    return (converted, report) if return_report else converted


def convert_saved_model(
    saved_model_dir: str | os.PathLike[str],
    *,
    inference_input_type: Any = "float32",
    inference_output_type: Any = "float32",
    target: str = "arm",
    experimental_default_int8_range: tuple[float, float] | None = None,
    representative_dataset: Callable[[], Iterable[Any]] | Iterable[Any] | None = None,
    verify: Any = False,
    return_report: bool = False,
    progress: Progress = lambda step: None,
) -> Any:
    """Converts the `serving_default` signature of a SavedModel.

    An unknown batch size becomes 1. All arguments but the first, the result and the errors are those of
    `convert_tflite`.

    Args:
        saved_model_dir: the SavedModel's folder.

    Example:
        >>> converted = litebnn.convert_saved_model("saved_model")  # doctest: +SKIP
    """
    options = _checked(
        target,
        inference_input_type=inference_input_type,
        inference_output_type=inference_output_type,
        experimental_default_int8_range=experimental_default_int8_range,
        representative_dataset=representative_dataset,
        verify=verify,
        progress=progress,
    )
    from litebnn.frontends.saved_model import saved_model_to_tflite

    progress("TensorFlow's converter")
    converted, report = _convert(saved_model_to_tflite(saved_model_dir), "", options)
    return (converted, report) if return_report else converted


def _bytes_and_name(model: Any) -> tuple[bytes, str]:
    """What is to be converted, and the file it comes from for messages, empty where it comes from none."""
    if isinstance(model, bytes | bytearray | memoryview):
        return bytes(model), ""
    if not isinstance(model, str | os.PathLike):
        raise ConversionError(f"expected the bytes or the path of a .tflite file, got {type(model).__name__}")
    try:
        return Path(model).read_bytes(), os.fspath(model)
    except OSError as error:
        raise ConversionError(f"{os.fspath(model)} cannot be read: {error.strerror}") from None


def _checked(target: str, **values: Any) -> Options:
    if target not in _TARGETS:
        raise ValueError(f'target is "{target}", expected "arm" (which stands for every CPU)')
    for key in ("inference_input_type", "inference_output_type"):
        values[key] = _type_name(key, values[key])
    limits = values["experimental_default_int8_range"]
    if limits is not None:
        try:
            low, high = (float(limit) for limit in limits)
        except (TypeError, ValueError):
            low = high = 0.0
        if not low < high:
            raise ValueError(f"experimental_default_int8_range is {limits}, expected (min, max) with min < max")
        values["experimental_default_int8_range"] = (low, high)
        _warn("experimental_default_int8_range makes an int8 model for measuring latency: its results are meaningless")
        for other in ("representative_dataset", "verify"):
            if values[other] is not None and values[other] is not False:
                raise ValueError(f"experimental_default_int8_range and {other} exclude each other")
    return Options(**values)


def _type_name(key: str, value: Any) -> str:
    name = value if isinstance(value, str) else getattr(value, "name", None) or getattr(value, "__name__", repr(value))
    if name not in _FLOAT_OR_INT8:
        raise ValueError(f"{key} is {name}, expected float32 or int8")
    return str(name)


def _convert(source: bytes, name: str, options: Options) -> tuple[bytes, ConversionReport]:
    options.progress("reading")
    try:
        model = read_model(source)
    except ConversionError as error:
        raise ConversionError(f"{name}: {error}" if name else str(error)) from error
    notes = Notes(model)
    if any(op.name in CUSTOM_OPS for op in model.ops()):
        return source, make_report(notes, len(source), len(source), "already converted")
    run_phases(model, BINARY_PHASES, notes, options.progress)
    binary = any(op.name == BCONV_2D for op in model.ops())
    if not binary:
        _warn("no binary layer was found (the report says why for each layer)")
        if not options.quantizes and "int8" not in (options.inference_input_type, options.inference_output_type):
            return source, make_report(notes, len(source), len(source), "no binary layer")
    if options.quantizes:
        _insert_quantization(model, options)
    run_phases(model, ("int8",), notes, options.progress)
    set_interface_types(model, options.inference_input_type, options.inference_output_type)
    converted = _finish(model, notes, options)
    report = make_report(notes, len(source), len(converted))
    if options.verify is not False and options.verify is not None:
        options.progress("verifying")
        report = replace(report, difference=verify_conversion(source, converted, _verification_inputs(options)))
    return converted, report


def _verification_inputs(options: Options) -> Any:
    """What to verify with: the given inputs, else those whose ranges the model was quantized for, else random ones."""
    if options.verify is not True:
        return options.verify
    if options.representative_dataset is None:
        return None
    dataset = options.representative_dataset
    samples = list(islice(dataset() if callable(dataset) else dataset, _VERIFIED_SAMPLES))
    columns = zip(*(s if isinstance(s, list | tuple) else [s] for s in samples), strict=True)
    return [np.concatenate(column) for column in columns]


def _insert_quantization(model: Model, options: Options) -> None:
    ranges = None
    if options.representative_dataset is not None:
        options.progress("running the representative dataset")
        ranges = observe_ranges(write_model(model), options.representative_dataset)
    insert_quantization(model, ranges, options.experimental_default_int8_range, options.inference_input_type)


def _finish(model: Model, notes: Notes, options: Options) -> bytes:
    run_phases(model, ("tidy",), notes, options.progress)
    compact(model)
    notes.finish(model.graphs)
    options.progress("writing")
    return write_model(model)


def _warn(message: str) -> None:
    """A warning that points at the line that called one of this module's functions."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)
