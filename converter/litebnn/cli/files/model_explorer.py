"""The option `--model-explorer`: the figures of a model's ops as a file that Google's Model Explorer shows."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from litebnn.cli.parsing import file_path


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
    import json

    from litebnn.files import write_whole

    write_whole(path, (json.dumps(data, indent=1, allow_nan=False) + "\n").encode())
