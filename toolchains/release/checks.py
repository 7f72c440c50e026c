"""The table of checks of a release, and the checks of the project as a whole."""

import atexit
import functools
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolchains.deb.changelog import newest
from toolchains.release import archives, debian, installing
from toolchains.release.products import KINDS, Product, build_in, copy_checkout, expect, files_of
from toolchains.runtime_library import runtime_folder
from toolchains.targets import BUILD, ROOT, VERSION


def tagged() -> str:
    """The commit has no version tag, or a tag that equals the package's version."""
    run = subprocess.run(["git", "tag", "--points-at=HEAD"], cwd=ROOT, capture_output=True, text=True)
    named = [tag for tag in run.stdout.split() if re.fullmatch(r"v\d.*", tag)]
    expect(named in ([], [f"v{VERSION}"]), f"expected the tag v{VERSION}, found {', '.join(named)}")
    return f"{VERSION}, {'tagged' if named else 'no tag yet'}"


def changelog() -> str:
    """The newest entry of CHANGELOG.md has the package's version, a date, and a list of changes."""
    entry = newest()
    expect(entry.version == VERSION, f"expected an entry of {VERSION} first, found {entry.version}")
    return f"{entry.version}, {entry.day}"


def built(_: Product, file: Path) -> str:
    """The product can be built."""
    return f"dist/{file.name}, {file.stat().st_size / 1e6:.1f} MB"


@functools.cache
def _second_checkout() -> Path:
    """A copy of the sources in another folder, which exists until the program ends."""
    temporary = tempfile.TemporaryDirectory(prefix="litebnn-elsewhere")
    atexit.register(temporary.cleanup)
    return copy_checkout(Path(temporary.name) / "another" / "checkout")


@functools.cache
def _built_again(product: Product) -> dict[str, Path]:
    """The files of a product that is built again in a copy of the sources, by their names. All products of a target are
    built in one folder, as in the original sources."""
    folder = _second_checkout()
    fetched = runtime_folder(product.target.name)
    if fetched.is_dir():
        shutil.copytree(fetched, folder / fetched.relative_to(BUILD.parent), dirs_exist_ok=True)
    return {file.name: file for file in build_in(folder, product)}


def reproducible(product: Product, file: Path) -> str:
    """If the sources are built again in another folder, the result is the same file."""
    others = _built_again(product)
    expect(file.name in others, f"it was made as {', '.join(others)}")
    digest, other = (hashlib.sha256(path.read_bytes()).hexdigest() for path in (file, others[file.name]))
    expect(
        digest == other,
        f"sha256 {digest[:12]} here, {other[:12]} in another folder{_difference(file, others[file.name])}",
    )
    return f"sha256 {digest[:12]}"


def _difference(file: Path, other: Path) -> str:
    """The names of the files that differ between two archives."""
    ours, theirs = archives.read_archive(file), archives.read_archive(other)
    return f": {', '.join(name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name))}"


@dataclass(frozen=True)
class Check:
    """A check of a release, which is a row of the table CHECKS."""

    # The check's name for the option `--only`.
    name: str
    # The function that does the check. Its docstring is the promise that is checked, and it returns a line on what it
    # found. Without `kinds` it takes no arguments, otherwise a product and one of its files.
    run: Callable[..., str]
    # The kinds of products to which the check applies.
    kinds: tuple[str, ...] = ()


ARCHIVES = ("wheel", "bundle")
CHECKS = (
    Check("tag", tagged),
    Check("changelog", changelog),
    Check("build", built, tuple(KINDS)),
    Check("version", archives.version, ARCHIVES),
    Check("control", debian.control, ("deb",)),
    Check("lintian", debian.lintian, ("deb",)),
    Check("apt", debian.installed, ("deb",)),
    Check("size", archives.size, ("wheel",)),
    Check("exports", archives.exports, ARCHIVES),
    Check("licenses", archives.licenses, ARCHIVES),
    Check("sbom", archives.bill, ARCHIVES),
    Check("platforms", installing.tags, ("wheel",)),
    Check("install", installing.three_lines, ("wheel",)),
    Check("readme", installing.readme, ("wheel",)),
    Check("reproducible", reproducible, tuple(KINDS)),
)


def subjects(check: Check, chosen: list[Product]) -> list[Product | None]:
    """The products to which a check applies. For a check of the project as a whole, the list is [None]."""
    return [product for product in chosen if product.kind in check.kinds] if check.kinds else [None]


def make(check: Check, product: Product | None) -> str:
    """Runs a check; returns a line on what the check found.

    Raises:
        Failed, Skipped, ToolkitError: the errors of the check and of the build.
    """
    if product is None:
        return check.run()
    return "; ".join(dict.fromkeys(check.run(product, file) for file in files_of(product)))
