"""Findings on this Python, on litebnn's required packages, and on its extras."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, version
from typing import Any

from litebnn import __version__
from litebnn.doctor.finding import BROKEN, IN_CHECKOUT, MISSING, OK, Finding, pip_install

_PYTHON, _EXTRAS = "Python", "Extras"
# For an extra, the newest Python for which all its packages have wheels. A checkout's table is toolchains/needs.py.
NEWEST_PYTHON = {"larq": (3, 13), "compare": (3, 13)}
# For an extra, a package that pip must install without its dependencies, and the first Python for which pip must do so.
# From this Python on, the package is not among the extra's requirements.
APART = {"larq": ("larq", (3, 13))}


def look_at_python() -> Iterator[Finding]:
    """Yields findings on this Python, on litebnn, and on missing required packages."""
    yield Finding(_PYTHON, "Python", OK, f"{platform.python_version()}, {sys.executable}")
    try:
        required = distribution("litebnn").requires or []
    except PackageNotFoundError:
        install = "python3 bootstrap.py build" if IN_CHECKOUT else pip_install("litebnn")
        yield Finding(
            _PYTHON,
            "litebnn",
            MISSING,
            "not installed in this Python, and so without a runtime and the op library",
            install,
        )
        return
    yield Finding(_PYTHON, "litebnn", OK, __version__)
    for text in required:
        # The packages of extras are checked by look_at_extras, which needs the package `packaging`.
        if "extra ==" not in text and (reason := _why_missing(text)):
            yield Finding(_PYTHON, _name(text), BROKEN, reason, pip_install(f"'{text.partition(';')[0].strip()}'"))


def _name(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    return found[0] if found else requirement


def _why_missing(requirement: str) -> str:
    """The reason why a required package is missing; "" if it is installed. The version of the package is not
    checked.
    """
    if "armv7l" in requirement:  # a runtime; runtimes have findings of their own
        return ""
    try:
        version(_name(requirement))
    except PackageNotFoundError:
        return "litebnn needs it"
    return ""


def look_at_extras() -> Iterator[Finding]:
    """Yields a finding for each extra in litebnn's metadata; none if litebnn is not installed."""
    try:
        project = distribution("litebnn")
    except PackageNotFoundError:
        return
    try:
        from packaging.requirements import Requirement
    except ImportError:
        detail = "the package packaging reads what each of them needs"
        yield Finding(_EXTRAS, "extras", MISSING, detail, pip_install("packaging"))
        return
    requirements = [Requirement(text) for text in project.requires or []]
    for extra in project.metadata.get_all("Provides-Extra") or []:
        lacking = [reason for each in _of_extra(requirements, extra, set()) if (reason := _lacking(each))]
        install = pip_install(f"'litebnn[{extra}]'")
        if apart := _lacking_apart(extra):
            lacking.append(apart)
            install += f" && {pip_install(f'--no-deps {apart}')}"
        if not lacking:
            yield Finding(_EXTRAS, extra, OK)
        elif sys.version_info[:2] > NEWEST_PYTHON.get(extra, sys.version_info):
            this, newest = (".".join(map(str, each)) for each in (sys.version_info[:2], NEWEST_PYTHON[extra]))
            yield Finding(_EXTRAS, extra, MISSING, f"no wheels for Python {this}, only up to {newest}")
        else:
            yield Finding(_EXTRAS, extra, MISSING, ", ".join(lacking), install)


def _lacking_apart(extra: str) -> str:
    """The table APART lists packages that must be installed separately. Returns the one that the extra needs and this
    Python lacks, or ""."""
    package, oldest = APART.get(extra, ("", ()))
    try:
        return "" if not package or sys.version_info[:2] < oldest or version(package) else package
    except PackageNotFoundError:
        return package


def _of_extra(requirements: list[Any], extra: str, seen: set[str]) -> Iterator[Any]:
    """The requirements that an extra adds on this machine, including those of the extras that it names."""
    seen.add(extra)
    for each in requirements:
        if each.marker is None or each.marker.evaluate({"extra": ""}) or not each.marker.evaluate({"extra": extra}):
            continue
        if each.name == "litebnn":
            for other in sorted(each.extras - seen):
                yield from _of_extra(requirements, other, seen)
        else:
            yield each


def _lacking(requirement: Any) -> str:
    """The requirement of a package that is not installed, or is installed in another version; "" if it is met."""
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        return str(requirement.name)
    if requirement.specifier.contains(found, prereleases=True):
        return ""
    return f"{requirement.name}{requirement.specifier}, not {found}"
