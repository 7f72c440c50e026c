"""The option --microcontroller of the commands `inspect` and `summary`, and the table of an exported network's
steps."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from litebnn.micro.settings import KERNELS, TARGETS

if TYPE_CHECKING:
    from litebnn.micro.export import Export
    from litebnn.report.page import Steps

_NUMBERS = ("step", "flash", "RAM", "instructions", "cycles")
_HEADER = ("step", "ops", "layer", *_NUMBERS[1:])


def add_microcontroller(parser: Any) -> None:
    """Adds the options for a microcontroller to a command."""
    parser.add_argument(
        "--microcontroller", choices=TARGETS, help="also print the steps of an export as C for this microcontroller"
    )
    parser.add_argument(
        "--kernels", choices=KERNELS, help="kernels of the binary layers on the microcontroller; by default compact"
    )
    parser.only_if(
        lambda options: options.microcontroller,
        "is for --microcontroller, which is not given",
        "--kernels",
    )


def estimated(model: bytes, options: Namespace) -> Export | None:
    """The estimate for the microcontroller that the options name; None if they name none.

    Raises:
        ConversionError: the model cannot be exported; the message names op and layer.
    """
    if options.microcontroller is None:
        return None
    from litebnn.micro.export import estimate_c

    return estimate_c(model, target=options.microcontroller, kernels=options.kernels or KERNELS[0])


def print_estimate(export: Export) -> None:
    """Prints the table of an exported network's steps, and the totals."""
    print(f"\n{_title(export)}; no cycle was measured on silicon:")
    print_steps(export)
    print(_total(export))


def _title(export: Export) -> str:
    return f"As C on {export.target} with {export.kernels} kernels"


def _total(export: Export) -> str:
    return (
        f"constants {export.constant_bytes:,} bytes, arena {export.arena_bytes:,} bytes, "
        f"{export.instructions:,} instructions, {export.cycles:,} cycles (estimated)"
    )


def print_steps(export: Export) -> None:
    """Prints flash, RAM, instructions and cycles of each step of an exported network."""
    from litebnn.cli.output import print_table

    print_table(_HEADER, _rows(export), numbers=_NUMBERS)


def steps_of(export: Export) -> Steps:
    """The table of an exported network's steps, in the form for the report's page."""
    from litebnn.report.page import Steps

    total = f"{_total(export)}. Flash and RAM are in bytes. No cycle was measured on silicon."
    return Steps(_title(export), _HEADER, _NUMBERS, _rows(export), total)


def _rows(export: Export) -> list[tuple[str, ...]]:
    return [
        (
            *(str(number), " + ".join(step.kinds), step.layer, f"{step.flash:,}", f"{step.ram:,}"),
            *("?" if count is None else f"{count:,}" for count in (step.instructions, step.cycles)),
        )
        for number, step in enumerate(export.steps)
    ]
