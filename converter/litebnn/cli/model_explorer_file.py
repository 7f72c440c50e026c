"""The option `--model-explorer`: the figures of a model's ops as a file that Google's Model Explorer shows."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from litebnn.cli.parsing import file_path


def add_model_explorer(parser: argparse.ArgumentParser) -> None:
    """Adds the option."""
    parser.add_argument(
        "--model-explorer",
        type=file_path,
        metavar="FILE.json",
        help="write the times of the ops as node data for Google's Model Explorer, coloured by precision",
    )


def check_model_explorer(path: Path | None, *others: Path) -> None:
    """Says before any work that the file cannot be written.

    Args:
        path: where it is to be; None for no file.
        others: files of the command, which it may not replace.

    Raises:
        ValueError: the path is that of another of the files, or none that a file could have.
    """
    from litebnn.model_files import check_destination

    if path is not None:
        check_destination(path, ".json", *others)


def write_node_data(path: Path, data: Mapping[str, Any]) -> None:
    """Writes the file whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    import json

    from litebnn.model_files import write_whole

    write_whole(path, (json.dumps(data, indent=1, allow_nan=False) + "\n").encode())
