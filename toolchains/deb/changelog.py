"""Entries of CHANGELOG.md, which has the form of Keep a Changelog."""

import re
from datetime import date
from pathlib import Path
from typing import NamedTuple

from toolchains.targets import ROOT, ToolkitError

CHANGELOG = ROOT / "CHANGELOG.md"
# The headings of https://keepachangelog.com.
CHANGES = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


class Entry(NamedTuple):
    """A released version, its date, and its changes by heading."""

    version: str
    day: date
    changes: dict[str, list[str]]


def newest(file: Path = CHANGELOG) -> Entry:
    """The newest entry with a version.

    Raises:
        ToolkitError: there is none, or it has no date, another heading, or no change.
    """
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    entries = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    released = [entry for entry in entries if not entry.startswith("[Unreleased]")]
    head, _, body = (released or [""])[0].partition("\n")
    found = re.fullmatch(r"\[(.+)\] - (\d{4}-\d\d-\d\d)", head)
    if not found:
        raise ToolkitError(f"{file.name}: expected `## [VERSION] - DATE` first, found `## {head}`")
    try:
        day = date.fromisoformat(found[2])
    except ValueError as error:
        raise ToolkitError(f"{file.name}: {found[2]}: {error}") from error
    changes: dict[str, list[str]] = {}
    for section in re.split(r"^### ", body, flags=re.MULTILINE)[1:]:
        heading, _, lines = section.partition("\n")
        changes[heading] = [" ".join(item.split()) for item in re.split(r"^- ", lines, flags=re.MULTILINE)[1:]]
    if unknown := sorted(changes.keys() - CHANGES):
        raise ToolkitError(f"{file.name}: expected some of {sorted(CHANGES)}, found {unknown}")
    if not any(changes.values()):
        raise ToolkitError(f"{file.name}: the entry of {found[1]} names no change")
    return Entry(found[1], day, changes)
