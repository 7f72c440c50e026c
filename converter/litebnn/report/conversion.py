"""The report of a conversion: one row for each convolution and dense layer of the source model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from litebnn.errors import printable
from litebnn.graph import Model
from litebnn.report.guidelines import advise
from litebnn.report.op_properties import short_name
from litebnn.report.smaller_file import smaller_file
from litebnn.rules.build.notes import ALREADY_CONVERTED, CONVERTED, INT8_ONLY, Layer, Notes
from litebnn.verify.assumption import layers_by_assumption
from litebnn.verify.verification import Verification

COLUMNS = ("layer", "kind", "binary", "MACs", "bytes", "output", "fused / why not")


@dataclass(frozen=True)
class Nonzero:
    """The effect of the option `assume_nonzero` on a model."""

    is_given: bool
    # The number of layers that are binary with the option and float without it.
    layers: int


@dataclass(frozen=True)
class ConversionReport:
    """The result of a conversion, in numbers and words.

    Attributes:
        layers: one row for each convolution and dense layer of the source, in order of execution.
        noted: notable changes to tensors and ops, one line each, beginning with their names.
        advice: changes to make in the model, one line each, beginning with the layer's name. The last line may begin
            with an option, `low_bit_weights`, and says how small it would make the file.
        bytes_before, bytes_after: the sizes of the source file and of the result.
        status: "converted", "converted to int8" (no layer is binary, but fake quantization made some int8),
            "already converted" or "no binary layer".
        verification: the result of `verify`; None if nothing was verified.
        nonzero: how many layers the option `assume_nonzero` makes binary, or would make binary.

    Example:
        >>> converted, report = litebnn.convert_tflite("float.tflite", return_report=True)  # doctest: +SKIP
        >>> print(report)  # doctest: +SKIP
    """

    layers: tuple[Layer, ...]
    noted: tuple[str, ...]
    advice: tuple[str, ...]
    bytes_before: int
    bytes_after: int
    status: str
    verification: Verification | None
    nonzero: Nonzero = Nonzero(is_given=False, layers=0)

    @property
    def warnings(self) -> tuple[str, ...]:
        """All lines of `noted`, followed by all lines of `advice`."""
        return (*self.noted, *self.advice)

    @property
    def difference(self) -> float | None:
        """The largest difference between source and result that `verification` found; None without verification."""
        return None if self.verification is None else self.verification.difference

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all layers, for one inference."""
        return sum(layer.macs for layer in self.layers)

    @property
    def binary_macs(self) -> int:
        """The part of `macs` that is computed on bits."""
        return sum(layer.macs for layer in self.layers if layer.binary)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain numbers, strings, lists and dicts, for JSON."""
        return {
            "status": self.status,
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "macs": self.macs,
            "binary_macs": self.binary_macs,
            "assume_nonzero": asdict(self.nonzero),
            "difference": self.difference,
            "verification": None if self.verification is None else asdict(self.verification),
            "layers": [{**asdict(layer), "reasons": list(layer.reasons)} for layer in self.layers],
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        rows = [COLUMNS, *map(row_of, self.layers)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS) - 1)]
        lines = ["  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]) for row in rows]
        return "\n".join([*self.headlines(), *lines, self.summary(), *self.remarks()])

    def headlines(self) -> list[str]:
        """The line on how many layers the option `assume_nonzero` makes binary, or would make binary, if it does."""
        count, total = self.nonzero.layers, len(self.layers)
        if self.nonzero.is_given:
            return [f"assume_nonzero makes {count} of {total} layers binary"]
        return [f"assume_nonzero would make {count} more of {total} layers binary"] if count else []

    def remarks(self) -> list[str]:
        """The lines of advice, followed by what `verify` found in single layers: exact zeros, and flipped signs."""
        found = () if self.verification is None else self.verification.lines()
        return [printable(line) for line in (*self.warnings, *found)]

    def summary(self) -> str:
        """One line with the binary share of the work (the int8 share of a model without binary layers), and the file
        sizes."""
        kind = "int8" if self.status == INT8_ONLY else "binary"
        counted = [each.macs for each in self.layers if (each.output == "INT8" if kind == "int8" else each.binary)]
        share = sum(counted) / self.macs if self.macs else 0.0
        return (
            f"{self.status}: {len(counted)} of {len(self.layers)} layers and {share:.1%} of {self.macs:,} MACs are "
            f"{kind}; "
            f"{self.bytes_before:,} bytes became {self.bytes_after:,}"
            + ("" if self.verification is None else f"; {self.verification.summary()}")
        )


def row_of(layer: Layer) -> tuple[str, ...]:
    """The cells of a layer's row as text, in the order of `COLUMNS`."""
    remarks = " + ".join(layer.fused) if layer.binary else "; ".join(layer.reasons)
    sizes = f"{layer.bytes_before:,} → {layer.bytes_after:,}"
    binary = "yes" if layer.binary else "no"
    cells = short_name(layer.name), layer.kind, binary, f"{layer.macs:,}", sizes, layer.output, remarks
    return tuple(map(printable, cells))


def reasons(layers: Iterable[Layer]) -> dict[str, list[str]]:
    """The reasons why layers are not binary, or are not fused further. For each reason, there are the names of its
    layers.
    """
    layers_of: dict[str, list[str]] = {}
    for layer in layers:
        for reason in layer.reasons:
            layers_of.setdefault(reason, []).append(short_name(layer.name))
    return layers_of


def make_report(
    notes: Notes,
    model: Model,
    source: bytes,
    bytes_after: int,
    status: str,
    verification: Verification | None,
) -> ConversionReport:
    """The report of a conversion of `source` that made `model`, whose file has `bytes_after` bytes."""
    nonzero = Nonzero(notes.request.assume_nonzero, layers_by_assumption(source, notes))
    advice: tuple[str, ...] = ()
    if status == CONVERTED:
        notes.finish(model.graphs)
        advice = tuple(advise(model, notes))
    smaller = None if notes.request.low_bit_weights else smaller_file(model, bytes_after)
    if smaller is not None and status != ALREADY_CONVERTED:
        advice = (*advice, smaller)
    return ConversionReport(
        tuple(notes.layers), tuple(notes.warnings), advice, len(source), bytes_after, status, verification, nonzero
    )
