"""`litebnn export`: writes a network as a folder of C for microcontrollers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from litebnn.cli.parsing import add_command, add_json, file_path, not_empty
from litebnn.micro import KERNELS, PACKAGES, TARGETS

if TYPE_CHECKING:
    from litebnn.micro.export import Export


def add_to(commands: Any) -> None:
    """Adds the command `litebnn export` to argparse's `commands`."""
    parser = add_command(
        commands,
        "export",
        "write a network as C for a microcontroller",
        "export model.tflite -o network",
        "export model.tflite -o network --target=cortex-m7 --kernels=fast --json > network.json",
        "export model.keras -o network --name=digits --arduino",
    )
    parser.add_argument(
        "model", type=file_path, metavar="IN", help=".tflite, .keras, .h5 or .pt2 file, or SavedModel folder"
    )
    parser.add_argument("-o", "--output", type=file_path, metavar="DIR", required=True, help="folder to write")
    parser.add_argument("--name", type=not_empty, default="model", help="the network's name in C: NAME_run in NAME.h")
    parser.add_argument(
        "--kernels",
        choices=KERNELS,
        default=KERNELS[0],
        help="kernels of binary layers: compact takes the least flash, fast the least time",
    )
    parser.add_argument("--target", choices=TARGETS, default=TARGETS[0], help="microcontroller to select kernels for")
    for package, purpose in PACKAGES.items():
        parser.add_argument(f"--{package}", action="store_true", help=f"make the folder {purpose}")
    parser.add_argument(
        "--samples", type=file_path, metavar="FILE", help=".npy or .npz file with inputs of the self-test"
    )
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from litebnn.cli.output import print_json
    from litebnn.cli.progress import progress
    from litebnn.cli.shared import by_input, read_arrays
    from litebnn.errors import boundary
    from litebnn.frontends.files import file_to_tflite
    from litebnn.micro.export import export_c
    from litebnn.micro.folder import check_folder

    check_folder(options.output)
    with progress(f"exporting {options.model.name}"):
        with boundary():
            source = file_to_tflite(options.model)
        samples = None if options.samples is None else by_input(read_arrays(options.samples), source)
        export = export_c(
            source,
            options.output,
            name=options.name,
            kernels=options.kernels,
            target=options.target,
            packages=[package for package in PACKAGES if getattr(options, package.replace("-", "_"))],
            samples=samples,
            title=options.model.name,
        )
    if options.json:
        print_json(export.to_dict())
    else:
        _print(export)


def _print(export: Export) -> None:
    from litebnn.cli.shared import print_steps

    print_steps(export)
    print(
        f"{export.folder}: constants {export.constant_bytes:,} bytes, arena {export.arena_bytes:,} bytes, "
        f"inputs {export.input_bytes:,} bytes, outputs {export.output_bytes:,} bytes"
    )
