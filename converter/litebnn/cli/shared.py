"""Options that several commands have, and the files that these options name: arrays, the report page, and node data
for Model Explorer."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litebnn.cli.parsing import file_path
from litebnn.errors import reason_of
from litebnn.micro import KERNELS, TARGETS

if TYPE_CHECKING:
    from litebnn.micro.export import Export
    from litebnn.report.conversion import ConversionReport
    from litebnn.report.inspection import Inspection
    from litebnn.report.page import Steps, Times

_NUMBERS = ("step", "flash", "RAM", "instructions", "cycles")
_HEADER = ("step", "ops", "layer", *_NUMBERS[1:])


def add_report(parser: argparse.ArgumentParser) -> None:
    """Adds the option `--report` to a command."""
    parser.add_argument(
        "--report",
        type=file_path,
        metavar="FILE.html",
        help="write a page with figures, layers and graph of the model (needs litebnn[report])",
    )


def check_report(report: Path | None, *others: Path | None) -> None:
    """Raises an error before any work is done if the report cannot be written.

    `report` is the path of the future report; None for no report. `others` are files of the command, which the report
    may not replace; None for a file that is not given.

    Raises:
        ImportError: Jinja2, which makes the page, is not installed.
        ValueError: the path is one of the other files, cannot be written, or does not end in .html or .htm.
    """
    if report is None:
        return
    import litebnn.report.page  # noqa: F401, fails where Jinja2 is missing
    from litebnn.files import check_destination, check_suffix

    check_destination(report, ".html", *others)
    check_suffix("--report", report, ".html", ".htm")


def page_of(
    inspection: Inspection,
    conversion: ConversionReport | None = None,
    measured: Sequence[Times] = (),
    steps: Steps | None = None,
) -> bytes:
    """The report as the content of an HTML file.

    `inspection` has the model's ops and their costs. `conversion` is the report of the conversion that made the model,
    if there was one. `measured` has measured times of the ops. `steps` is the table of steps on a microcontroller, if
    the options ask for one.
    """
    from litebnn.errors import boundary
    from litebnn.report.page import report_page

    with boundary():
        return report_page(inspection, conversion, measured, steps).encode("utf-8")


def add_model_explorer(parser: argparse.ArgumentParser) -> None:
    """Adds the option `--model-explorer` to a command."""
    parser.add_argument(
        "--model-explorer",
        type=file_path,
        metavar="FILE.json",
        help="write the times of the ops as node data for Google's Model Explorer, coloured by precision",
    )


def check_model_explorer(path: Path | None, *others: Path) -> None:
    """Raises an error before any work is done if the file cannot be written.

    Args:
        path: the path of the future file; None for no file.
        others: files of the command, which the new file must not replace.

    Raises:
        ValueError: the path is one of the other files, is not that of a .json file, or no file can be written there.
    """
    from litebnn.files import check_destination, check_suffix

    if path is not None:
        check_destination(path, ".json", *others)
        check_suffix("--model-explorer", path, ".json")


def write_node_data(path: Path, data: Mapping[str, Any]) -> None:
    """Writes the file of the option `--model-explorer` completely or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    from litebnn.files import write_whole

    write_whole(path, (json.dumps(data, indent=1, allow_nan=False) + "\n").encode())


def add_microcontroller(parser: Any) -> None:
    """Adds the options for a microcontroller to a command."""
    parser.add_argument(
        "--microcontroller", choices=TARGETS, help="also print the steps of an export as C for this microcontroller"
    )
    parser.add_argument(
        "--kernels", choices=KERNELS, help="kernels of the binary layers on the microcontroller; by default compact"
    )
    parser.only_if(
        lambda options: options.microcontroller,
        "is for --microcontroller, which is not given",
        "--kernels",
    )


def estimated(model: bytes, options: argparse.Namespace) -> Export | None:
    """The estimate for the microcontroller that the options name; None if they name none.

    Raises:
        ConversionError: the model cannot be exported; the message names op and layer.
    """
    if options.microcontroller is None:
        return None
    from litebnn.micro.export import estimate_c

    return estimate_c(model, target=options.microcontroller, kernels=options.kernels or KERNELS[0])


def print_estimate(export: Export) -> None:
    """Prints the table of an exported network's steps, and the totals."""
    print(f"\n{_title(export)}; no cycle was measured on silicon:")
    print_steps(export)
    print(_total(export))


def _title(export: Export) -> str:
    return f"As C on {export.target} with {export.kernels} kernels"


def _total(export: Export) -> str:
    return (
        f"constants {export.constant_bytes:,} bytes, arena {export.arena_bytes:,} bytes, "
        f"{export.instructions:,} instructions, {export.cycles:,} cycles (estimated)"
    )


def print_steps(export: Export) -> None:
    """Prints flash, RAM, instructions and cycles of each step of an exported network."""
    from litebnn.cli.output import print_table

    print_table(_HEADER, _rows(export), numbers=_NUMBERS)


def steps_of(export: Export) -> Steps:
    """The table of an exported network's steps, in the form for the report's page."""
    from litebnn.report.page import Steps

    total = f"{_total(export)}. Flash and RAM are in bytes. No cycle was measured on silicon."
    return Steps(_title(export), _HEADER, _NUMBERS, _rows(export), total)


def _rows(export: Export) -> list[tuple[str, ...]]:
    return [
        (
            *(str(number), " + ".join(step.kinds), step.layer, f"{step.flash:,}", f"{step.ram:,}"),
            *("?" if count is None else f"{count:,}" for count in (step.instructions, step.cycles)),
        )
        for number, step in enumerate(export.steps)
    ]


def read_arrays(path: Path) -> dict[str, Any]:
    """The arrays of a .npz file by name, in order; the array of a .npy file has the name "".

    Raises:
        ValueError: the file is no .npz or .npy file, or its arrays differ in their number of samples (the first axis).
        OSError: the file cannot be read.
    """
    import zipfile

    import numpy as np

    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {name: loaded[name] for name in loaded.files} if hasattr(loaded, "files") else {"": loaded}
    except (EOFError, OSError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as .npy or .npz: {reason_of(error)}") from None
    if not arrays or any(np.ndim(array) == 0 for array in arrays.values()) or len({*map(len, arrays.values())}) != 1:
        raise ValueError(f"{path} must hold as many samples of each input, batch first")
    return arrays


def by_input(arrays: dict[str, Any], model: bytes) -> list[Any]:
    """Assigns arrays to a model's inputs. If arrays and inputs have the same names, they are assigned by name,
    otherwise in order.
    """
    from litebnn.flatbuffer import read_model

    names = read_model(model).input_names
    return [arrays[name] for name in names] if set(arrays) == set(names) else list(arrays.values())
