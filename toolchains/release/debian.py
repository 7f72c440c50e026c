"""Checks of Debian packages, by Debian's own programs."""

import functools
import subprocess
import tempfile
from pathlib import Path

from toolchains.binaries import EXPORTS, exported_names
from toolchains.deb.packages import packages_in
from toolchains.deb.trial import found, suite, try_packages
from toolchains.needs import missing
from toolchains.release.products import Product, Skipped, expect
from toolchains.targets import VERSION, Target

# The digit that the example image in the package litebnn-tools shows.
DIGIT = "7"


def files_in_deb(file: Path) -> bytes:
    """The tar archive of the files that a package installs."""
    return subprocess.run(["dpkg-deb", "--fsys-tarfile", file], capture_output=True, check=True).stdout


def fields(file: Path) -> dict[str, str]:
    """The fields of a package's control file."""
    run = subprocess.run(["dpkg-deb", "--field", file], capture_output=True, text=True, check=True)
    rows = [line.partition(": ") for line in run.stdout.splitlines() if not line.startswith(" ")]
    return {name: value for name, _, value in rows}


def control(product: Product, file: Path) -> str:
    """The package's fields and its file's name agree, and the library inside has the version and the public names."""
    found = fields(file)
    name = f"{found['Package']}_{found['Version']}_{found['Architecture']}.deb"
    expect(file.name == name, f"expected the name {name}, found {file.name}")
    expect(found["Version"] == VERSION, f"expected version {VERSION}, found {found['Version']}")
    expect(found["Architecture"] == product.target.debian, f"expected {product.target.debian}, found {name}")
    if found["Package"] == "liblitebnn1":
        _check_library(file)
    return f"{found['Package']}, {file.stat().st_size:,} bytes"


def _check_library(file: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["dpkg-deb", "--extract", file, folder], check=True)
        libraries = [path for path in Path(folder).rglob("liblitebnn.so.1.*") if not path.is_symlink()]
        expect(len(libraries) == 1, f"expected one liblitebnn.so.1.*, found {libraries}")
        found = exported_names(libraries[0])
        expect(found == EXPORTS, f"the library exports {found}")
        expect(f"{VERSION}\0".encode() in libraries[0].read_bytes(), f"the library does not say {VERSION}")


@functools.cache
def _tried(target: Target, packages: tuple[Path, ...]) -> dict[str, str]:
    return found(try_packages(target, packages))


def installed(product: Product, file: Path) -> str:
    """apt installs and removes the packages in a fresh Debian of their architecture, where their programs run."""
    for need in ("mmdebstrap", "debian", "namespaces"):
        if reason := missing(need):
            raise Skipped(reason)
    packages = tuple(packages_in(file.parent, product.target))
    printed = _tried(product.target, packages)
    expect(printed.get("version") == VERSION, f"the installed library says {printed}")
    has_programs = any(fields(package)["Package"] == "litebnn-tools" for package in packages)
    expect(printed.get("digit") == (DIGIT if has_programs else None), f"label_image says {printed.get('digit')}")
    ran = f"label_image names {DIGIT}" if has_programs else "the library makes a delegate"
    return f"{suite(product.target)} {product.target.debian}: {ran}"


def lintian(product: Product, file: Path) -> str:
    """Debian's checker, lintian, finds neither an error nor a warning."""
    if reason := missing("lintian"):
        raise Skipped(reason)
    command = ["lintian", "--no-cfg", "--fail-on=error,warning", file]
    run = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect(run.returncode == 0, run.stdout)
    return f"{fields(file)['Package']}: no error, no warning"
