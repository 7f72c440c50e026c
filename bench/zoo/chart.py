"""Draws the times that bench.models stored in bench/zoo/times.json.

Usage:

    python -m bench.zoo.chart

The picture is docs/images/zoo.svg. One file has light and dark colours, and the reader's system selects them.
"""

import json
import sys
from pathlib import Path
from typing import Any

from toolchains.targets import ROOT

TIMES = ROOT / "bench" / "zoo" / "times.json"
CHART = ROOT / "docs" / "images" / "zoo.svg"
_COLUMNS = {
    "litebnn": "litebnn",
    "lce-best": "Larq Compute Engine, best",
    "lce-default": "Larq Compute Engine, default",
    "xnnpack": "float, XNNPACK",
}

KINDS = {
    "litebnn": "litebnn",
    "lce-best": "Larq Compute Engine 0.16 at its best",
    "xnnpack": "the float model, XNNPACK",
}
# The light and the dark colour of each kind of bar, of the text and of the background.
COLOURS = {
    "litebnn": ("#0b6e4f", "#3ddc97"),
    "lce-best": ("#c8553d", "#f28f6b"),
    "xnnpack": ("#6c757d", "#9aa5b1"),
    "text": ("#1b1f24", "#e6edf3"),
    "ground": ("#fdfdfc", "#14181d"),
}


def by_time(times: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The median time of each runtime in ms by network, sorted by litebnn's times. Runtimes that cannot convert a
    network are missing.
    """
    models = {name: {kind: each["median_ms"] for kind, each in row.items()} for name, row in times["models"].items()}
    return dict(sorted(models.items(), key=lambda item: item[1]["litebnn"]))


def table(times: dict[str, Any]) -> str:
    """The median time of each network in each runtime as a markdown table. Two more columns have the ratios of other
    runtimes' times to litebnn's times.
    """
    rows = []
    for name, medians in by_time(times).items():
        cells = [f"{medians[kind]:.1f}" if kind in medians else "–" for kind in _COLUMNS]
        for kind in ("lce-best", "xnnpack"):
            cells.append(f"{medians[kind] / medians['litebnn']:.1f}" if kind in medians else "–")
        rows.append(f"| {name} | {' | '.join(cells)} |")
    header = f"| network | {' | '.join(_COLUMNS.values())} | best / litebnn | float / litebnn |"
    return "\n".join([header, "|---" * (3 + len(_COLUMNS)) + "|", *rows])


def draw(times: dict[str, Any], figure: Any) -> None:
    """Draws a group of bars for each network: the median time of each runtime in ms, sorted by litebnn's times.

    Larq Compute Engine with its default options is left out, because its long bars would make the other bars too short
    to compare.
    """
    light = {name: colours[0] for name, colours in COLOURS.items()}
    networks = by_time(times)
    axes = figure.add_subplot(facecolor=light["ground"])
    longest = 0.0
    for row, (kind, label) in enumerate(KINDS.items()):
        positions = [index + 0.26 * (row - 1) for index in range(len(networks))]
        medians = [network.get(kind, 0.0) for network in networks.values()]
        longest = max(longest, *medians)
        bars = axes.barh(positions, medians, height=0.24, color=light[kind], label=label)
        labels = [f"{each:.3g} ms" if each else "cannot convert it" for each in medians]
        axes.bar_label(bars, labels, padding=4, fontsize=8, color=light["text"])
    axes.set_yticks(range(len(networks)), networks, color=light["text"], fontsize=10)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.margins(y=0.02)
    axes.set_xlim(0, longest * 1.12)
    axes.tick_params(axis="x", colors=light["text"], labelsize=8)
    axes.set_xlabel(
        f"ms for one image of 224×224; {times['threads']} thread, {times['cpu']}, {times['date']}",
        color=light["text"],
        fontsize=8,
    )
    axes.spines[:].set_visible(False)
    figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=9, labelcolor=light["text"])


def with_dark_colours(svg: str) -> str:
    """Adds a style to the picture that switches to the dark colours on a dark system."""
    rules = "".join(
        f'[style*="{part}: {light}"]{{{part}:{dark}!important}}'
        for light, dark in COLOURS.values()
        for part in ("fill", "stroke")
    )
    style = f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>"
    head, tag, tail = svg.partition("<defs>")
    return f"{head}{style}\n {tag}{tail}"


def main() -> int:
    """Runs the command line and returns the exit code."""
    import matplotlib
    from matplotlib.figure import Figure

    times = json.loads(TIMES.read_text(encoding="utf-8"))
    # The settings make equal times give an equal file, and keep the picture's text as text instead of outlines.
    settings = {"svg.hashsalt": "litebnn", "svg.fonttype": "none", "font.family": "sans-serif"}
    with matplotlib.rc_context(settings):
        figure = Figure(
            figsize=(9, 1.4 + 0.7 * len(times["models"])), layout="constrained", facecolor=COLOURS["ground"][0]
        )
        draw(times, figure)
        figure.savefig(CHART, metadata={"Date": None})
    CHART.write_text(with_dark_colours(CHART.read_text(encoding="utf-8")), encoding="utf-8")
    print(CHART.relative_to(Path.cwd()) if CHART.is_relative_to(Path.cwd()) else CHART)
    return 0


if __name__ == "__main__":
    sys.exit(main())
