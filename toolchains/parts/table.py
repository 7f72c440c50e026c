"""Reads parts.toml, the table of third-party code and data in distributed files, as typed rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchains.targets import ROOT, Target, ToolkitError, read_toml

TABLE = ROOT / "toolchains" / "parts" / "parts.toml"


@dataclass(frozen=True)
class Part:
    """A row of parts.toml, the file in which the fields are explained."""

    name: str
    version: str
    license: str
    url: str
    products: tuple[str, ...]
    notice: str = ""
    toolchains: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()


def load_parts() -> list[Part]:
    """All rows of parts.toml, in the order of the file. A row describes third-party code or data in distributed files.

    Raises:
        ToolkitError: a row has an unknown key, or lacks one.
    """
    found = []
    for name, row in read_toml(TABLE).items():
        frozen: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
        try:
            found.append(Part(name, **frozen))
        except TypeError as error:
            raise ToolkitError(f"{TABLE.name}, row {name}: {error}") from error
    return found


def parts_of(product: str, target: Target, toolchain: str) -> list[Part]:
    """The third-party code and data inside a product, as rows of parts.toml.

    Args:
        product: "wheel", "bundle" or "deb".
        target: the row of targets.toml that the product is built for. The target `host` counts as Linux.
        toolchain: the name of the compiler that has built the product, not "auto".
    """
    return [
        part
        for part in load_parts()
        if product in part.products
        and toolchain in (part.toolchains or (toolchain,))
        and target.system in (part.systems or (target.system,))
    ]


def notices(parts: list[Part]) -> str:
    """The license texts of all parts, each text once, with the names of the parts that it belongs to."""
    names: dict[str, list[str]] = {}
    for part in parts:
        if part.notice:
            names.setdefault(part.notice, []).append(f"{part.name} {part.version}")
    sections = [
        f"{', '.join(inside)}\n{'=' * 80}\n\n{(ROOT / file).read_text(encoding='utf-8').strip()}\n"
        for file, inside in names.items()
    ]
    return "\n\n".join(["This file has the licenses of others' code and data in this distribution.", *sections])


def write(file: Path, text: str) -> Path:
    """Writes a text into a file of a folder, which is made if it is missing. Returns the file's path."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")
    return file
