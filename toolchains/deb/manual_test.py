from datetime import date

import pytest

from toolchains.deb.manual import manual_page, programs, roff
from toolchains.targets import VERSION, ToolkitError

DAY = date(2026, 11, 23)


@pytest.mark.parametrize("program", programs())
def test_each_program_has_a_page(program: str) -> None:
    page = manual_page(program, DAY, ["label_image", "run_model"])
    lines = page.splitlines()
    assert lines[0] == f'.TH {program.upper()} 1 "2026-11-23" "litebnn {VERSION}" "User Commands"'
    headings = [line.removeprefix(".SH ") for line in lines if line.startswith(".SH")]
    assert headings == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"]
    assert rf"{program} \- " in page
    # Markdown with characters that have a meaning in roff. The manual page must print them unchanged.
    assert not {"`", "|", "]("} & {mark for mark in ("`", "|", "](") if mark in page}
    assert rf"\fB{program}\fR(1)" not in page


def test_the_options_are_those_of_the_document() -> None:
    page = manual_page("run_model", DAY, [])
    assert ".TP\n" + r"\fB\-\-num_threads\fR" + "\nNumber of threads, 1 to 256. The default is 1.\n" in page
    assert page.count(".TP\n") == 7


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("[a page](page.md) and `--flag`", r"a page and \fB\-\-flag\fR"),
        ("**loud**\nlines", "loud lines"),
        (".dot", r"\&.dot"),
        (r"back\slash", r"back\eslash"),
    ],
)
def test_markdown_becomes_roff(markdown: str, expected: str) -> None:
    assert roff(markdown) == expected


def test_another_program_is_refused() -> None:
    with pytest.raises(ToolkitError, match=r"programs\.md does not describe ls; it has label_image, "):
        manual_page("ls", DAY, [])
