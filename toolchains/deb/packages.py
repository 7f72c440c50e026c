"""Makes Debian packages for a target's architecture, by debhelper: dist/PACKAGE_VERSION_ARCHITECTURE.deb.

Usage:

    python -m toolchains.deb.packages --target=rpi4

The sources and toolchains/deb/debian are copied into build/FAMILY/deb, and dpkg-buildpackage works there. The files in
debian/ define the packages and their contents.
"""

import os
import shutil
import subprocess
import sys
import textwrap
from datetime import datetime, time, timezone
from email.utils import format_datetime
from pathlib import Path

from toolchains.build import copy_whole, first_error, locked
from toolchains.command_line import parser, run
from toolchains.compilers import find_gcc
from toolchains.deb.changelog import Entry, newest
from toolchains.deb.manual import manual_page
from toolchains.needs import missing
from toolchains.parts import write
from toolchains.probes import debian_architecture, find_program
from toolchains.runtime_library import LITERT_WHEELS, fetch
from toolchains.targets import ROOT, VERSION, Target, ToolkitError, find_system_target, find_target, load_targets

DEBIAN = ROOT / "toolchains" / "deb" / "debian"
# The files of the project that the packages are made from: compiled, installed, or read by the build. The folder
# debian/ comes in addition.
SOURCES = (
    *("CMakeLists.txt", "LICENSE", "converter/litebnn/__init__.py", "examples/label_image", "ops", "programs"),
    "toolchains/cmake",
)
# The file in debian/ that lists the programs. Each of them gets a manual page.
LINKS = "litebnn-tools.links"


def debian_target(name: str) -> Target:
    """The target whose libraries go into the Debian packages for the target `name`. It is the family of `name`: the
    target for all CPUs of this kind, because the packages must run on all of them.

    Raises:
        ToolkitError: no target has this name, or Debian has no architecture for it.

    Example:
        >>> debian_target("rpi4").debian
        'arm64'
    """
    target = find_system_target(name)
    if not target.triple:
        architecture = debian_architecture()
        heads = [row for row in load_targets().values() if row.debian == architecture and row.family == row.name]
        target = heads[0] if heads else target
    family = find_target(target.family)
    if not family.debian:
        raise ToolkitError(f"there are no Debian packages for {name}: targets.toml has no architecture of Debian's")
    return family


def packages_in(folder: Path, target: Target) -> list[Path]:
    """The packages of this version for a target's architecture in a folder, in the order of their names."""
    return sorted(folder.glob(f"*_{VERSION}_{target.debian}.deb"))


def deb(target: str, folder: Path = ROOT / "dist") -> list[Path]:
    """Makes the packages of a target's architecture.

    Args:
        target: a row of targets.toml. Its family is built, because a package must run on every CPU of its architecture.
        folder: the folder for the packages.

    Returns:
        The paths of the packages, FOLDER/PACKAGE_VERSION_ARCHITECTURE.deb. Existing packages are unchanged if the build
        fails.

    Raises:
        ToolkitError: the target has no packages, debhelper or Debian's compiler is missing, or the build failed.

    Example:
        >>> deb("rpi4")  # doctest: +SKIP
        [PosixPath('.../dist/liblitebnn-dev_0.1.0_arm64.deb'), ...]
    """
    row = debian_target(target)
    find_gcc(row)
    if reason := missing("debhelper"):
        raise ToolkitError(reason)
    runtime = fetch(row.name) if row.processor in LITERT_WHEELS else None
    work = row.folder / "deb"
    with locked(work):
        tree = make_tree(work / f"litebnn-{VERSION}", runtime)
        _build(row, tree)
        folder.mkdir(exist_ok=True)
        packages = packages_in(work, row)
        for package in packages:
            copy_whole(package, folder)
    return [folder / package.name for package in packages]


def make_tree(tree: Path, runtime: Path | None) -> Path:
    """Makes a source package's folder, with its changelog and manual pages; `runtime` has LiteRT for the programs."""
    shutil.rmtree(tree, ignore_errors=True)
    for name in SOURCES:
        source, copy = ROOT / name, tree / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, copy)
    if runtime:
        shutil.copytree(runtime, tree / "runtime")
    entry = newest()
    shutil.copytree(DEBIAN, tree / "debian")
    write(tree / "debian" / "changelog", debian_changelog(entry))
    for program in programs():
        write(tree / "debian" / f"{program}.1", manual_page(program, entry.day, programs()))
    return tree


def programs() -> list[str]:
    """The names of the programs that the packages install in /usr/bin."""
    lines = (DEBIAN / LINKS).read_text(encoding="utf-8").split()
    return [Path(name).name for name in lines[1::2]]


def debian_changelog(entry: Entry) -> str:
    """The changelog's entry in Debian's form. Its author is the maintainer that debian/control names.

    Raises:
        ToolkitError: the entry is not of the package's version.
    """
    if entry.version != VERSION:
        raise ToolkitError(f"CHANGELOG.md: expected an entry of {VERSION} first, found {entry.version}")
    lines = (DEBIAN / "control").read_text(encoding="utf-8").splitlines()
    maintainer = next(line.partition(": ")[2] for line in lines if line.startswith("Maintainer: "))
    changes = [
        textwrap.fill(f"{heading}: {change}", 80, initial_indent="  * ", subsequent_indent="    ")
        for heading, listed in entry.changes.items()
        for change in listed
    ]
    moment = format_datetime(datetime.combine(entry.day, time(), timezone.utc))
    head = f"litebnn ({entry.version}) unstable; urgency=medium"
    return "\n".join([head, "", *changes, "", f" -- {maintainer}  {moment}"]) + "\n"


def _build(target: Target, tree: Path) -> None:
    """Runs dpkg-buildpackage in the folder of sources; the finished packages are next to this folder."""
    for old in tree.parent.glob("*.deb"):
        old.unlink()
    options = f"parallel={os.cpu_count() or 1} noautodbgsym {os.environ.get('DEB_BUILD_OPTIONS', '')}"
    command = [
        "dpkg-buildpackage",
        f"--host-arch={target.debian}",
        "--build=binary",
        "--no-sign",
        "--no-check-builddeps",
    ]
    print(f"{target.name}: dpkg-buildpackage for {target.debian}", flush=True)
    log = tree.parent / "dpkg-buildpackage.log"
    # The copy of CMake in this Python environment must not be used. Compiler flags of this machine's builds must not
    # reach Debian's builds.
    path = os.pathsep.join([str(Path(find_program("cmake")).parent), os.environ["PATH"]])
    own = {
        name: value for name, value in os.environ.items() if name not in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS")
    }
    with log.open("w", encoding="utf-8") as file:
        variables = own | {"DEB_BUILD_OPTIONS": options, "PATH": path, "LC_ALL": "C.UTF-8"}
        code = subprocess.run(command, cwd=tree, env=variables, stdout=file, stderr=subprocess.STDOUT).returncode
    if code:
        cause = first_error(log.read_text(encoding="utf-8", errors="replace"))
        raise ToolkitError(f"dpkg-buildpackage failed with code {code}{cause}; all of it: {log.relative_to(ROOT)}")


def make_and_print(target: str) -> None:
    """Makes the packages, and prints their paths."""
    for package in deb(target):
        print(package.relative_to(ROOT))


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    return run(parser("toolchains.deb.packages", __doc__), make_and_print, arguments)


if __name__ == "__main__":
    sys.exit(main())
