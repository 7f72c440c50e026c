"""`litebnn convert`: converts a model file or a SavedModel folder to a .tflite file, and prints a report."""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litebnn.cli.parsing import OneLineParser, add_command, add_json, at_least, file_path, names_function, not_empty
from litebnn.cli.shared import add_report, check_report, page_of
from litebnn.errors import boundary
from litebnn.options import OPTIONS, flag_of

if TYPE_CHECKING:
    from litebnn.report.conversion import ConversionReport

# Options whose values a command line says in another way: argparse's arguments for them, and the end of their help.
_AS_TEXT: dict[str, tuple[dict[str, Any], str]] = {
    "representative_dataset": (
        {"type": not_empty, "metavar": "SOURCE"},
        ": a .npy or .npz file (an array for each input, batch first, by name or in order), or a data set as for "
        "litebnn evaluate --data",
    ),
    "input_range": (
        {"type": not_empty, "metavar": "MIN,MAX"},
        ", such as =-1,1, or a recipe of litebnn evaluate --preprocess",
    ),
    "verify": ({"action": argparse.BooleanOptionalAction}, ""),
}
_OPTIONS = {name: row for name, row in OPTIONS.items() if row.kind.arguments is not None or name in _AS_TEXT}


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
        "--verify-data",
        type=not_empty,
        metavar="SOURCE",
        help="like --verify, but with these samples, given as for --representative-dataset",
    )
    add_report(parser)
    add_json(parser)
    _add_options(parser)
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
    parser.set_defaults(run=_run)


def _add_options(parser: OneLineParser) -> None:
    """Adds the rows of `OPTIONS` whose values a command line can have."""
    for name, option in _OPTIONS.items():
        arguments, more = _AS_TEXT.get(name, (option.kind.arguments or {}, ""))
        parser.add_argument(
            *(flag_of(spelled) for spelled in (name, option.alias) if spelled),
            default=option.default,
            help=re.sub(r"`(\w+)`", lambda found: flag_of(found[1]), option.first_sentence) + more,
            **arguments,
        )
        if option.needs:
            needed = attrgetter(option.needs)
            parser.only_if(needed, f"needs {flag_of(option.needs)}, which is not given", flag_of(name))


def _run(options: argparse.Namespace) -> None:
    from litebnn.cli.output import print_json
    from litebnn.cli.progress import progress
    from litebnn.cli.shared import by_input
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
    given: dict[str, Any] = {"input_range": options.input_range and _input_range(options.input_range)}
    with progress(f"reading {options.model.name}") as show, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if options.verify and options.verify_data:
            warnings.warn("--verify has no effect beside --verify-data, on which it verifies already", stacklevel=1)
        with boundary():
            source = file_to_tflite(options.model)
        given["representative_dataset"] = (
            _one_by_one(by_input(samples, source)) if isinstance(samples, dict) else samples
        )
        given["verify"] = by_input(verified, source) if isinstance(verified, dict) else verified or options.verify
        converted, report = convert_tflite(
            source,
            **{name: getattr(options, name) for name in _OPTIONS} | given,
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
    from litebnn.cli.shared import read_arrays
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
