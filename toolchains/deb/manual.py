"""Manual pages of the programs, made from docs/programs.md, which the tests compare with the programs' flags."""

import re
from collections.abc import Sequence
from datetime import date

from toolchains.targets import ROOT, VERSION, ToolkitError

DOCUMENT = ROOT / "docs" / "programs.md"


def programs() -> dict[str, str]:
    """The programs that the document describes, each with a line that says what the program does."""
    rows = re.findall(r"^\| \[`(.+?)`\]\(.+?\) \| (.+?) \|$", _read(), re.MULTILINE)
    return dict(rows)


def manual_page(program: str, day: date, others: Sequence[str]) -> str:
    """The manual page of a program in the form of man(7): name, synopsis, description and options. Its last section,
    SEE ALSO, lists the programs `others`.

    Raises:
        ToolkitError: the document does not describe the program.
    """
    known = programs()
    found = re.search(rf"^## {re.escape(program)}\n(.*?)(?=^## |\Z)", _read(), re.MULTILINE | re.DOTALL)
    if program not in known or not found:
        raise ToolkitError(f"{DOCUMENT.name} does not describe {program}; it has {', '.join(known)}")
    before, _, _ = found[1].partition("\n|")
    paragraphs = [text for text in re.split(r"\n{2,}", before.strip()) if not text.startswith(("<!--", "```", "- "))]
    lines = [
        f'.TH {program.upper()} 1 "{day.isoformat()}" "litebnn {VERSION}" "User Commands"',
        *(".SH NAME", rf"{program} \- {roff(known[program])}"),
        *(".SH SYNOPSIS", rf".B {program}", r"[\fIOPTION\fR]..."),
        ".SH DESCRIPTION",
        *(line for text in paragraphs for line in (".PP", roff(text))),
        ".SH OPTIONS",
        *(line for row in _flags(found[1]) for line in row),
        *(".TP", r"\fB\-\-help\fR, \fB\-h\fR", "Print the options."),
        *(".SH SEE ALSO", ", ".join(rf"\fB{roff(other)}\fR(1)" for other in others if other != program)),
    ]
    return "\n".join(lines) + "\n"


def _flags(section: str) -> list[tuple[str, str, str]]:
    """For each flag of a program, the lines of the manual page that describe it."""
    rows = re.findall(r"^\| (`--.+?) \| (.*?) ?\| (.+?) \|$", section, re.MULTILINE)
    texts = [(names, f"{text}. The default is {default}." if default else f"{text}.") for names, default, text in rows]
    return [(".TP", roff(names), roff(text[0].upper() + text[1:])) for names, text in texts]


def roff(markdown: str) -> str:
    """Converts a paragraph of markdown to roff: code becomes bold, and of links only the text remains."""
    text = " ".join(markdown.split()).replace("\\", r"\e")
    text = re.sub(r"\[(.+?)\]\(.+?\)", r"\1", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"\1", text)
    text = text.replace("-", r"\-")
    text = re.sub(r"`(.+?)`", r"\\fB\1\\fR", text)
    # In roff, a line that begins with a dot or an apostrophe would be a command.
    return rf"\&{text}" if text.startswith((".", "'")) else text


def _read() -> str:
    return DOCUMENT.read_text(encoding="utf-8")
