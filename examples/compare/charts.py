"""Shows the accuracy, size, memory and times of all forms of the network, as a table and as charts."""

from collections.abc import Callable
from pathlib import Path

import matplotlib
from rich.table import Table

from examples.compare.measure import Figures

matplotlib.use("agg")  # draws to files, because there may be no screen

from matplotlib import pyplot

COLOURS = {"float32": "#7a7a7a", "int8": "#e69f00", "int8 trained": "#d55e00", "1-bit": "#0072b2"}

Results = dict[tuple[str, str], Figures]  # by framework and form

# The charts. Each has a title, a function from a model's figures to the length of the model's bar, and the format of
# the bar's label.
CHARTS: tuple[tuple[str, Callable[[Figures], float], str], ...] = (
    ("test accuracy, %", lambda each: each.accuracy * 100, "{:.1f}"),
    ("file, KiB", lambda each: each.bytes / 1024, "{:.1f}"),
    ("peak memory of the process, MiB", lambda each: each.memory / 2**20, "{:.1f}"),
    ("time in Python, µs", lambda each: each.python * 1e6, "{:.0f}"),
    ("time in benchmark_model, µs", lambda each: each.program * 1e6, "{:.0f}"),
)
MACS = (("float", COLOURS["float32"]), ("int8", COLOURS["int8"]), ("binary", COLOURS["1-bit"]))


def as_table(results: Results) -> Table:
    """The figures as a printable table, with a row for each form of each framework."""
    table = Table(
        "", "", "accuracy", "file size", "peak memory", "MACs binary", "int8", "float", "Python", "benchmark_model"
    )
    for (framework, form), each in results.items():
        table.add_row(
            framework,
            form,
            f"{each.accuracy:.1%}",
            f"{each.bytes / 1024:.1f} KiB",
            f"{each.memory / 2**20:.1f} MiB",
            *(f"{macs:,}" for macs in each.macs),
            f"{each.python * 1e6:.0f} µs",
            f"{each.program * 1e6:.1f} µs",
        )
    return table


def draw(results: Results, path: Path) -> None:
    """Draws all charts in one picture, and writes it in the format that the suffix of `path` names."""
    figure, axes = pyplot.subplots(2, 3, figsize=(13, 7), layout="constrained")
    labels = [f"{framework}\n{form}" for framework, form in results]
    for axis, (title, number, label) in zip(axes.flat, CHARTS, strict=False):
        numbers = [number(each) for each in results.values()]
        bars = axis.bar(labels, numbers, color=[COLOURS[form] for _, form in results])
        axis.bar_label(bars, [label.format(each) for each in numbers], fontsize=8)
        if title.startswith("test accuracy"):
            axis.set_ylim(max(min(numbers) - 2, 0), 100.5)
        axis.set_title(title)
    axis = axes.flat[len(CHARTS)]
    bottoms = [0.0] * len(results)
    for precision, colour in MACS:
        numbers = [getattr(each.macs, precision) / 1e6 for each in results.values()]
        axis.bar(labels, numbers, bottom=bottoms, color=colour, label=precision)
        bottoms = [bottom + number for bottom, number in zip(bottoms, numbers, strict=True)]
    axis.set_title("multiply-accumulates, millions")
    axis.set_ylim(0, max(bottoms) * 1.2)
    axis.legend(loc="upper center", ncols=len(MACS), frameon=False)
    for axis in axes.flat:
        axis.tick_params(axis="x", labelsize=7)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
