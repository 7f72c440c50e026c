"""`litebnn check`: checks an untrusted .tflite file without running it."""

from __future__ import annotations

import argparse
from typing import Any

from litebnn.cli.parsing import add_command, add_json, file_path


def add_to(commands: Any) -> None:
    """Adds the command `litebnn check` to argparse's `commands`."""
    parser = add_command(
        commands, "check", "check if a .tflite file is safe to run, without running it", "check stranger.tflite"
    )
    parser.add_argument("model", type=file_path, metavar="MODEL", help=".tflite file")
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from litebnn.cli.output import print_json
    from litebnn.errors import boundary, printable
    from litebnn.files import read_file
    from litebnn.flatbuffer import read_strictly
    from litebnn.safety import check_model, check_outputs, graphs_of_loops

    model = read_strictly(read_file(options.model))
    with boundary():
        check_model(model)
        called = {model.graphs[0], *(signature.graph for signature in model.signatures or ())}
        inner = {*graphs_of_loops(model.graphs)} - called
        for graph in model.graphs:
            if graph not in inner:
                check_outputs(graph)
    found = {
        "subgraphs": len(model.graphs),
        "ops": sum(1 for _ in model.ops()),
        "tensors": sum(len(graph.tensors) for graph in model.graphs),
    }
    if options.json:
        print_json(found)
        return
    counts = ", ".join(f"{count} {name}" for name, count in found.items())
    print(f"{printable(options.model)}: nothing unsound was found in {counts}")
