"""`litebnn summary`: estimates the cost of an untrained model after conversion."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from litebnn.cli.parsing import add_command, add_json, names_function, not_empty, shape
from litebnn.cli.shared import add_microcontroller, add_report, check_report, estimated


def add_to(commands: Any) -> None:
    """Adds the command `litebnn summary` to argparse's `commands`."""
    parser = add_command(
        commands,
        "summary",
        "estimate the cost of a Keras, Larq or PyTorch model before it is trained",
        "summary networks:quicknet",
        "summary networks:BinaryNet --input-shape=1,3,32,32",
        "summary untrained.keras --json > untrained.json",
        "summary untrained.keras --report report.html",
    )
    parser.add_argument(
        "model",
        type=not_empty,
        metavar="MODEL",
        help="MODULE:FUNCTION that builds the model, or a .keras, .h5, .pt2 or .tflite file, or SavedModel folder",
    )
    parser.add_argument(
        "--input-shape",
        type=shape,
        action="append",
        default=[],
        metavar="N,C,H,W",
        help="shape of a PyTorch module's input; once for each input, in order",
    )
    parser.only_if(
        lambda options: names_function(options.model),
        "is for a PyTorch module: expected MODULE:FUNCTION that builds one",
        "--input-shape",
    )
    add_report(parser)
    add_json(parser)
    add_microcontroller(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    import warnings

    from litebnn.cli.inspect import show as show_inspection
    from litebnn.cli.progress import progress
    from litebnn.convert import convert_tflite
    from litebnn.errors import boundary
    from litebnn.frontends.callables import callable_to_tflite
    from litebnn.frontends.files import file_to_tflite
    from litebnn.report.inspection import inspect_model

    check_report(options.report, Path(options.model))
    with progress(f"building {options.model}") as show, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with boundary():
            if names_function(options.model):
                source = callable_to_tflite(options.model, options.input_shape)
            else:
                source = file_to_tflite(Path(options.model))
        converted, conversion = convert_tflite(
            source, return_report=True, progress=lambda step: show(step.replace("_", " "))
        )
        inspection = inspect_model(converted, name=options.model)
    show_inspection(inspection, options, conversion, estimated(converted, options))
