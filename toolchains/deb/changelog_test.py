from datetime import date
from pathlib import Path

import pytest

from toolchains.deb.changelog import newest
from toolchains.targets import VERSION, ToolkitError

ENTRY = "# Changelog\n\n## [1.2.3] - 2026-11-23\n\n### Added\n\n- A thing\n  of two lines.\n- Another.\n"


def test_the_newest_entry(tmp_path: Path) -> None:
    file = tmp_path / "CHANGELOG.md"
    for text in (ENTRY, ENTRY.replace("\n## ", "\n## [Unreleased]\n\n## "), f"{ENTRY}\n## [1.2.2] - 2026-11-22\n"):
        file.write_text(text)
        assert newest(file) == ("1.2.3", date(2026, 11, 23), {"Added": ["A thing of two lines.", "Another."]})


def test_the_changelog_has_this_version() -> None:
    assert newest().version == VERSION


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected `## "),
        (ENTRY.replace(" - 2026-11-23", ""), "expected `## "),
        (ENTRY.replace("11-23", "13-23"), "2026-13-23: "),
        (ENTRY.replace("Added", "New"), "found .'New'."),
        (ENTRY.replace("- A", "A").replace("- Another", ""), "names no change"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "CHANGELOG.md"
    if text:
        file.write_text(text)
    with pytest.raises(ToolkitError, match=message):
        newest(file)
