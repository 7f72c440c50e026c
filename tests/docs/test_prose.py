"""Tests that all files follow the rules of prose, and that the rules find breaches in other texts."""

from pathlib import Path

import pytest

from tests.docs.prose import files, findings, findings_at
from toolchains.targets import ROOT

LONG = "The kernel " + "reads words and " * 8 + "stops."
SHORT = "The kernel reads words. "


def test_prose_is_easy_to_read() -> None:
    assert [*findings_at(ROOT)] == [], "python -m tests.docs.prose prints the same"


def test_all_files_are_read_but_those_that_are_built_or_of_other_projects(tmp_path: Path) -> None:
    for name in ("a/b.cc", "CMakeLists.txt", "build/c.py", "page/vendor/d.js", ".cache/e.md", "f.txt", ".github/g.yml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert [file.name for file in files(tmp_path)] == ["g.yml", "CMakeLists.txt", "b.cc"]


@pytest.mark.parametrize(
    ("suffix", "text", "line", "message"),
    [
        (".cc", "int x;\n// Of two words.\n", 2, "opens with Of"),
        (".py", "x = 1\n\n# Whether it pads.\ny = 2\n", 3, "opens with Whether"),
        (".py", 'def f():\n    """What it reads."""\n', 2, "opens with What"),
        (".py", f'"""{LONG}"""\n', 1, "a sentence of 27 words"),
        (".py", f'"""Reads.\n\nArgs:\n    x: {LONG}\n"""\n', 4, "a sentence of 27 words"),
        (".h", f"// A kernel.\n//\n// {LONG}\n", 3, "a sentence of 27 words"),
        (".md", f"# Title\n\nA start. {LONG}\n", 3, "a sentence of 27 words"),
        (".md", f"- One.\n- {LONG}\n", 2, "a sentence of 27 words"),
        (".md", f"| a | b |\n|---|---|\n| c | {LONG} |\n", 3, "a sentence of 27 words"),
        (".js", f"let x;\n\n// {SHORT * 23}\n", 3, "a paragraph of 92 words"),
        (".py", "# The kernel reads words of a\nx = 1\n", 1, "stops short"),
        (".h", "// How it reads.\n", 1, "opens with How"),
        (".cmake", "# Which words it reads.\n", 1, "opens with Which"),
        (".md", SHORT * 23, 1, "a paragraph of 92 words"),
        (".cc", "// It reads words.\n", 1, "opens with It"),
        (".py", "# Not inlined, because it is large.\n", 1, "opens with Not"),
        (".h", f"// {SHORT}Both are slow.\n", 1, "a pronoun without its noun: Both are"),
        (".md", f"{SHORT}This takes a second.\n", 1, "a pronoun without its noun: This takes"),
        (".md", "The the kernel reads words.\n", 1, "a word twice"),
    ],
)
def test_breaches_are_seen(suffix: str, text: str, line: int, message: str) -> None:
    [(found, told)] = findings(text, suffix)
    assert (found, told[: len(message)]) == (line, message)


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".cc", "int x;  // of a row\n"),
        (".cc", f"// {SHORT}\n// {SHORT * 6}\nint x;\n// {SHORT * 6}\n"),
        (".py", f'"""Runs.\n\n    {"./run_it now " * 20}\n\nEnds."""\n'),
        (".py", 'def f():\n    """Runs.\n\n    >>> f(), "a b"\n    What it prints\n    """\n'),
        (".toml", "# name   What the row is called\n# cpu    the CPU\n"),
        (".cc", "// See https://example.org/a/b\n"),
        (".py", 'text = """What is no docstring."""\nother = "# Of no comment"\n'),
        (".py", "x = 1  # noqa: E501\n"),
        (".h", "// An ISA is forced.\n//\n// Such an ISA computes all.\n"),
        (".py", f'"""Reads:\n- one: {SHORT * 3}\n- two: {SHORT * 3}\n"""\n'),
        (
            ".md",
            f"| a | {'one; ' * 30} |\n|---|---|\n| {SHORT * 5} |\n\n```text\n{LONG}\n```\n<!-- not run: {LONG} -->\n",
        ),
        (".md", f"The option `{'a b c ' * 10}` and [a link]({'x' * 9}/y) are two words.\n"),
        (".md", "- " + "\n- ".join([SHORT.strip()] * 30) + "\n"),
        (".h", f"// {SHORT}Both kernels are slow. This kernel takes a second.\n"),
    ],
)
def test_good_prose_is_let_be(suffix: str, text: str) -> None:
    assert [*findings(text, suffix)] == []
