"""Checks the content of wheels and bundles."""

import hashlib
import io
import json
import tarfile
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

from toolchains.binaries import EXPORTS, exported_names
from toolchains.parts import FILE_NAME, Part, parts_of
from toolchains.release.debian import files_in_deb
from toolchains.release.products import Product, expect
from toolchains.targets import ROOT, VERSION

LARGEST_WHEEL = 1_000_000
# The toolchain that builds the libraries in wheels and bundles, unless the user names another toolchain.
BUILT_BY = "zig"


def read_archive(file: Path) -> dict[str, bytes]:
    """Yields the files in a product with their paths. The top folder of a bundle is not part of the paths."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    stream = io.BytesIO(files_in_deb(file)) if file.suffix == ".deb" else None
    with tarfile.open(file, fileobj=stream) as tar:
        members = [member for member in tar if member.isfile()]
        contents = {member.name.partition("/")[2]: tar.extractfile(member) for member in members}
        return {name: content.read() for name, content in contents.items() if content}


def library_in(product: Product, contents: dict[str, bytes]) -> tuple[str, bytes]:
    """The op library in a product: its path and its content."""
    names = [name for name in contents if name.rpartition("/")[2] == product.target.names.library]
    expect(len(names) == 1, f"expected one {product.target.names.library}, found {names}")
    return names[0], contents[names[0]]


def _dist_info(name: str) -> str:
    return f"litebnn-{VERSION}.dist-info/{name}"


def version(product: Product, file: Path) -> str:
    """The file's name, its metadata and the library inside have the package's version."""
    contents = read_archive(file)
    if product.kind == "wheel":
        expect(file.name.startswith(f"litebnn-{VERSION}-"), f"expected {VERSION} in the name {file.name}")
        metadata = Parser().parsestr(contents[_dist_info("METADATA")].decode())
        expect(metadata["Version"] == VERSION, f"METADATA says {metadata['Version']}, not {VERSION}")
    name, library = library_in(product, contents)
    expect(f"{VERSION}\0".encode() in library, f"{name} does not say {VERSION}")
    return VERSION


def size(product: Product, file: Path) -> str:
    """The wheel is not larger than the allowed size."""
    found = file.stat().st_size
    expect(found < LARGEST_WHEEL, f"{found:,} bytes, expected less than {LARGEST_WHEEL:,}")
    return f"{found:,} bytes"


def exports(product: Product, file: Path) -> str:
    """The library exports the public names, and no other names."""
    name, content = library_in(product, read_archive(file))
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / Path(name).name
        library.write_bytes(content)
        found = exported_names(library)
    extra, missing = sorted(set(found) - set(EXPORTS)), sorted(set(EXPORTS) - set(found))
    expect(found == EXPORTS, f"{name} also exports {extra} and lacks {missing}")
    return f"{len(found)} names"


def parts_in(product: Product) -> list[Part]:
    """The third-party code and data in a product that is built by the default toolchain."""
    return parts_of(product.kind, product.target, BUILT_BY)


def licenses(product: Product, file: Path) -> str:
    """The product contains its own license, and the licenses of all third-party code and data."""
    contents = read_archive(file)
    if product.kind == "wheel":
        metadata = Parser().parsestr(contents[_dist_info("METADATA")].decode())
        expect(metadata["License-Expression"] == "Apache-2.0", f"METADATA says {metadata['License-Expression']}")
        listed = metadata.get_all("License-File", [])
        texts = {name: contents.get(_dist_info(f"licenses/{name}"), b"").decode() for name in listed}
    else:
        texts = {name: contents.get(name, b"").decode() for name in ("LICENSE", "NOTICES.txt")}
    own = (ROOT / "LICENSE").read_text(encoding="utf-8")
    expect(texts.get("LICENSE") == own, "expected LICENSE as in the checkout")
    everything = "\n".join(texts.values())
    parts = parts_in(product)
    for part in parts:
        text = (ROOT / part.notice).read_text(encoding="utf-8").strip() if part.notice else ""
        expect(text in everything, f"expected the license of {part.name} ({part.notice})")
    return f"of {', '.join(part.name for part in parts)}"


def bill(product: Product, file: Path) -> str:
    """The bill of materials is valid, and names the product's parts with the right hashes."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    contents = read_archive(file)
    name = _dist_info(f"sboms/{FILE_NAME}") if product.kind == "wheel" else FILE_NAME
    expect(name in contents, f"expected {name}")
    text = contents[name].decode()
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    expect(error is None, f"{name} is no CycloneDX 1.6: {error}")
    components = {each["name"]: each for each in json.loads(text)["components"]}
    for path, component in components.items():
        for digest in component.get("hashes", ()):
            found = hashlib.sha256(contents.get(path, b"")).hexdigest()
            expect(found == digest["content"], f"{name} has another hash of {path}")
    expect("hashes" in components.get(library_in(product, contents)[0], ()), f"{name} does not name the library")
    named = {(each["name"], each["version"]) for each in components.values() if "hashes" not in each}
    wanted = {(part.name, part.version) for part in parts_in(product)}
    expect(named == wanted, f"{name} names {sorted(named)}, expected {sorted(wanted)}")
    return f"{len(components)} components"
