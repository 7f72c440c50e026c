import hashlib
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.needs import need
from toolchains.binaries import EXPORTS
from toolchains.parts import FILE_NAME, bill_of_materials, notices, parts_of
from toolchains.release import archives
from toolchains.release.products import Failed, Product
from toolchains.targets import ROOT, VERSION, find_target

# These tests are deep, because validating a bill of materials imports the schemas of all formats.
pytestmark = pytest.mark.deep
INFO = f"litebnn-{VERSION}.dist-info"
WHEEL = Product("wheel", find_target("windows-x86_64"))
BUNDLE = Product("bundle", find_target("rpi4"))
LIBRARY = b"a library of version " + VERSION.encode() + b"\0"


def wheel_contents(folder: Path) -> dict[str, bytes]:
    """Makes the files of a wheel for Windows, with arbitrary bytes in place of its library."""
    need("release")
    parts = parts_of("wheel", WHEEL.target, "zig")
    library = folder / "litebnn.dll"
    library.write_bytes(LIBRARY)
    files = ["LICENSE", *dict.fromkeys(part.notice for part in parts)]
    listed = "".join(f"License-File: {name}\n" for name in files)
    metadata = f"Metadata-Version: 2.4\nName: litebnn\nVersion: {VERSION}\nLicense-Expression: Apache-2.0\n{listed}"
    return {
        "litebnn/lib/litebnn.dll": LIBRARY,
        f"{INFO}/METADATA": metadata.encode(),
        **{f"{INFO}/licenses/{name}": (ROOT / name).read_bytes() for name in files},
        f"{INFO}/sboms/{FILE_NAME}": bill_of_materials("litebnn", {"litebnn/lib/litebnn.dll": library}, parts).encode(),
    }


def write_wheel(
    folder: Path, contents: dict[str, bytes], name: str = f"litebnn-{VERSION}-py3-none-win_amd64.whl"
) -> Path:
    with zipfile.ZipFile(folder / name, "w") as archive:
        for inside, content in contents.items():
            archive.writestr(inside, content)
    return folder / name


def test_a_good_wheel_passes(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, wheel_contents(tmp_path))
    assert archives.version(WHEEL, wheel) == VERSION
    assert archives.size(WHEEL, wheel).endswith(" bytes")
    assert "mingw-w64" in archives.licenses(WHEEL, wheel)
    assert archives.bill(WHEEL, wheel) == f"{len(parts_of('wheel', WHEEL.target, 'zig')) + 1} components"


def other_version(contents: dict[str, bytes]) -> None:
    name = f"{INFO}/METADATA"
    contents[name] = contents[name].replace(f"Version: {VERSION}".encode(), b"Version: 9.9")


def other_library(contents: dict[str, bytes]) -> None:
    contents["litebnn/lib/litebnn.dll"] = b"a library of another version"


def no_license(contents: dict[str, bytes]) -> None:
    contents[f"{INFO}/licenses/LICENSE"] = b"all rights reserved"


def no_notice(contents: dict[str, bytes]) -> None:
    contents[f"{INFO}/licenses/toolchains/parts/notices/mingw-w64.txt"] = b""


def no_bill(contents: dict[str, bytes]) -> None:
    del contents[f"{INFO}/sboms/{FILE_NAME}"]


def changed_bill(change: Callable[[dict], object]) -> Callable[[dict[str, bytes]], None]:
    def apply(contents: dict[str, bytes]) -> None:
        name = f"{INFO}/sboms/{FILE_NAME}"
        bill = json.loads(contents[name])
        change(bill)
        contents[name] = json.dumps(bill).encode()

    return apply


@pytest.mark.parametrize(
    ("check", "spoil", "message"),
    [
        (archives.version, other_version, "METADATA says 9.9"),
        (archives.version, other_library, f"litebnn.dll does not say {VERSION}"),
        (archives.version, lambda contents: contents.pop("litebnn/lib/litebnn.dll"), "expected one litebnn.dll"),
        (archives.size, lambda contents: contents.update(large=bytes(1_000_000)), "expected less than 1,000,000"),
        (archives.licenses, no_license, "expected LICENSE as in the checkout"),
        (archives.licenses, no_notice, "expected the license of mingw-w64"),
        (archives.bill, no_bill, f"expected {INFO}/sboms"),
        (archives.bill, other_library, "has another hash of litebnn/lib/litebnn.dll"),
        (archives.bill, changed_bill(lambda bill: bill.update(surprise=1)), "is no CycloneDX 1.6"),
        (archives.bill, changed_bill(lambda bill: bill["components"].pop()), "names "),
    ],
)
def test_what_is_wrong_with_a_wheel_is_said(check, spoil, message: str, tmp_path: Path) -> None:
    contents = wheel_contents(tmp_path)
    spoil(contents)
    wheel = write_wheel(tmp_path, contents)
    with pytest.raises(Failed, match=message.replace(".", r"\.")):
        check(WHEEL, wheel)


def test_a_file_has_no_version_of_litebnns(tmp_path: Path) -> None:
    bill = json.loads(wheel_contents(tmp_path)[f"{INFO}/sboms/{FILE_NAME}"])
    (file,) = (each for each in bill["components"] if each["type"] == "file")
    assert set(file) == {"bom-ref", "hashes", "name", "type"}
    assert bill["metadata"]["component"]["version"] == VERSION


def test_another_version_in_the_name(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, wheel_contents(tmp_path), "litebnn-9.9-py3-none-win_amd64.whl")
    with pytest.raises(Failed, match=f"expected {VERSION} in the name"):
        archives.version(WHEEL, wheel)


def write_bundle(folder: Path, text: str) -> Path:
    need("release")
    library = folder / "liblitebnn.so"
    library.write_bytes(LIBRARY)
    bill = bill_of_materials("litebnn-rpi4", {library.name: library}, parts_of("bundle", BUNDLE.target, "zig"))
    files = {
        library.name: LIBRARY,
        FILE_NAME: bill.encode(),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
        "NOTICES.txt": text.encode(),
    }
    with tarfile.open(folder / "litebnn-rpi4.tar.gz", "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"litebnn-rpi4/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return folder / "litebnn-rpi4.tar.gz"


def test_a_bundle(tmp_path: Path) -> None:
    parts = parts_of("bundle", BUNDLE.target, "zig")
    bundle = write_bundle(tmp_path, notices(parts))
    assert archives.version(BUNDLE, bundle) == VERSION
    assert "ai-edge-litert" in archives.licenses(BUNDLE, bundle)
    assert archives.bill(BUNDLE, bundle) == f"{len(parts) + 1} components"
    without = [part for part in parts if part.name != "zig-compiler-rt"]
    with pytest.raises(Failed, match="expected the license of zig-compiler-rt"):
        archives.licenses(BUNDLE, write_bundle(tmp_path, notices(without)))


@pytest.mark.usefixtures("library")
def test_exports_of_this_machines_library(tmp_path: Path) -> None:
    host = Product("wheel", find_target("host"))
    library = Path(os.environ.get("LITEBNN_LIBRARY") or host.target.folder / host.target.names.library)
    contents = {f"litebnn/lib/{library.name}": library.read_bytes()}
    assert archives.exports(host, write_wheel(tmp_path, contents)) == f"{len(EXPORTS)} names"
    # The test renames an exported function to another name of the same length.
    contents = {name: content.replace(b"litebnn_version", b"litebnn_versioz") for name, content in contents.items()}
    with pytest.raises(Failed, match=r"also exports \['litebnn_versioz'\] and lacks \['litebnn_version'\]"):
        archives.exports(host, write_wheel(tmp_path, contents))


def test_the_same_content_gives_the_same_bill(tmp_path: Path) -> None:
    first, second = (wheel_contents(tmp_path)[f"{INFO}/sboms/{FILE_NAME}"] for _ in range(2))
    assert hashlib.sha256(first).hexdigest() == hashlib.sha256(second).hexdigest()
