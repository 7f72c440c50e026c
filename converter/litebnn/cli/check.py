"""`litebnn check`: whether a stranger's .tflite file is sound, without running it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_to(commands: Any) -> None:
    """Adds the command to those of the command line (`commands` is argparse's)."""
    parser = commands.add_parser("check", help="check whether a .tflite file is sound, without running it")
    parser.add_argument("model", type=Path, metavar="MODEL", help=".tflite file")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from litebnn.errors import boundary, printable
    from litebnn.flatbuffer import read_strictly
    from litebnn.graph import check_model
    from litebnn.model_files import read_file

    model = read_strictly(read_file(options.model))
    with boundary():
        check_model(model)
    ops, tensors = sum(1 for _ in model.ops()), sum(len(graph.tensors) for graph in model.graphs)
    counts = f"{len(model.graphs)} subgraphs, {ops} ops, {tensors} tensors"
    print(f"{printable(options.model)}: nothing unsound was found in {counts}")
