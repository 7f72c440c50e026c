"""The folder of an exported network. It is written completely under another name, then renamed."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from litebnn.errors import printable

# The name of the file that marks a folder as an exported network. A later export may replace such a folder.
MARK = "litebnn-export.json"


def sources_folder() -> Path:
    """The folder of the C sources of the kernels: inside an installed package, or in a source checkout.

    Raises:
        FileNotFoundError: the sources are in neither of these places.
    """
    return _shipped("sources", "ops/micro")


def license_text() -> str:
    """The license of the C sources, which each export holds a copy of.

    Raises:
        FileNotFoundError: it is neither inside an installed package nor in a checkout.
    """
    return _shipped("LICENSE", "LICENSE").read_text(encoding="utf-8")


def _shipped(installed: str, checked_out: str) -> Path:
    """A path inside the installed `litebnn.micro`, or in the root of a checkout."""
    here = Path(__file__).resolve().parent
    places = (here / installed, here.parents[2] / checked_out)
    for place in places:
        if place.exists():
            return place
    raise FileNotFoundError(f"{installed} is not found (looked for {', '.join(map(str, places))})")


def check_folder(folder: Path) -> None:
    """Refuses a folder that an export may not replace.

    Raises:
        ValueError: the path is a file, the folder holds something that no export has written, or its parent folder is
            missing.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ValueError(f"{folder} is no folder: expected a new folder, an empty one, or one of an earlier export")
    if not folder.absolute().parent.is_dir():
        raise ValueError(f"{folder.absolute().parent} is no folder to make {folder.name} in")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise ValueError(f"{folder} is not empty and has no {MARK}: expected a new folder, an empty one, or an export")


def write_folder(folder: Path, files: Mapping[str, str]) -> None:
    """Replaces a folder by a new one with these files. `files` has the content of each file by its path in the folder.

    Raises:
        ValueError: the folder may not be replaced.
        OSError: a file cannot be written; an earlier folder is unchanged.
    """
    check_folder(folder)
    folder = folder.absolute()
    try:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name[:64]}.") as temporary:
            _replace(folder, Path(temporary), files)
    except OSError as error:
        # The message names the final folder, because the name of the temporary folder would mean nothing to the user.
        raise OSError(error.errno, os.strerror(error.errno or 0), printable(folder)) from None


def _replace(folder: Path, temporary: Path, files: Mapping[str, str]) -> None:
    made, old = temporary / "new", temporary / "old"
    for name, text in files.items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    if folder.exists():
        folder.rename(old)
    try:
        made.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise


def filled(template: str, values: Mapping[str, object]) -> str:
    """A file of `templates/` in which placeholders, which are names between @ signs, are replaced by values.


    Placeholders in the values are not replaced.
    """
    text = (Path(__file__).parent / "templates" / template).read_text(encoding="utf-8")
    return re.sub("@([A-Z_]+)@", lambda found: str(values[found[1]]), text)
