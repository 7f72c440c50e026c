"""The folder of an exported network.

A new folder is written completely under another name, then renamed. In the folder of an earlier export, that export's
files are replaced one by one. All other files stay as they are, even after a crash.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath

from litebnn.errors import printable

# The name of the file that marks a folder as an exported network, and lists the files that a later export may replace.
MARK = "litebnn-export.json"


@cache
def sources() -> dict[PurePosixPath, str]:
    """The texts of the C sources of the kernels, by their paths in `ops/micro`.

    An installed package has them, and the license that each export holds a copy of, in an archive: a wheel is smaller
    with one file than with forty. A source checkout has them as files.

    Raises:
        FileNotFoundError: the sources are in neither of these places.
    """
    here = Path(__file__).resolve().parent
    archive, checkout = here / "sources.zip", here.parents[2]
    if archive.is_file():
        with zipfile.ZipFile(archive) as opened:
            return {PurePosixPath(name): opened.read(name).decode() for name in opened.namelist()}
    files = source_files(checkout)
    if not files:
        raise FileNotFoundError(f"the C sources are not found (looked for {archive} and {checkout / 'ops' / 'micro'})")
    return {PurePosixPath(name): path.read_text(encoding="utf-8") for name, path in files.items()}


def source_files(checkout: Path) -> dict[str, Path]:
    """The C sources of the kernels and their license in a checkout, by their names in `sources`."""
    folder = checkout / "ops" / "micro"
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {**found, "LICENSE": checkout / "LICENSE"} if found else {}


def check_folder(folder: Path) -> None:
    """Refuses a folder to which an export may not write.

    Raises:
        ValueError: the path is a file, the folder is neither empty nor an earlier export, or its parent folder is
            missing.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ValueError(f"{folder} is no folder: expected a new folder, an empty one, or one of an earlier export")
    if not folder.absolute().parent.is_dir():
        raise ValueError(f"{folder.absolute().parent} is no folder to make {folder.name} in")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise ValueError(f"{folder} is not empty and has no {MARK}: expected a new folder, an empty one, or an export")


def write_folder(folder: Path, files: Mapping[str, str]) -> None:
    """Writes files to a new folder, or replaces those of an earlier export.

    `files` has the content of each file by its path in the folder. The JSON of the file MARK lists all paths under
    "files".

    Raises:
        ValueError: the folder may not be written, or a file in it is not of an earlier export and would be replaced.
        OSError: a file cannot be written; each file of an earlier export is complete, an old or a new one.
    """
    check_folder(folder)
    folder = folder.absolute()
    is_new = not folder.exists()
    former = _check_files(folder, files)
    try:
        # The temporary folder is where its files can be renamed from: a folder may be the root of a disk.
        beside = folder.parent if is_new else folder
        with tempfile.TemporaryDirectory(dir=beside, prefix=f".{folder.name[:64]}.") as temporary:
            made = Path(temporary) / "new"
            for name, text in files.items():
                _write(made / name, text)
            if is_new:
                made.rename(folder)
            else:
                _replace(folder, made, files, former)
    except OSError as error:
        # The message names the final folder, because the name of the temporary folder would mean nothing to the user.
        raise OSError(error.errno, os.strerror(error.errno or 0), printable(folder)) from None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def _check_files(folder: Path, files: Mapping[str, str]) -> set[str]:
    """The paths of an earlier export's files that `files` does not have.

    Raises:
        ValueError: a file in the folder is not of an earlier export, or leads out of the folder, and would be replaced.
    """
    former = _former_files(folder, files)
    for name in files:
        path = folder / name
        if (os.path.lexists(path) and name not in (MARK, *former)) or path.is_dir():
            raise ValueError(f"{path} is not of an earlier export: move it, or name another folder")
        if any(parent.is_symlink() or parent.is_file() for parent in _parents(folder, name)):
            raise ValueError(f"{path.parent} is no folder of an earlier export: move it, or name another folder")
    return former - set(files)


def _former_files(folder: Path, files: Mapping[str, str]) -> set[str]:
    """The paths of the files that an earlier export has written to a folder."""
    try:
        mark = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    # Earlier exports have no list. All that is known of such a folder is that these files are replaced.
    listed = mark.get("files", [*files]) if isinstance(mark, dict) else []
    return (
        {name for name in listed if isinstance(name, str) and _is_inside(name)} if isinstance(listed, list) else set()
    )


def _is_inside(name: str) -> bool:
    """True for a relative path as an export lists it. Anyone may have written the list."""
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts and not re.search(r"[:\\\0]", name)


def _parents(folder: Path, name: str) -> list[Path]:
    """The folders between an exported folder and a file in it, the innermost first."""
    return [folder / parent for parent in PurePosixPath(name).parents if parent.parts]


def _replace(folder: Path, made: Path, files: Mapping[str, str], former: set[str]) -> None:
    """Moves files to a folder, and removes those of an earlier export that are `former`."""
    # Until all files are moved, the list has those of both exports. If this one breaks off, the next one knows them.
    both = {"files": [*files, *former]}
    _write(made / "list", json.dumps(both))
    (made / "list").replace(folder / MARK)
    for name in files:
        if name != MARK:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).replace(folder / name)
    for name in former:
        parents = _parents(folder, name)
        if not any(parent.is_symlink() for parent in parents) and not (folder / name).is_dir():
            (folder / name).unlink(missing_ok=True)
            for parent in parents:
                with suppress(OSError):  # it has other files
                    parent.rmdir()
    (made / MARK).replace(folder / MARK)


def filled(template: str, values: Mapping[str, object]) -> str:
    """A file of `templates/` in which placeholders, which are names between @ signs, are replaced by values.


    Placeholders in the values are not replaced.
    """
    text = (Path(__file__).parent / "templates" / template).read_text(encoding="utf-8")
    return re.sub("@([A-Z_]+)@", lambda found: str(values[found[1]]), text)


# The files of an exported folder that are made from templates, each with its path and its template. The first table has
# the files of every export. The second table has additional files, by the build system that needs them.
_BASE = {"CMakeLists.txt": "CMakeLists.txt", "Makefile": "Makefile", "README.md": "README.md"}
_ADDED: Mapping[str, Mapping[str, str]] = {
    "arduino": {
        "library.properties": "library.properties",
        "keywords.txt": "keywords.txt",
        "examples/@NAME@_time/@NAME@_time.ino": "sketch.ino",
    },
    "platformio": {"library.json": "library.json"},
    "zephyr": {
        "zephyr/module.yml": "zephyr_module.yml",
        "zephyr/CMakeLists.txt": "zephyr_CMakeLists.txt",
        "zephyr/Kconfig": "zephyr_Kconfig",
    },
    "esp-idf": {"idf_component.yml": "idf_component.yml"},
}
# ESP-IDF reads the CMakeLists.txt in the root of a component. This text is added to the CMakeLists.txt of every export.
_ESP_IDF = """if(ESP_PLATFORM)
  idf_component_register(SRCS
@CMAKE_SOURCES@    INCLUDE_DIRS src)
  target_compile_options(${COMPONENT_LIB} PRIVATE -ffp-contract=off)
  return()
endif()

"""


def package_files(packages: Sequence[str], values: Mapping[str, object]) -> dict[str, str]:
    """The texts of the files, by their paths in the folder."""
    files = dict(_BASE)
    for package in packages:
        files.update(_ADDED[package])
    component = _ESP_IDF.replace("@CMAKE_SOURCES@", str(values["CMAKE_SOURCES"])) if "esp-idf" in packages else ""
    known = {**values, "ESP_IDF": component}
    name = str(values["NAME"])
    return {path.replace("@NAME@", name): filled(template, known) for path, template in files.items()}
