"""Finds prose that is hard to read: comments without a subject or an end, bare pronouns, long sentences and paragraphs.

Usage:

    python -m tests.docs.prose [FILE_OR_FOLDER...]

prints each finding with its file and line. Without arguments it reads all files of the project.
"""

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolchains.targets import ROOT

# Folders that are not searched, because they contain build products or code of other projects.
NO_PROSE_FOLDERS = {"build", "dist", "vendor"}

WORDS_OF_A_SENTENCE = 25
WORDS_OF_A_PARAGRAPH = 90

OPENING = re.compile(
    r"(?:Of|What|Whether|Such|That|As|Where|Those|With|Beside|Behind|How|Why|Who|Which|Whose|So|And|But|Or|Not|Because)\b"
    r"|(?:It|Its|They|Them|Their|Then|Also|Otherwise|Therefore|Instead|Here|Now)\b"
)
# A pronoun without a noun, as the subject of a sentence. Readers would have to guess the noun.
NO_NOUN = re.compile(
    r"(?:These|Those|This|That|Both|Others|The (?:others?|latter|former)) "
    r"(?:is|are|was|were|has|have|had|does|do|must|may|might|can|could|will|would"
    r"|keeps?|makes?|takes?|gives?|needs?|holds?|saves?|means?|comes?|gets?)\b"
)
TWICE = re.compile(r"\b(\w+:?) \1(?!\w)")
# A sentence may also end in a quotation, a formula or an address.
END = re.compile(r"[.:;!?…)`\"'>|\]\d]$|\S/\S+$")
SENTENCE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][)*\"]))\s+(?=[A-Z0-9`\"(\[*])")
LONG_STRING = re.compile(r"(\"{3}|'{3}).*?\1", re.DOTALL)
NOT_PROSE = re.compile(r"noqa|type:|fmt:|ruff:|mypy:|pylint|NOLINT|clang-format|mutants:")
# Text that readers of a document do not see as prose: code, comments, headings and pictures.
NO_PROSE = re.compile(r"^```.*?^```|^~~~.*?^~~~|<!--.*?-->", re.DOTALL | re.MULTILINE)
NO_PROSE_LINE = re.compile(r"\s*(?:#|\[?!\[|:::|\(\w+\)=)")
ROW = re.compile(r"\s*\|")
ENTRY = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")
DOCSTRING_ENTRY = re.compile(rf"{ENTRY.pattern}|[\w*]+(?:, [\w*]+)*(?: \([^)]*\))?: ")
COMMENT_MARKS = {
    **dict.fromkeys((".c", ".cc", ".h", ".S", ".js", ".ino"), "//"),
    **dict.fromkeys((".py", ".cmake", ".sh", ".toml", ".yml"), "#"),
}
# For each file name without a suffix in `COMMENT_MARKS`, a suffix whose files have the same comment marks.
SUFFIXES = {"CMakeLists.txt": ".cmake", "Dockerfile": ".sh", "Makefile": ".sh"}


@dataclass(frozen=True)
class Paragraph:
    """Consecutive lines of text, joined to one string."""

    line: int
    text: str
    opens: bool  # true for the first paragraph of a comment, and for each entry of a list


def paragraphs(lines: list[tuple[int, str]], entry: re.Pattern[str]) -> Iterator[Paragraph]:
    """The paragraphs of some text, which end at an empty line and before an entry of a list."""
    first, words, opens = 0, [], True
    for number, line in [*lines, (0, "")]:
        found = entry.match(line)
        if words and (found or not line.strip()):
            yield Paragraph(first, " ".join(words), opens)
            words, opens = [], False
        if line.strip():
            if not words:
                first, opens = number, opens or found is not None
            words.append(line[found.end() :].strip() if found else line.strip())


def paragraphs_of_document(text: str) -> Iterator[Paragraph]:
    """The paragraphs, list items and cells of tables of a markdown text."""
    text = NO_PROSE.sub(lambda found: "\n" * found[0].count("\n"), text)
    lines = [(number, "" if NO_PROSE_LINE.match(line) else line) for number, line in enumerate(text.splitlines(), 1)]
    rows = [(number, line) for number, line in lines if ROW.match(line)]
    yield from paragraphs([(number, "" if ROW.match(line) else line) for number, line in lines], ENTRY)
    # A semicolon ends a sentence in a table.
    yield from (
        Paragraph(number, part.strip(), False)
        for number, row in rows
        for cell in re.split(r"(?<!\\)\|", row)[1:-1]
        for part in re.split(r"; ", cell)
    )


def comments(text: str, suffix: str) -> Iterator[Paragraph]:
    """Yields the paragraphs of comments that have lines of their own."""
    comment = re.compile(rf"\s*{COMMENT_MARKS[suffix]} ?(.*)")
    if suffix == ".py":
        # A comment mark inside a string starts no comment.
        text = LONG_STRING.sub(lambda found: "\n" * found[0].count("\n"), text)
    block: list[tuple[int, str]] = []
    for number, line in [*enumerate(text.splitlines(), 1), (0, "")]:
        found = comment.match(line)
        if found and not NOT_PROSE.match(found[1]):
            # Lines with wide spaces are a table or a formula, and no prose.
            block.append((number, "" if "  " in found[1] else found[1]))
        elif block:
            yield from paragraphs(block, ENTRY)
            block = []


def docstrings(text: str) -> Iterator[Paragraph]:
    """Yields the paragraphs of a Python file's docstrings, without the examples in them."""
    nodes: list[ast.AST] = [ast.parse(text)]
    for node in nodes:
        nodes += [child for child in getattr(node, "body", ()) if hasattr(child, "body")]
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        docstring = ast.get_docstring(node, clean=False)
        if docstring is None or not isinstance(node.body[0], ast.Expr):
            continue
        head, _, rest = docstring.partition("\n")
        lines: list[tuple[int, str]] = []
        previous, example = head, False
        rest = rest if isinstance(node, ast.Module) else textwrap.dedent(rest)
        for number, line in enumerate([head, *rest.splitlines()], node.body[0].lineno):
            # In a docstring, an example begins with a prompt, or is indented and follows an empty line. An empty line
            # ends it.
            begins = line.lstrip().startswith(">>> ") or (line.startswith("    ") and not previous)
            example = begins or (example and line.strip() != "")
            lines.append((number, "" if example or re.match(r"\w+:$", line) else line.strip()))
            previous = line
        yield from paragraphs(lines, DOCSTRING_ENTRY)


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph."""
    return SENTENCE_END.split(text)


def words(text: str) -> int:
    """The number of words. Text in backticks counts as one word, and the address of a link does not count."""
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return sum(any(letter.isalnum() for letter in word) for word in text.split())


def findings(text: str, suffix: str) -> Iterator[tuple[int, str]]:
    """Yields the line and the message of each breach of the rules in a file's text."""
    is_document = suffix == ".md"
    found = [*paragraphs_of_document(text)] if is_document else [*comments(text, suffix)]
    if suffix == ".py":
        found += docstrings(text)
    for paragraph in found:
        count = words(paragraph.text)
        if count > WORDS_OF_A_PARAGRAPH:
            yield paragraph.line, f"a paragraph of {count} words, more than {WORDS_OF_A_PARAGRAPH}"
        if not is_document and paragraph.opens and (opening := OPENING.match(paragraph.text)):
            yield paragraph.line, f"opens with {opening[0]}, not with a subject: {paragraph.text[:60]}"
        if not is_document and paragraph.text[0].isupper() and not END.search(paragraph.text):
            yield paragraph.line, f"stops short, without a period: {paragraph.text[-60:]}"
        for sentence in sentences(paragraph.text):
            if bare := NO_NOUN.match(sentence):
                yield paragraph.line, f"a pronoun without its noun: {bare[0]}"
            if twice := TWICE.search(re.sub(r"`[^`]*`", "code", sentence[:1].lower() + sentence[1:])):
                yield paragraph.line, f"a word twice: {twice[0]}"
            if (count := words(sentence)) > WORDS_OF_A_SENTENCE:
                yield paragraph.line, f"a sentence of {count} words, more than {WORDS_OF_A_SENTENCE}: {sentence[:60]}"


def suffix_of(path: Path) -> str:
    """A file's suffix or, for a file such as Dockerfile, the suffix of files with the same kind of comments."""
    return SUFFIXES.get(path.name, path.suffix)


def files(path: Path) -> Iterator[Path]:
    """Yields the documents and sources at a path, which may be a folder."""
    if path.is_file() and suffix_of(path) in (".md", *COMMENT_MARKS):
        yield path
    elif path.is_dir() and path.name not in NO_PROSE_FOLDERS:
        for each in sorted(path.iterdir()):
            if not each.name.startswith(".") or each.name == ".github":
                yield from files(each)


def findings_at(path: Path) -> Iterator[str]:
    """Yields the breaches of the rules in a file or a folder."""
    for file in files(path):
        name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
        for line, message in findings(file.read_text(encoding="utf-8"), suffix_of(file)):
            yield f"{name}:{line}: {message}"


def main() -> int:
    """Runs the command line and returns the exit code."""
    paths = [Path(name).resolve() for name in sys.argv[1:]] or [ROOT]
    found = [message for path in paths for message in findings_at(path)]
    print("\n".join(found) or "no findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
