"""The parts of documents that the code knows, between <!-- generated: NAME --> and <!-- end: NAME -->."""

import argparse
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from bench.rules import page
from bench.zoo import chart
from litebnn.cli import command_line_parser
from litebnn.options import OPTIONS
from litebnn.report.guidelines import FILE, read_prices
from toolchains.table import as_markdown
from toolchains.targets import ROOT, load_targets

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# The page of each command, from docs/.
_PAGES = {
    "convert": "converter.md",
    "export": "microcontrollers.md",
    "inspect": "inspect.md",
    "summary": "inspect.md",
    "check": "check.md",
    "benchmark": "benchmark.md",
    "compare": "benchmark.md#comparing-two-models",
    "evaluate": "evaluate.md",
    "zoo": "zoo.md",
    "doctor": "#what-is-here-and-what-is-missing",
    "completion": "#completion",
}
PART = re.compile(r"(<!-- generated: (?P<name>[\w-]+) -->\n).*?(\n<!-- end: (?P=name) -->)", re.DOTALL)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (header, *rows)]
    return "\n".join([lines[0], "|---" * len(list(header)) + "|", *lines[1:]])


def _targets() -> str:
    return _table(("target", "for"), [(f"`{each.name}`", each.description) for each in load_targets().values()])


def _commands() -> str:
    [commands] = (each for each in command_line_parser()._actions if isinstance(each, argparse._SubParsersAction))
    rows = [(f"[`litebnn {each.dest}`]({_PAGES[each.dest]})", str(each.help)) for each in commands._choices_actions]
    return _table(("command", "what it does"), rows)


def _options() -> str:
    """The options of the conversion functions; "More" leads to the page that says more."""
    rows = [
        (
            f"`{name}`",
            "" if callable(option.default) else f"`{option.default!r}`",
            option.help + (f" [More]({option.page})" if option.page else ""),
        )
        for name, option in OPTIONS.items()
    ]
    return _table(("option", "default", "meaning"), rows)


def _zoo_times() -> str:
    return chart.table(json.loads(chart.TIMES.read_text(encoding="utf-8")))


def parts() -> dict[str, Callable[[], str]]:
    """The generated parts by name; each function returns markdown."""
    rules = page.tables(read_prices(FILE.read_text(encoding="utf-8")))
    return {
        "targets": _targets,
        "targets-all": lambda: as_markdown().rstrip(),
        "commands": _commands,
        "convert-options": _options,
        "zoo-times": _zoo_times,
        **{f"rules-{name}": lambda text=text: text for name, text in rules.items()},  # type: ignore[misc]
    }


def generated(text: str) -> str:
    """Returns a document's text with its generated parts made anew.

    Raises:
        KeyError: a part has an unknown name.
    """
    makers = parts()
    return PART.sub(lambda found: f"{found[1]}{makers[found['name']]()}{found[3]}", text)


def generate(documents: Iterable[Path] = DOCUMENTS) -> None:
    """Rewrites the generated parts of documents."""
    for path in documents:
        text = path.read_text(encoding="utf-8")
        if (new := generated(text)) != text:
            path.write_text(new, encoding="utf-8")
            print(path.relative_to(ROOT))
