"""The command `litebnn`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TextIO

import numpy as np

from litebnn import __version__


class _OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}", file=sys.stderr)
        raise SystemExit(1)


def _parser() -> argparse.ArgumentParser:
    parser = _OneLineParser(prog="litebnn", description="Binarized neural networks in TensorFlow Lite and LiteRT.")
    parser.add_argument("--version", action="version", version=f"litebnn {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_OneLineParser)
    convert = commands.add_parser("convert", help="convert a model's binary layers")
    convert.add_argument("model", type=Path, metavar="IN", help=".tflite, .keras or .h5 file, or SavedModel folder")
    convert.add_argument("-o", "--output", type=Path, metavar="OUT", required=True, help=".tflite file to write")
    convert.add_argument("--verify", action="store_true", help="run source and result on random inputs and compare")
    convert.add_argument("--json", action="store_true", help="print the report as JSON")
    convert.add_argument("--inference-input-type", default="float32", choices=("float32", "int8"))
    convert.add_argument("--inference-output-type", default="float32", choices=("float32", "int8"))
    convert.add_argument(
        "--representative-data",
        type=Path,
        metavar="FILE",
        help=".npy or .npz file with samples (batch first) to make the layers that are not binary int8",
    )
    convert.add_argument("--default-int8-range", type=float, nargs=2, metavar=("MIN", "MAX"))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code: 0, or 1 after a one-line message."""
    from litebnn.errors import ConversionError

    options = _parser().parse_args(arguments)
    try:
        return _convert(options)
    except (ConversionError, ValueError, OSError) as error:
        message = " ".join(str(error).split())
        if isinstance(error, ConversionError) and str(options.model) not in message:
            message = f"{options.model}: {message}"
        print(f"litebnn: {message}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("litebnn: interrupted", file=sys.stderr)
        return 1


def _convert(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from litebnn.convert import convert_tflite
    from litebnn.frontends.files import file_to_tflite

    if not options.output.parent.is_dir():
        raise ValueError(f"{options.output.parent} is no folder to write {options.output.name} to")
    if options.output.exists() and not options.output.is_file():
        raise ValueError(f"{options.output} is no file: expected the name of a .tflite file to write")
    representative = None if options.representative_data is None else _samples(options.representative_data)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with (
        _native_logs_silenced() as terminal,
        Progress(*columns, console=Console(file=terminal), transient=True, disable=not terminal.isatty()) as bar,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        task = bar.add_task(f"reading {options.model.name}", total=None)
        converted, report = convert_tflite(
            file_to_tflite(options.model),
            inference_input_type=options.inference_input_type,
            inference_output_type=options.inference_output_type,
            experimental_default_int8_range=options.default_int8_range and tuple(options.default_int8_range),
            representative_dataset=representative,
            verify=options.verify,
            return_report=True,
            progress=lambda step: bar.update(task, description=step.replace("_", " ")),
        )
    _write_whole(options.output, converted)
    for warning in caught:
        if warning.category is UserWarning and Path(warning.filename) == Path(__file__):
            print(f"litebnn: warning: {warning.message}", file=sys.stderr)
    if options.json:
        print(json.dumps(report.to_dict(), indent=2))
    else:
        _print_report(report)
    return 0


@contextmanager
def _native_logs_silenced() -> Iterator[TextIO]:
    """Keeps what TensorFlow and the runtimes log natively off the terminal, which it gives for our own progress."""
    with os.fdopen(os.dup(2), "w") as terminal, Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield terminal
        finally:
            os.dup2(terminal.fileno(), 2)


def _print_report(report: object) -> None:
    from rich.console import Console
    from rich.table import Table

    from litebnn.inspect.report import ConversionReport, row_of

    assert isinstance(report, ConversionReport)
    console = Console(width=None if sys.stdout.isatty() else 160)
    table = Table(box=None, pad_edge=False)
    for name, justify in (
        ("layer", "left"),
        ("kind", "left"),
        ("binary", "left"),
        ("MACs", "right"),
        ("bytes", "right"),
        ("output", "left"),
        ("fused / why not", "left"),
    ):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for layer in report.layers:
        table.add_row(*row_of(layer))
    console.print(table)
    for warning in report.warnings:
        console.print(f"· {warning}", markup=False, highlight=False)
    console.print(report.summary(), markup=False, highlight=False)


def _samples(path: Path) -> list[list[np.ndarray]]:  # type: ignore[type-arg]
    """The samples of a .npy (one input) or .npz file (inputs in order), each with a batch of 1."""
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = [loaded[name] for name in loaded.files] if hasattr(loaded, "files") else [loaded]
    except (EOFError, OSError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as .npy or .npz: {error}") from None
    if not arrays or any(np.ndim(array) == 0 for array in arrays) or len({len(array) for array in arrays}) != 1:
        raise ValueError(f"{path} must hold as many samples of each input, batch first")
    return [[array[i : i + 1] for array in arrays] for i in range(len(arrays[0]))]


def _write_whole(path: Path, content: bytes) -> None:
    """Replaces a file (of a link, the one it points to) by a complete one, never by a part of it."""
    path = path.resolve()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


if __name__ == "__main__":
    raise SystemExit(main())
