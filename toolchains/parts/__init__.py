"""Third-party code and data in wheels and bundles: the rows of parts.toml, their licenses, the bill of materials."""

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from toolchains.needs import with_pip
from toolchains.targets import ROOT, VERSION, Target, ToolkitError, read_toml

TABLE = ROOT / "toolchains" / "parts" / "parts.toml"
FILE_NAME = "litebnn.cdx.json"
# The date of all files in wheels and bundles, in seconds since 1970.
DATE = 1580601600
NAMESPACE = uuid.UUID("8f0b5b5c-5a3c-4d6e-9f2e-6c1d5a0c7b11")


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


def bill_of_materials(product: str, files: Mapping[str, Path], parts: Iterable[Part]) -> str:
    """The text of a bill of materials, in CycloneDX 1.6. The same content always gives the same text, which
    PEP 770 puts in a wheel's folder `.dist-info/sboms/`.

    `product` is the distributed file's name without its version, such as "litebnn-rpi4". `files` are the binaries in
    the product, by their paths there. `parts` are third-party code and data in the product.

    Raises:
        ToolkitError: the package cyclonedx-python-lib is missing.
    """
    try:
        from cyclonedx.contrib.license.factories import LicenseFactory
        from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
        from cyclonedx.model.bom import Bom
        from cyclonedx.model.component import Component, ComponentType
        from cyclonedx.output.json import JsonV1Dot6
    except ImportError as error:
        raise ToolkitError(
            f"a bill of materials is written by cyclonedx-python-lib: {with_pip('pip install cyclonedx-python-lib')}"
        ) from error

    licenses = LicenseFactory()

    def component(name: str, version: str, license: str, **more: Any) -> Component:
        licensed = [licenses.make_from_string(license)]
        kind, reference = ComponentType.LIBRARY, f"{name}@{version}"
        return Component(name=name, version=version, licenses=licensed, type=kind, bom_ref=reference, **more)

    whole = component(product, VERSION, "Apache-2.0")
    bom = Bom()
    bom.metadata.component = whole
    inside = [
        component(
            *(part.name, part.version, part.license),
            external_references=[ExternalReference(type=ExternalReferenceType.WEBSITE, url=XsUri(part.url))],
        )
        for part in parts
    ]
    for name, path in files.items():
        digest = HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(path.read_bytes()).hexdigest())
        inside.append(Component(name=name, type=ComponentType.FILE, bom_ref=name, hashes=[digest]))
    for each in inside:
        bom.components.add(each)
    bom.register_dependency(whole, inside)
    bom.metadata.timestamp = datetime.fromtimestamp(DATE, timezone.utc)
    content = json.dumps(sorted((str(each.bom_ref), *map(str, each.hashes)) for each in inside))
    bom.serial_number = uuid.uuid5(NAMESPACE, f"{product} {content}")
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"
