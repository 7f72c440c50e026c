"""Writes the bill of materials of a wheel or a bundle, in the format CycloneDX: its parts with version, license and
hash.

The same content always gives the same text. In a wheel, PEP 770 puts the text in the folder `.dist-info/sboms/`.
"""

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from toolchains.needs import with_pip
from toolchains.parts.table import Part
from toolchains.targets import VERSION, ToolkitError

FILE_NAME = "litebnn.cdx.json"
# The date of all files in wheels and bundles, in seconds since 1970.
DATE = 1580601600
NAMESPACE = uuid.UUID("8f0b5b5c-5a3c-4d6e-9f2e-6c1d5a0c7b11")


def bill_of_materials(product: str, files: Mapping[str, Path], parts: Iterable[Part]) -> str:
    """The text of a bill of materials, in CycloneDX 1.6.

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
