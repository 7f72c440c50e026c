"""The files that are listed as clean follow the rules of prose, and the rules find breaches in other texts."""

import pytest

from tests.docs.prose import CLEAN, findings, findings_at
from toolchains.targets import ROOT

LONG = "The kernel " + "reads words and " * 8 + "stops."
SHORT = "The kernel reads words. "


@pytest.mark.parametrize("name", CLEAN)
def test_prose_is_easy_to_read(name: str) -> None:
    assert [*findings_at(ROOT / name)] == [], "python -m tests.docs.prose prints the same"


@pytest.mark.parametrize(
    ("suffix", "text", "line", "message"),
    [
        (".cc", "int x;\n// Of two words.\n", 2, "opens with Of"),
        (".py", "x = 1\n\n# Whether it pads.\ny = 2\n", 3, "opens with Whether"),
        (".py", 'def f():\n    """What it reads."""\n', 2, "opens with What"),
        (".py", f'"""{LONG}"""\n', 1, "a sentence of 27 words"),
        (".py", f'"""Reads.\n\nArgs:\n    x: {LONG}\n"""\n', 4, "a sentence of 27 words"),
        (".h", f"// It reads.\n//\n// {LONG}\n", 3, "a sentence of 27 words"),
        (".md", f"# Title\n\nA start. {LONG}\n", 3, "a sentence of 27 words"),
        (".md", f"- One.\n- {LONG}\n", 2, "a sentence of 27 words"),
        (".md", f"| a | b |\n|---|---|\n| c | {LONG} |\n", 3, "a sentence of 27 words"),
        (".md", SHORT * 23, 1, "a paragraph of 92 words"),
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
    ],
)
def test_good_prose_is_let_be(suffix: str, text: str) -> None:
    assert [*findings(text, suffix)] == []
