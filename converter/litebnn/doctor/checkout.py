"""The part of `litebnn doctor` for a source checkout: what builds and tests need, by toolchains/needs.py."""

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from litebnn.doctor.finding import BROKEN, MISSING, OK, Finding, with_pip
from toolchains.needs import Need, installation, missing, needs, toolchain_needs
from toolchains.probes import cxx_program, runs

if TYPE_CHECKING:
    from toolchains.targets import Target

EXTRAS, BUILDING, EMULATORS, TESTS = "Extras", "Building", "Emulators", "Tests and tasks"
COMPILER, TOOLS = "c++", ("cmake", "ninja", "docker-engine")


def look_at_extras() -> Iterator[Finding]:
    """Yields a finding for each extra in needs.py, for a Python in which litebnn is not installed."""
    for need in needs().values():
        if need.install.startswith(f"pip install 'litebnn[{need.name}]'"):
            yield _finding(EXTRAS, need, need.purpose)


def look_at_checkout() -> Iterator[Finding]:
    """Yields findings on compilers, the targets that they can build, emulators, and the other requirements of tests and
    tasks."""
    yield _compiler()
    yield from (_finding(BUILDING, needs()[name], needs()[name].purpose) for name in TOOLS)
    targets: list[Target] = []
    try:
        from toolchains.targets import load_targets

        targets += load_targets().values()
    except ImportError:
        detail = "Python 3.10 reads targets.toml with tomli alone"
        yield Finding(BUILDING, "targets", MISSING, detail, "python3 bootstrap.py targets")
    for target in targets:
        lacks = {each: [name for name in toolchain_needs(target, each) if missing(name)] for each in target.toolchains}
        # A build by zig installs a missing zig.
        found = [
            f"{name} (which the build fetches)" if lacking else name
            for name, lacking in lacks.items()
            if lacking in ([], ["cross"])
        ]
        if found:
            yield Finding(BUILDING, target.name, OK, f"built by {', '.join(found)}")
        else:
            # The first toolchain in a target's list is its default.
            first = next(iter(lacks.values()))
            yield Finding(BUILDING, target.name, MISSING, f"needs {', '.join(first)}", _one_command(first))
    emulators = dict.fromkeys(target.emulator for target in targets if target.emulator)
    yield from (_finding(EMULATORS, needs()[name], "running other CPUs' programs") for name in emulators)
    yield from _remaining({COMPILER, *TOOLS, "ndk", *emulators, *(f"{target.triple}-g++" for target in targets)})


def _compiler() -> Finding:
    """The finding on the compiler for this machine, which is broken if it does not run."""
    need, named = needs()[COMPILER], " ".join(os.environ.get("CXX", "").split()[:1])
    if not named and missing(COMPILER):
        return _finding(BUILDING, need, need.purpose)
    program = cxx_program() or named
    if runs(program, "--version"):
        return Finding(BUILDING, COMPILER, OK)
    mends = "unset CXX" if named else need.install.replace("install", "install --reinstall")
    which = ", which CXX names," if named else ""
    return Finding(BUILDING, COMPILER, BROKEN, f"{program}{which} does not run with --version", mends)


def _remaining(shown: Iterable[str]) -> Iterator[Finding]:
    """Yields the requirements that other sections do not show. Network services, and packages that the installed
    litebnn lists itself, are left out.
    """
    rest = [need for need in needs().values() if need.kind not in ("package", "network") and need.name != "library"]
    for need in rest:
        if need.name not in shown:
            yield _finding(TESTS, need, "what needs it is skipped")


def _finding(section: str, need: Need, purpose: str) -> Finding:
    if missing(need.name) and not need.has_wheels:
        return Finding(section, need.name, MISSING, need.no_wheels())
    if missing(need.name):
        return Finding(section, need.name, MISSING, purpose, _one_command([need.name]))
    return Finding(section, need.name, OK)


def _one_command(names: list[str]) -> str:
    """The command that installs all missing packages."""
    return with_pip(" && ".join(installation(names)))
