"""`litebnn convert`: converts a model file or a SavedModel folder to a .tflite file, and prints a report."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litebnn.cli.files.report import add_report, check_report, page_of
from litebnn.cli.parsing import OneLineParser, add_command, add_json, at_least, file_path, names_function, not_empty
from litebnn.errors import boundary
from litebnn.options import INTERFACE_TYPES, LOW_BIT_WEIGHTS, OPTIONS, STEM_TYPES

if TYPE_CHECKING:
    from litebnn.report.conversion import ConversionReport


def add_to(commands: Any) -> None:
    """Adds the command `litebnn convert` to argparse's `commands`."""
    parser = add_command(
        commands,
        "convert",
        "convert a model's binary layers",
        "convert model.keras -o model.tflite --verify",
        "convert saved_model/ -o model.tflite --json > report.json",
        "convert float.tflite -o model.tflite --report report.html",
        "convert float.tflite -o int8.tflite --representative-dataset samples.npz --inference-input-type int8",
        "convert float.tflite -o int8.tflite --representative-dataset imagenet/train --preprocess zoo --verify",
        "convert float.tflite -o model.tflite --stem int8 --input-range=-1,1 --inference-input-type uint8",
    )
    parser.add_argument(
        "model", type=file_path, metavar="IN", help=".tflite, .keras, .h5 or .pt2 file, or SavedModel folder"
    )
    parser.add_argument("-o", "--output", type=file_path, metavar="OUT", required=True, help=".tflite file to write")
    parser.add_argument(
        "--verify",
        action=argparse.BooleanOptionalAction,
        help="compare source and result on the samples, else on random inputs; the default with --assume-nonzero",
    )
    parser.add_argument(
        "--verify-data",
        type=not_empty,
        metavar="SOURCE",
        help="like --verify, but with these samples, given as for --representative-dataset",
    )
    add_report(parser)
    add_json(parser)
    for name in ("inference_input_type", "inference_output_type"):
        parser.add_argument(f"--{name.replace('_', '-')}", default=OPTIONS[name].default, choices=INTERFACE_TYPES)
    parser.add_argument(
        "--representative-dataset",
        "--representative-data",
        type=not_empty,
        metavar="SOURCE",
        help="convert the layers that are not binary to int8, with ranges from these samples: a .npy or .npz file "
        "(an array for each input, batch first, by name or in order), or a data set as for litebnn evaluate --data",
    )
    parser.add_argument(
        "--preprocess", type=not_empty, metavar="RECIPE", help="recipe for data sets, as for litebnn evaluate"
    )
    parser.add_argument(
        "--workers", type=at_least(0), metavar="N", help="processes for data sets, by default one for each core"
    )
    parser.add_argument(
        "--scheduler", type=not_empty, metavar="ADDRESS", help="run data sets on the workers of a Dask cluster"
    )
    parser.only_if(
        lambda options: any(_is_data_set(source, options) for source in _sources(options)),
        "is for a data set: expected --verify-data or --representative-dataset with a folder, a parquet file, "
        "module:function, or a .npz file of images",
        *("--preprocess", "--workers", "--scheduler"),
    )
    parser.add_argument(
        "--experimental-default-int8-range",
        "--default-int8-range",
        type=float,
        nargs=2,
        metavar=("MIN", "MAX"),
        help="range of every tensor whose range is unknown, for an int8 model that only measures latency",
    )
    _add_stem(parser)
    parser.add_argument(
        "--larq-compatible", action="store_true", help="write a file that Larq Compute Engine's runtime reads too"
    )
    parser.add_argument(
        "--low-bit-weights",
        choices=LOW_BIT_WEIGHTS,
        help="integer type for weights of ±alpha and 0 in dense layers that are not binary; those of convolutions "
        "become bits",
    )
    parser.add_argument(
        "--dynamic-range",
        action="store_true",
        help="layers with such weights quantize their inputs at run time, which is less exact",
    )
    parser.add_argument(
        "--assume-nonzero", action="store_true", help="convert sign(x) as +1 where x is 0, although the source gives 0"
    )
    parser.set_defaults(run=_run)


def _add_stem(parser: OneLineParser) -> None:
    parser.add_argument(
        "--stem", choices=STEM_TYPES, help="type of the first convolutions, of 1 to 4 channels; needs --input-range"
    )
    parser.add_argument(
        "--input-range",
        type=not_empty,
        metavar="MIN,MAX",
        help="range of the network's input images, such as =-1,1, or a recipe of litebnn evaluate --preprocess",
    )
    parser.only_if(lambda options: options.stem, "is for --stem", "--input-range")


def _run(options: argparse.Namespace) -> None:
    from litebnn.cli.files.arrays import by_input
    from litebnn.cli.output import print_json
    from litebnn.cli.progress import progress
    from litebnn.convert import convert_tflite
    from litebnn.files import check_destination, write_whole
    from litebnn.frontends.files import file_to_tflite
    from litebnn.report.inspection import inspect_model

    if options.verify is False and options.verify_data:
        raise ValueError("--no-verify and --verify-data exclude each other")
    check_destination(options.output, ".tflite", *map(Path, _sources(options)))
    check_report(options.report, options.model, options.output, *map(Path, _sources(options)))
    samples, verified = (
        source and _read(source, options) for source in (options.representative_dataset, options.verify_data)
    )
    images = options.input_range and _input_range(options.input_range)
    with progress(f"reading {options.model.name}") as show, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if options.verify and options.verify_data:
            warnings.warn("--verify has no effect beside --verify-data, on which it verifies already", stacklevel=1)
        with boundary():
            source = file_to_tflite(options.model)
        converted, report = convert_tflite(
            source,
            inference_input_type=options.inference_input_type,
            inference_output_type=options.inference_output_type,
            experimental_default_int8_range=options.experimental_default_int8_range,
            representative_dataset=_one_by_one(by_input(samples, source)) if isinstance(samples, dict) else samples,
            stem=options.stem,
            input_range=images,
            larq_compatible=options.larq_compatible,
            low_bit_weights=options.low_bit_weights,
            assume_nonzero=options.assume_nonzero,
            dynamic_range=options.dynamic_range,
            verify=by_input(verified, source) if isinstance(verified, dict) else verified or options.verify,
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


def _input_range(text: str) -> tuple[float, float]:
    """Parses the (min, max) of the option `--input-range`: two numbers, or the range to which a preprocessing recipe
    maps pixels.
    """
    from litebnn.evaluate.recipes import NAMES, range_of_pixels

    try:
        low, high = (float(number) for number in text.split(","))
    except ValueError:
        found = range_of_pixels(text)
        if found is None:
            recipes = ", ".join(NAMES[1:])
            raise ValueError(f"--input-range is {text}, expected MIN,MAX, {recipes}, or MEAN/STD") from None
        return found
    return low, high


def _sources(options: argparse.Namespace) -> list[str]:
    """The sources of samples that the options name: one for calibration, and one for verification."""
    return [source for source in (options.representative_dataset, options.verify_data) if source is not None]


def _is_data_set(source: str, options: argparse.Namespace) -> bool:
    """True if a source of samples is a data set for `litebnn evaluate`; False if it is a file with an array for each
    input.
    """
    from litebnn.evaluate.sources import holds_images

    path = Path(source)
    if path.suffix == ".npy":
        return False
    if path.suffix == ".npz":
        return options.preprocess is not None or holds_images(path)
    return path.is_dir() or path.suffix == ".parquet" or names_function(source) or not path.exists()


def _read(source: str, options: argparse.Namespace) -> Any:
    """Reads a source of samples: a `litebnn.DataSet`, or arrays by name."""
    from litebnn.cli.files.arrays import read_arrays
    from litebnn.evaluate.data_set import DataSet

    if not _is_data_set(source, options):
        return read_arrays(Path(source))
    return DataSet(source, options.preprocess or "auto", workers=options.workers, scheduler=options.scheduler)


def _print_report(report: ConversionReport) -> None:
    from litebnn.cli.output import print_table
    from litebnn.report.conversion import COLUMNS, row_of

    for line in report.headlines():
        print(line)
    print_table(COLUMNS, map(row_of, report.layers), numbers=("MACs", "bytes"))
    for remark in report.remarks():
        print(f"· {remark}")
    print(report.summary())


def _one_by_one(arrays: list[Any]) -> list[list[Any]]:
    """Splits arrays of samples into single samples, each with a batch of 1."""
    return [[array[i : i + 1] for array in arrays] for i in range(len(arrays[0]))]
