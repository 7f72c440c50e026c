"""Summarizes a model by the precision of its weights and operations."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import keras
from rich.console import Console
from rich.table import Table

_FLOAT_BITS = 32
_TRANSPOSED = (keras.layers.Conv1DTranspose, keras.layers.Conv2DTranspose, keras.layers.Conv3DTranspose)
_WITH_MACS = (
    keras.layers.Dense,
    keras.layers.Conv1D,
    keras.layers.Conv2D,
    keras.layers.Conv3D,
    keras.layers.DepthwiseConv1D,
    keras.layers.DepthwiseConv2D,
    keras.layers.SeparableConv1D,
    keras.layers.SeparableConv2D,
    *_TRANSPOSED,
)


@dataclass(frozen=True)
class Weight:
    """A weight of a layer: its number of values, its bits per value, and the multiply-accumulates that use it.

    `macs` is None if the layer's sizes are unknown. `mac_bits` is the larger of the weight's and the input's bits.
    """

    count: int
    bits: int
    trainable: bool
    macs: int | None
    mac_bits: int


@dataclass(frozen=True)
class LayerProfile:
    """A layer: its name, the bits of its quantized inputs or None, its output shape as text, and its weights."""

    name: str
    input_bits: int | None
    output_shape: str
    weights: tuple[Weight, ...]


def profile(model: Any) -> list[LayerProfile]:
    """The layers of a model, including those of nested models. At inference, beta and the moving mean of a batch
    normalization are one number, and so are gamma and the moving variance. Each of these pairs counts as one weight.

    Raises:
        ValueError: the model has no weights yet.
    """
    if not model.built:
        raise ValueError(f'the model "{model.name}" is not built yet: build it with an Input layer, or call it on data')
    return [_profile(layer) for layer in _layers(model)]


def _layers(model: Any) -> Iterator[Any]:
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            yield from _layers(layer)
        else:
            yield layer


def _profile(layer: Any) -> LayerProfile:
    input_bits = getattr(getattr(layer, "input_quantizer", None), "precision", None)
    weights = list(layer.weights)
    if isinstance(layer, keras.layers.BatchNormalization):
        names = {weight.name for weight in weights}
        folded = {"beta": "moving_mean", "gamma": "moving_variance"}
        weights = [weight for weight in weights if folded.get(weight.name) not in names]
    positions = _positions(layer)
    return LayerProfile(
        layer.name,
        input_bits,
        _shape_in_words(layer),
        tuple(_weight(weight, input_bits or _FLOAT_BITS, positions) for weight in weights),
    )


def _weight(weight: Any, input_bits: int, positions: int | None) -> Weight:
    count = math.prod(weight.shape)
    bits = getattr(weight, "precision", None) or _FLOAT_BITS
    macs = None if positions is None else count * positions
    return Weight(count, bits, weight.trainable, 0 if weight.name == "bias" else macs, max(input_bits, bits))


def _positions(layer: Any) -> int | None:
    """The number of uses of each weight for one sample. It is 0 in layers that do not multiply, and None if the
    sizes are unknown.
    """
    if not isinstance(layer, _WITH_MACS):
        return 0
    shape = _shape(layer, "input" if isinstance(layer, _TRANSPOSED) else "output")
    if not isinstance(shape, tuple):
        return None
    first = getattr(layer, "data_format", "channels_last") == "channels_first"
    sizes = shape[2:] if first else shape[1:-1]
    return None if None in sizes else math.prod(sizes)


def _shape(layer: Any, side: str) -> Any:
    """The shape of a layer's input or output, or a list of shapes. None for a layer that is used several times or
    never.
    """
    try:
        tensors = getattr(layer, side)
    except (AttributeError, ValueError):
        return None
    shapes = [tuple(tensor.shape) for tensor in keras.tree.flatten(tensors)]
    return shapes[0] if len(shapes) == 1 else shapes


def _shape_in_words(layer: Any) -> str:
    shape = _shape(layer, "output")
    return "multiple" if shape is None else str(shape).replace("None", "-1")


def summary(model: Any, print_fn: Callable[[str], Any] | None = None, include_macs: bool = True) -> None:
    """Prints a table of a model's layers, with their weights, memory and multiply-accumulates by precision, and the
    sums.

    Args:
        model: a built Keras model.
        print_fn: a function that prints; it is called with each of the two tables as a string.
        include_macs: True to count multiply-accumulates.

    Raises:
        ValueError: the model has no weights yet.
    """
    layers = profile(model)
    for table in (_layer_table(model.name, layers, include_macs), _sum_table(model.name, layers, include_macs)):
        text = io.StringIO()
        Console(file=text, width=1000, color_system=None).print(table)
        (print_fn or print)("\n".join(line.rstrip() for line in text.getvalue().splitlines()))


def _layer_table(name: str, layers: list[LayerProfile], include_macs: bool) -> Table:
    weights = [weight for layer in layers for weight in layer.weights]
    weight_bits = sorted({weight.bits for weight in weights})
    mac_bits = sorted({weight.mac_bits for weight in weights if weight.macs != 0}) if include_macs else []
    table = Table(title=f"{name} stats", title_justify="left")
    for heading in ("Layer", "Input prec. (bit)", "Outputs"):
        table.add_column(heading)
    for heading in (*(f"# {n}-bit" for n in weight_bits), "Memory (kB)", *(f"{n}-bit MACs" for n in mac_bits)):
        table.add_column(heading, justify="right")

    def numbers(weights: list[Weight]) -> list[str]:
        counts = [sum(weight.count for weight in weights if weight.bits == bits) for bits in weight_bits]
        macs = [_sum_of_macs([weight for weight in weights if weight.mac_bits == bits]) for bits in mac_bits]
        return [*(f"{count:,}" for count in counts), f"{_memory(weights) / 8192:,.2f}", *macs]

    for layer in layers:
        table.add_row(layer.name, str(layer.input_bits or "-"), layer.output_shape, *numbers(list(layer.weights)))
    table.add_section()
    table.add_row("Total", "", "", *numbers(weights))
    return table


def _sum_of_macs(weights: list[Weight]) -> str:
    known = [weight.macs for weight in weights if weight.macs is not None]
    return "?" if len(known) < len(weights) else f"{sum(known):,}"


def _sum_table(name: str, layers: list[LayerProfile], include_macs: bool) -> Table:
    weights = [weight for layer in layers for weight in layer.weights]
    count, memory = sum(weight.count for weight in weights), _memory(weights)
    trainable = sum(weight.count for weight in weights if weight.trainable)
    rows = {
        "Total params": f"{count:,}",
        "Trainable params": f"{trainable:,}",
        "Non-trainable params": f"{count - trainable:,}",
        "Model size": _bytes(memory),
        "Model size (8-bit FP weights)": _bytes(sum(weight.count * min(weight.bits, 8) for weight in weights)),
        "Float-32 Equivalent": _bytes(_FLOAT_BITS * count),
        "Compression Ratio of Memory": f"{memory / max(_FLOAT_BITS * count, 1):.4f}",
    }
    if include_macs:
        macs = sum(weight.macs or 0 for weight in weights)
        rows["Number of MACs"] = f"{macs:,}"
        for bits, kind in ((1, "binarized"), (2, "ternarized")):
            part = sum(weight.macs or 0 for weight in weights if weight.mac_bits == bits) / max(macs, 1)
            if part:
                rows[f"Ratio of MACs that are {kind}"] = f"{part:.4f}"
    table = Table(title=f"{name} summary", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for row in rows.items():
        table.add_row(*row)
    return table


def _memory(weights: list[Weight]) -> int:
    """The memory that weights need, in bits."""
    return sum(weight.count * weight.bits for weight in weights)


def _bytes(bits: int) -> str:
    size, unit = bits / 8, "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size >= 1024:
            size, unit = size / 1024, larger
    return f"{size:,.2f} {unit}"
