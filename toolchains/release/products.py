"""The products that a release distributes, and the module that builds each."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolchains.needs import missing, toolchain_needs
from toolchains.runtime_library import LITERT_WHEELS
from toolchains.targets import ROOT, Target, ToolkitError, load_targets


class Failed(Exception):
    """A product or the project breaks a promise. The message says what was expected."""


class Skipped(Exception):
    """The check cannot run on this machine. The message is the reason."""


def expect(condition: object, message: str) -> None:
    """Raises Failed unless the condition is true."""
    if not condition:
        raise Failed(message)


def _has_wheel(target: Target) -> bool:
    """True if the target gets a wheel. In each family of CPUs only one target gets one, and its wheel runs on all
    boards of the family."""
    return bool(target.wheel) and target.family == target.name


def _has_bundle(target: Target) -> bool:
    return bool(target.triple) and bool({target.name, target.processor} & set(LITERT_WHEELS)) and not target.ndk_abi


def _has_deb(target: Target) -> bool:
    """True if the target gets Debian packages. In each family of CPUs only one target gets them, and Debian must have
    its architecture."""
    return bool(target.debian) and target.family == target.name


@dataclass(frozen=True)
class Kind:
    """A kind of product. The command `python -m MODULE --target=NAME` makes the product, and ends with the paths of its
    files. A machine needs the rows `needs` of toolchains/needs.py to make it.
    """

    module: str
    suffix: str
    is_for: Callable[[Target], bool]
    needs: Callable[[Target], tuple[str, ...]] = lambda target: ()


KINDS = {
    "wheel": Kind("toolchains.wheel", ".whl", _has_wheel),
    "bundle": Kind("toolchains.bundle", ".tar.gz", _has_bundle),
    "deb": Kind("toolchains.deb.packages", ".deb", _has_deb, lambda row: ("debhelper", *toolchain_needs(row, "gcc"))),
}


@dataclass(frozen=True)
class Product:
    """A distributed file, or several files that are made together, for one target."""

    kind: str
    target: Target

    def __str__(self) -> str:
        return f"{self.kind} {self.target.name}"


def products() -> list[Product]:
    """All products, in the order of KINDS and of targets.toml."""
    return [
        Product(name, target)
        for name, kind in KINDS.items()
        for target in load_targets().values()
        if kind.is_for(target)
    ]


@functools.cache
def files_of(product: Product) -> tuple[Path, ...]:
    """The product's files in dist/. The first call builds them.

    Raises:
        Skipped: this machine cannot make such a product.
        ToolkitError: the product cannot be built; another call tries again.
    """
    for name in KINDS[product.kind].needs(product.target):
        if reason := missing(name):
            raise Skipped(reason)
    return build_in(ROOT, product)


def build_in(folder: Path, product: Product) -> tuple[Path, ...]:
    """Builds a product in a checkout.

    Raises:
        ToolkitError: the product cannot be built.
    """
    kind = KINDS[product.kind]
    path = os.pathsep.join([str(folder), str(folder / "converter")])
    command = [sys.executable, "-m", kind.module, f"--target={product.target.name}"]
    run = subprocess.run(command, cwd=folder, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    if run.returncode:
        reason = (run.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise ToolkitError(reason.removeprefix("error: "))
    found = tuple(folder / line for line in run.stdout.splitlines() if line.endswith(kind.suffix))
    if not found:
        raise ToolkitError(f"{kind.module} has made no {kind.suffix}")
    return found


def copy_checkout(folder: Path) -> Path:
    """Copies the sources into a new folder, without any build product; returns the folder.

    Raises:
        ToolkitError: the project's folder is no git checkout.
    """
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    run = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True)
    if run.returncode:
        raise ToolkitError(f"the sources are copied by git: {run.stderr.strip()}")
    for name in filter(None, run.stdout.split("\0")):
        if (ROOT / name).is_file():
            copy = folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy)
    return folder
