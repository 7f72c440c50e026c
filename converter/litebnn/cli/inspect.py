"""`litebnn inspect`: lists a .tflite file's ops with their estimated cost."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litebnn.cli.parsing import add_command, add_json, file_path, not_empty
from litebnn.cli.shared import (
    add_microcontroller,
    add_model_explorer,
    add_report,
    check_model_explorer,
    check_report,
    estimated,
    page_of,
    print_estimate,
    steps_of,
    write_node_data,
)

if TYPE_CHECKING:
    from litebnn.micro.export import Export
    from litebnn.report.conversion import ConversionReport
    from litebnn.report.inspection import Inspection


def add_to(commands: Any) -> None:
    """Adds the command `litebnn inspect` to argparse's `commands`."""
    parser = add_command(
        commands,
        "inspect",
        "list the ops of a .tflite file with their estimated costs",
        "inspect model.tflite",
        "inspect model.tflite --json > model.json",
        "inspect model.tflite --report report.html",
        "inspect model.tflite --model-explorer times.json --board rpi4",
        "inspect model.tflite --microcontroller cortex-m7",
        "inspect model.tflite --weights weights.npz",
    )
    parser.add_argument("model", type=file_path, metavar="MODEL", help=".tflite file, converted or not")
    add_report(parser)
    add_json(parser)
    add_microcontroller(parser)
    add_model_explorer(parser)
    parser.add_argument(
        "--board", type=not_empty, help="board whose times --model-explorer writes; by default this machine"
    )
    parser.add_argument(
        "--weights",
        type=file_path,
        metavar="OUT.npz",
        help="write the weights of the binary layers as arrays of 1 and -1 [height, width, in, out]",
    )
    parser.only_if(
        lambda options: options.model_explorer,
        "says whose times --model-explorer writes, which is not given",
        "--board",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from litebnn.files import check_destination, check_suffix, read_file
    from litebnn.report.costs import HOST
    from litebnn.report.inspection import inspect_model
    from litebnn.report.node_data import estimated_node_data

    check_report(options.report, options.model, options.model_explorer)
    check_model_explorer(options.model_explorer, options.model)
    if options.weights:
        check_destination(options.weights, ".npz", options.model, options.report, options.model_explorer)
        check_suffix("--weights", options.weights, ".npz")
    inspection = inspect_model(options.model)
    if options.weights:
        _write_weights(options.model, options.weights)
    if options.model_explorer:
        write_node_data(options.model_explorer, estimated_node_data(inspection, options.board or HOST))
    show(inspection, options, export=estimated(read_file(options.model), options))


def _write_weights(model: Path, path: Path) -> None:
    from litebnn.errors import ConversionError
    from litebnn.report.arrays import binary_weights, write_weights

    weights = binary_weights(model)
    if not weights:
        raise ConversionError(f"{model} has no binary layers, whose weights --weights writes")
    write_weights(path, weights)


def show(
    inspection: Inspection,
    options: argparse.Namespace,
    conversion: ConversionReport | None = None,
    export: Export | None = None,
) -> None:
    """Prints a table of the ops with advice, or the same as JSON; writes the page of the option `--report`.

    `inspection` has the model's ops and their costs. `options` has `report` and `json`. `conversion` is the report of
    the conversion that made the model, if there is one. `export` is the estimate for a microcontroller, if the options
    ask for one.
    """
    from litebnn.cli.output import print_json, print_table
    from litebnn.files import write_whole
    from litebnn.report import tables

    if options.report:
        write_whole(options.report, page_of(inspection, conversion, steps=None if export is None else steps_of(export)))
    if options.json:
        layers = {} if conversion is None else {"layers": conversion.to_dict()["layers"]}
        board = {} if export is None else {"microcontroller": export.to_dict()}
        print_json({**inspection.to_dict(), **layers, **board})
        return
    header = tables.columns(inspection)
    words = ("layer", "op", "shape", "MACs", "goes on", "fused")
    print_table(header, tables.rows(inspection), numbers=[name for name in header if name not in words])
    undone = [] if conversion is None else tables.left_undone(conversion)
    for line in (*tables.notes(inspection), *undone, *tables.advice(inspection)):
        print(f"· {line}")
    if export is not None:
        print_estimate(export)
