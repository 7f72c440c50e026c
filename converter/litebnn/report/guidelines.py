"""Rules for models that run fast. Each rule finds the ops of a graph that break the rule, and the cost of breaking it.

`python -m bench.rules` measures each cost with two networks that differ in one rule, for each instruction set (ISA).
`guidelines.json` has them, docs/rules-for-models.md shows them. `cost_of` states the cost of a finding in words.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from litebnn.contract import BITS_PER_WORD, LCE_BCONV_2D, LCE_DEQUANTIZE, LCE_QUANTIZE
from litebnn.graph import Graph, Model, Op, facts
from litebnn.report.costs import Costs, tiles
from litebnn.report.op_properties import convolution_that_adds, short_name
from litebnn.report.workload import edge_share
from litebnn.rules.build.bconv import bconv_options, channels_per_group, is_float_bconv
from litebnn.rules.build.notes import Notes

FILE = Path(__file__).with_name("guidelines.json")
# A finding is reported if it costs at least this share of a layer's time.
WORTH_SAYING = 0.02
# The units of measured costs, from the least to the most preferred.
_UNITS = ("instructions", "cycles", "ns")


@dataclass(frozen=True)
class Finding:
    """An op that breaks one of the rules for models that run fast."""

    # A description of what breaks the rule.
    found: str
    # A function that returns the extra work relative to the useful work. The function's argument is the number of
    # output channels that an instruction set computes together.
    degree: Callable[[int], float] = lambda tile: 1.0
    # The number of values that are written to memory and read again only because the rule is broken; 0 if there are
    # none.
    values: int = 0


@dataclass(frozen=True)
class Guideline:
    """A rule for models that run fast: its name in guidelines.json, the advice to follow it, the reason, and a function
    that finds what breaks the rule in an op.
    """

    name: str
    fix: str
    why: str
    find: Callable[[Graph, Op], Iterator[Finding]]


@dataclass(frozen=True)
class Price:
    """The measured cost of breaking a rule on one instruction set (ISA). It consists of figures for two networks: one
    keeps the rule, the other breaks it. A figure is for a million multiply-adds or for one value.
    """

    # The name of the rule and the name of the ISA.
    rule: str
    isa: str
    # The unit of the costs below: "ns" on the CPU that was timed, "cycles" by llvm-mca, or "instructions".
    unit: str
    # The costs of the network that follows the rule, and of the network that breaks it.
    kept: float
    broken: float
    # In the network that breaks the rule, the extra work relative to the useful work.
    degree: float
    # True if `kept` and `broken` are the costs of writing one value to memory and reading it again. False if they are
    # the costs of a million multiply-adds.
    per_value: bool

    @property
    def loss(self) -> float:
        """The share of the layer's time that following the rule would save."""
        return 1 - self.kept / self.broken

    def share(self, degree: float) -> float:
        """The share of a layer's time that is lost by breaking the rule, if `degree` is the layer's extra work relative
        to its useful work."""
        if not self.degree:
            return 0.0
        longer = max(self.broken / self.kept - 1, 0.0) * degree / self.degree
        return longer / (1 + longer)

    def seconds(self, finding: Finding, layer_seconds: float, costs: Costs) -> float:
        """The cost of `finding`, an op that breaks the rule, on a board in seconds. The op takes `layer_seconds` there.

        If the cost of the rule was measured in instructions, each instruction is counted as one cycle.
        """
        if self.per_value:
            each = (self.broken - self.kept) / (1e9 if self.unit == "ns" else costs.ghz * 1e9)
            return max(0.0, each * finding.values)
        return layer_seconds * self.share(finding.degree(costs.tile))


def findings(graph: Graph, op: Op) -> Iterator[tuple[Guideline, Finding]]:
    """Yields the rules that an op breaks, with the findings."""
    for rule in GUIDELINES:
        for finding in rule.find(graph, op):
            yield rule, finding


def advise(model: Model, notes: Notes) -> Iterator[str]:
    """Yields one line for each change that would make the model faster. Each line begins with the layer's name.

    Args:
        notes: the notes of the conversion, which know for each op the layer of the source model that it computes.
    """
    for layer in notes.layers:
        if layer.binary:
            yield from (f"{short_name(layer.name)}: {reason}" for reason in layer.reasons)
    for graph in model.graphs:
        for op in graph.ops:
            source = notes.layer_of(op)
            name = short_name(op.output.name if source is None else source.name) if op.outputs else op.name
            for rule, finding in findings(graph, op):
                cost = cost_of(rule, finding)
                if cost:
                    yield f"{name}: {finding.found}: {rule.fix}; {cost}"


def prices() -> Mapping[tuple[str, str], Price]:
    """The measured cost of breaking each rule for fast models, by rule and instruction set (ISA)."""
    return _prices()


def cost_of(rule: Guideline, finding: Finding) -> str:
    """The cost of a broken rule as text. If the cost differs between instruction sets (ISAs), the text names the ISAs.
    The text is empty if the broken rule costs nothing.
    """
    known = [price for (name, _), price in prices().items() if name == rule.name]
    if finding.values:
        nanoseconds = [price.broken - price.kept for price in known if price.unit == "ns"]
        low, high = min(nanoseconds, default=0.0), max(nanoseconds, default=0.0)
        each = f"{max(low, 0.0):.2g} to {high:.2g} ns each on x86-64"
        return f"{finding.values:,} values go through memory once more, {each}" if high > 0 else ""
    shares = {price.isa: _share(price, finding) for price in known}
    if max(shares.values(), default=0.0) < WORTH_SAYING:
        return ""
    worst = max(shares, key=lambda isa: shares[isa])
    return f"it costs {max(min(shares.values()), 0.0):.0%} to {shares[worst]:.0%} of the layer's time ({worst})"


def _share(price: Price, finding: Finding) -> float:
    return price.share(finding.degree(tiles().get(price.isa, 1)))


def nearest_to_time(rows: Iterable[Price]) -> dict[tuple[str, str], Price]:
    """For each rule and ISA, the measured cost in the unit that is closest to a time: nanoseconds, otherwise cycles,
    otherwise instructions.
    """
    return {(price.rule, price.isa): price for price in sorted(rows, key=lambda price: _UNITS.index(price.unit))}


def read_prices(content: str) -> tuple[Price, ...]:
    """Parses the rows of `guidelines.json`."""
    return tuple(Price(**row) for row in json.loads(content))


@cache
def _prices() -> dict[tuple[str, str], Price]:
    return nearest_to_time(read_prices(FILE.read_text(encoding="utf-8")))


def padding(used: int, multiple: int) -> float:
    """The relative increase of a number when it is rounded up to a multiple of another number."""
    return -(-used // multiple) * multiple / used - 1


def _input_channels(graph: Graph, op: Op) -> Iterator[Finding]:
    if op.name == LCE_BCONV_2D and channels_per_group(op) % BITS_PER_WORD:
        channels = channels_per_group(op)
        yield Finding(f"{channels} input channels", lambda tile: padding(channels, BITS_PER_WORD))


def _output_channels(graph: Graph, op: Op) -> Iterator[Finding]:
    if op.name == LCE_BCONV_2D:
        channels = op.input(1).shape[0] // _groups(op)
        if padding(channels, BITS_PER_WORD):
            yield Finding(f"{channels} output channels", lambda tile: padding(channels, tile))


def _groups(op: Op) -> int:
    return bconv_options(op).channels_in // channels_per_group(op)


def _has_open_size(op: Op) -> bool:
    """True if the height or width of an image is unknown, for which its shape has 1."""
    return -1 in op.output.dims[1:]


def _zero_padding(graph: Graph, op: Op) -> Iterator[Finding]:
    if op.name != LCE_BCONV_2D or not bconv_options(op).pads_zeros or _has_open_size(op):
        return
    # A transposed convolution is exempt from the rule on padding, because its definition requires the padded edges.
    if any(reader.name == "DEPTH_TO_SPACE" for reader in graph.consumers(op.output)):
        return
    edge = edge_share(op)
    if edge > 0:
        yield Finding(f"zeros around the input, which {edge:.0%} of the outputs see", lambda tile: edge)


def _dilation(graph: Graph, op: Op) -> Iterator[Finding]:
    if op.name == LCE_BCONV_2D and math.prod(op.input(1).shape[1:3]) > 1:
        options = bconv_options(op)
        dilations = options.dilation_height_factor, options.dilation_width_factor
        if max(dilations) > 1:
            yield Finding(f"dilation {dilations[0]}×{dilations[1]}")


def _thin_groups(graph: Graph, op: Op) -> Iterator[Finding]:
    if op.name == LCE_BCONV_2D and _groups(op) > 1:
        channels = min(channels_per_group(op), op.input(1).shape[0] // _groups(op))
        if channels < 128:
            yield Finding(f"groups of {channels} channels", lambda tile: BITS_PER_WORD / channels)


def _odd_width(graph: Graph, op: Op) -> Iterator[Finding]:
    if op.name == LCE_BCONV_2D and op.output.shape[2] > 1 and op.output.shape[2] % 2 and op.input(1).shape[2] > 1:
        yield Finding(f"output {op.output.shape[2]} pixels wide")


def _one_pixel(graph: Graph, op: Op) -> Iterator[Finding]:
    if op.name == LCE_BCONV_2D and math.prod(op.output.shape[:3]) == 1 and not _has_open_size(op):
        yield Finding(f"a layer of a single output pixel, {op.output.shape[0]}×1×1")


def _activation(graph: Graph, op: Op) -> Iterator[Finding]:
    before = graph.producer(op.inputs[0]) if op.inputs else None
    if facts(op).clamp is not None and is_float_bconv(before):
        yield Finding(f"{op.name} behind the scale of a binary layer", values=math.prod(op.output.shape))


def _residual(graph: Graph, op: Op) -> Iterator[Finding]:
    if op.name != "ADD" or op.output.type != "FLOAT32" or any(each and each.is_constant for each in op.inputs):
        return
    adds_to_bits = any(is_float_bconv(graph.producer(tensor)) for tensor in op.inputs)
    if adds_to_bits and convolution_that_adds(graph, op) is None:
        yield Finding("a sum that is not computed with its binary layer", values=math.prod(op.output.shape))


def _unpacked(graph: Graph, op: Op) -> Iterator[Finding]:
    if op.name != LCE_DEQUANTIZE:
        return
    reader = graph.sole_consumer(op.output)
    if reader is None or not facts(reader).reshapes:
        return
    packing = graph.sole_consumer(reader.output)
    if packing is not None and packing.name == LCE_QUANTIZE:
        yield Finding("signs that are unpacked to be reshaped", values=math.prod(op.output.shape))


GUIDELINES = (
    Guideline(
        "input channels",
        "make them a multiple of 32",
        "32 channels share a word; the rest of the last word is padding that is computed with",
        _input_channels,
    ),
    Guideline(
        "output channels",
        "make them a multiple of 64, or of 32 at least",
        "channels are computed so many together, and those that are not there are thrown away",
        _output_channels,
    ),
    Guideline(
        "zero padding",
        "pad with ones (`pad_values=1`, same-one)",
        "+1 is a bit, 0 is not: what taps outside of the image have added is taken off again",
        _zero_padding,
    ),
    Guideline("dilation", "use a larger filter or a stride", "windows side by side share no taps", _dilation),
    Guideline(
        "thin groups",
        "use fewer groups, of 128 channels or more",
        "a group is a convolution of its own, with its own loops and its own share of every window",
        _thin_groups,
    ),
    Guideline(
        "odd width",
        "choose an image size that is halved to even widths",
        "two pixels side by side are computed together; a row's last one has no neighbour",
        _odd_width,
    ),
    Guideline(
        "one output pixel",
        "pool in front of the classifier instead of flattening, so that the dense layer is small",
        "every weight is loaded for a single use, as in any dense layer",
        _one_pixel,
    ),
    Guideline(
        "activation behind the scale",
        "put RELU in front of the batch norm",
        "the op clamps the integer, then scales: `relu(dot) · m + b` is one op, `relu(dot · m + b)` is two",
        _activation,
    ),
    Guideline(
        "residual sum",
        "add right behind the batch norm, to a tensor of the same shape, with no more than a RELU behind",
        "the delegate adds while the outputs are in registers; another sum goes through memory once more",
        _residual,
    ),
    Guideline(
        "flatten",
        "flatten only channel counts that are multiples of 32",
        "whole words can be reshaped, parts of words cannot",
        _unpacked,
    ),
)
