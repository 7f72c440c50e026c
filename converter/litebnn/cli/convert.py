"""`litebnn convert`: a model file or a SavedModel folder -> a .tflite file, and the report of what was done."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litebnn.cli.parsing import add_command, add_json, at_least, file_path, not_empty
from litebnn.cli.report_file import add_report, check_report, page_of
from litebnn.errors import boundary
from litebnn.options import INTERFACE_TYPES, LOW_BIT_WEIGHTS, OPTIONS

if TYPE_CHECKING:
    from litebnn.evaluate.data_set import DataSet
    from litebnn.report.conversion import ConversionReport


def add_to(commands: Any) -> None:
    """Adds the command to those of the command line (`commands` is argparse's)."""
    parser = add_command(
        commands,
        "convert",
        "convert a model's binary layers",
        "convert model.keras -o model.tflite --verify",
        "convert saved_model/ -o model.tflite --json > report.json",
        "convert float.tflite -o model.tflite --report report.html",
        "convert float.tflite -o int8.tflite --representative-data samples.npz --inference-input-type int8",
        "convert float.tflite -o int8.tflite --representative-data imagenet/train --preprocess zoo --verify",
    )
    parser.add_argument(
        "model", type=file_path, metavar="IN", help=".tflite, .keras, .h5 or .pt2 file, or SavedModel folder"
    )
    parser.add_argument("-o", "--output", type=file_path, metavar="OUT", required=True, help=".tflite file to write")
    parser.add_argument("--verify", action="store_true", help="run source and result on random inputs and compare")
    parser.add_argument(
        "--verify-data",
        type=not_empty,
        metavar="SOURCE",
        help="verify on a data set, as of litebnn evaluate --data",
    )
    add_report(parser)
    add_json(parser)
    for name in ("inference_input_type", "inference_output_type"):
        parser.add_argument(f"--{name.replace('_', '-')}", default=OPTIONS[name].default, choices=INTERFACE_TYPES)
    parser.add_argument(
        "--representative-data",
        type=not_empty,
        metavar="SOURCE",
        help=".npy or .npz file with samples (batch first) to make the layers that are not binary int8, or a folder, "
        "parquet file or function as of litebnn evaluate --data",
    )
    parser.add_argument(
        "--preprocess",
        type=not_empty,
        default="auto",
        metavar="RECIPE",
        help="of data sets, as of litebnn evaluate",
    )
    parser.add_argument("--workers", type=at_least(0), metavar="N", help="processes for data sets; default one a core")
    parser.add_argument(
        "--scheduler", type=not_empty, metavar="ADDRESS", help="run data sets on the workers of a Dask cluster"
    )
    parser.add_argument("--default-int8-range", type=float, nargs=2, metavar=("MIN", "MAX"))
    parser.add_argument("--larq-compatible", action="store_true", help="write what Larq Compute Engine's runtime reads")
    parser.add_argument(
        "--low-bit-weights", choices=LOW_BIT_WEIGHTS, help="type for ternary and ±alpha weights of other dense layers"
    )
    parser.add_argument(
        "--dynamic-range", action="store_true", help="such layers quantize their inputs when they run (less exact)"
    )
    parser.add_argument(
        "--assume-nonzero", action="store_true", help="take sign(x), which is 0 where x is 0, for +1 there"
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from litebnn.cli.output import print_json
    from litebnn.cli.progress import progress
    from litebnn.convert import convert_tflite
    from litebnn.frontends.files import file_to_tflite
    from litebnn.model_files import check_destination, write_whole
    from litebnn.report.inspection import inspect_model

    check_destination(options.output, ".tflite", options.representative_data and Path(options.representative_data))
    check_report(options.report, options.model, options.output)
    representative = None if options.representative_data is None else _representative(options)
    with progress(f"reading {options.model.name}") as show, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with boundary():
            source = file_to_tflite(options.model)
        converted, report = convert_tflite(
            source,
            inference_input_type=options.inference_input_type,
            inference_output_type=options.inference_output_type,
            experimental_default_int8_range=options.default_int8_range and tuple(options.default_int8_range),
            representative_dataset=representative,
            larq_compatible=options.larq_compatible,
            low_bit_weights=options.low_bit_weights,
            assume_nonzero=options.assume_nonzero,
            dynamic_range=options.dynamic_range,
            verify=options.verify if options.verify_data is None else _data_set(options.verify_data, options),
            return_report=True,
            progress=lambda step: show(step.replace("_", " ")),
        )
    page = page_of(inspect_model(converted, name=options.output.name), report) if options.report else b""
    write_whole(options.output, converted)
    if options.report:
        write_whole(options.report, page)
    for warning in caught:
        if warning.category is UserWarning and Path(warning.filename) == Path(__file__):
            print(f"litebnn: warning: {warning.message}", file=sys.stderr)
    if options.json:
        print_json(report.to_dict())
    else:
        _print_report(report)


def _representative(options: argparse.Namespace) -> Any:
    path = Path(options.representative_data)
    is_data_set = path.is_dir() or path.suffix == ".parquet" or (":" in path.name and not path.exists())
    return _data_set(options.representative_data, options) if is_data_set else _samples(path)


def _data_set(source: str, options: argparse.Namespace) -> DataSet:
    from litebnn.evaluate.data_set import DataSet

    return DataSet(source, options.preprocess, workers=options.workers, scheduler=options.scheduler)


def _print_report(report: ConversionReport) -> None:
    from litebnn.cli.output import print_table
    from litebnn.report.conversion import COLUMNS, row_of

    print_table(COLUMNS, map(row_of, report.layers), numbers=("MACs", "bytes"))
    for remark in report.remarks():
        print(f"· {remark}")
    print(report.summary())


def _samples(path: Path) -> list[list[Any]]:
    """The samples of a .npy (one input) or .npz file (inputs in order), each with a batch of 1."""
    from litebnn.cli.arrays import read_arrays

    arrays = list(read_arrays(path).values())
    return [[array[i : i + 1] for array in arrays] for i in range(len(arrays[0]))]
