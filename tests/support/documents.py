"""Reads the documents, and finds the files, tasks and versions that the project's text mentions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolchains.targets import ROOT

FOLDERS = (
    "android",
    "bench",
    "converter",
    "docker",
    "docs",
    "examples",
    "fuzz",
    "mutants",
    "ops",
    "programs",
    "tests",
    "toolchains",
)
SUFFIXES = {".S", ".c", ".cc", ".cmake", ".h", ".md", ".py", ".sh", ".toml", ".txt"}
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

# The pattern of a path: it begins with a folder of the project and a slash. Braces and stars make the path itself a
# pattern.
PATH = re.compile(rf"(?<![\w./{{}}-])(?:{'|'.join(FOLDERS)})/[\w./*{{}},-]*[\w/*}}]")
SPAN = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"(?:invoke|python3 bootstrap\.py) ([a-z][\w-]*)([^#&|]*)")
MODULE = re.compile(r"python3? -m ([\w.]+)")


# The pattern of a code block with the hidden comment above it. The comment says why no test can run the block, or has
# code to run before it.
BLOCK = re.compile(
    r"(?:^<!-- (?P<word>not run|given):\s(?P<comment>(?:(?!-->).)*?)\s-->\n)?^```(?P<language>.*?)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A block of code in a document."""

    document: str
    line: int
    language: str
    text: str
    not_run: str  # the reason why no test can run it; empty if it runs
    given: str  # Python that runs before it


def blocks(document: str) -> Iterator[Block]:
    """Yields the code blocks of a document, in their order."""
    text = read(document)
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("language")) + 1
        reason, given = (found["comment"] if found["word"] == word else "" for word in ("not run", "given"))
        yield Block(document, line, found["language"], found["text"], reason or "", given or "")


def sources() -> Iterator[Path]:
    """Yields the path of every text file of the project."""
    yield from (path for path in ROOT.iterdir() if path.suffix in SUFFIXES)
    yield from (ROOT / ".ci" / "run", ROOT / "docker" / "Dockerfile")
    for folder in FOLDERS:
        yield from (path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES and path.is_file())


def read(path: Path | str) -> str:
    """The text of a file, whose path is relative to the project's folder."""
    return (ROOT / path).read_text(encoding="utf-8")


def named_paths(text: str) -> list[str]:
    """The paths of project files in a text, without C++ includes, which the compiler checks."""
    return PATH.findall(re.sub(r"^#include .*$", "", text, flags=re.MULTILINE))


def exists(path: str) -> bool:
    """True if a path exists. In a path, {a,b} stands for a and b. {a}, a word in capitals and * stand for any name."""
    braces = re.search(r"\{([^{}]*)\}", path)
    if braces:
        parts = braces[1].split(",") if "," in braces[1] else ["*"]
        return all(exists(path.replace(braces[0], part, 1)) for part in parts)
    pattern = re.sub(r"(?<![A-Za-z])[A-Z]{2,}(?![A-Za-z])", "*", path) if not (ROOT / path).exists() else path
    found = ROOT.glob(pattern.rstrip("/"))
    return any(each.is_dir() or not path.endswith("/") for each in found)


def spans(text: str, is_document: bool) -> list[str]:
    """The texts in backticks. For a document, also the lines of its code blocks."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE) if is_document else []
    return [*SPAN.findall(text), *(line for block in blocks for line in block.splitlines())]


def commands(text: str, is_document: bool) -> list[tuple[str, list[str]]]:
    """The `invoke` tasks that a text mentions, each with its flags."""
    calls = [call for span in spans(text, is_document) if (call := COMMAND.match(span))]
    return [(call[1], re.findall(r"(?<!\S)(--?[a-z][\w-]*)", call[2])) for call in calls]


def modules(text: str) -> list[str]:
    """The modules that a text mentions after `python -m`."""
    return MODULE.findall(text)


def links(text: str) -> list[tuple[str, str]]:
    """The links of a document within the project: file ("" for the document itself) and heading ("" for none)."""
    return re.findall(r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)", text)


def anchors(text: str) -> set[str]:
    """The anchors of a document's headings."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def table(path: Path | str, header: str) -> list[list[str]]:
    """The cells, row by row, of the table whose first line begins with `header`."""
    lines = iter(read(path).splitlines())
    if not any(line.startswith(f"| {header} |") for line in lines):
        raise LookupError(f"{path} has no table that begins with '{header}'")
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def code(cell: str) -> list[str]:
    """The texts in backticks in a table's cell."""
    return SPAN.findall(cell)
