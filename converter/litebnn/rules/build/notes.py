"""The interface between the converter and its rules: the user's options and the notes for the report (`Notes`), and
the decorator `each`, which makes a rule of a function that rewrites one op.

The notes have a row for each convolution and dense layer of the source.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from litebnn.analysis.constants import constants_upstream
from litebnn.analysis.quantization import Ranges, unrounded
from litebnn.analysis.weights import zeros_in_words
from litebnn.contract import LCE_BCONV_2D, LITEBNN_UNPACK_WEIGHTS, BConv2DOptions, Padding, PadValues
from litebnn.graph import Graph, Model, Op, Tensor, derived, facts
from litebnn.options import DEFAULTS, ConvertOptions

# What a conversion came to. INT8_ONLY: no layer is binary, but training with fake quantization made some int8.
CONVERTED, ALREADY_CONVERTED, NO_BINARY_LAYER = "converted", "already converted", "no binary layer"
INT8_ONLY = "converted to int8"


@dataclass(eq=False)
class Layer:
    """A Layer is one convolution or dense layer of the source."""

    # The name of the layer's output tensor.
    name: str
    kind: str
    # The number of the layer's multiply-accumulates in one inference; 0 if the shape is unknown.
    macs: int
    # The sizes of weights and bias in bytes, in the source and in the result. If ops compute the weights from
    # constants, the constants count.
    bytes_before: int
    filter_shape: tuple[int, ...]
    binary: bool = False
    bytes_after: int = 0
    # The number of weights that are 0 in the source and that `assume_nonzero` takes for +1.
    zero_weights: int = 0
    channels_in: int = 0
    output_shape: tuple[int, ...] = ()
    # The type of the layer's output after conversion: FLOAT32, INT8 or "bits".
    output: str = ""
    # The padding of a binary convolution: valid, same-one, same-zero, explicit-one or explicit-zero. One and zero are
    # the padding values.
    padding: str = ""
    fused: list[str] = field(default_factory=list)
    # The reasons why the layer is not binary or not fused further, each reason once, in order.
    reasons: dict[str, None] = field(default_factory=dict)


class Notes:
    """Collects the report's rows, one for each layer, while rules replace the layers' ops.

    Args:
        options: those of the conversion; the defaults for others.
        ranges: those of the activations that become int8; empty if all stay float. Rules add those of new activations.
    """

    def __init__(self, model: Model, options: ConvertOptions | None = None, ranges: Ranges | None = None) -> None:
        self.model, self.ranges = model, ranges or {}
        self.options: ConvertOptions = {**DEFAULTS, **(options or {})}
        self.layers: list[Layer] = []
        self.warnings: dict[str, None] = {}  # each once, in order
        self._layer_of: dict[Op, Layer] = {}
        self._fused: dict[Op, list[str]] = {}
        self._said: list[tuple[Layer, str]] = []  # the reasons of this round and of those before it
        for graph in model.graphs:
            for op in graph.ops:
                if facts(op).layer:
                    self._add(graph, op)

    def _add(self, graph: Graph, op: Op) -> None:
        weights = op.input(1)
        size = _stored_bytes([(graph, op)])
        layer = Layer(
            name=op.output.name,
            kind=facts(op).layer,
            macs=macs_of(op),
            bytes_before=size,
            filter_shape=weights.shape,
            bytes_after=size,
            channels_in=max(op.input(0).channels, 0),
            output_shape=op.output.dims,
            output=op.output.type,
        )
        self.layers.append(layer)
        self._layer_of[op] = layer

    def became(self, old: Op, new: Op) -> None:
        """Records that `new` computes the layer that `old` computed."""
        layer = self._layer_of.get(old)
        if layer is not None:
            self._layer_of[new] = layer

    def layer_of(self, op: Op) -> Layer | None:
        """Returns the source layer that an op computes; None if the op belongs to no layer."""
        return self._layer_of.get(op)

    def merged(self, op: Op) -> None:
        """Records that the op of another layer now also computes the layer to which `op` belonged."""
        layer = self._layer_of.pop(op, None)
        if layer is not None:
            self.layers.remove(layer)

    def left_alone(self, op: Op, reason: str) -> Literal[False]:
        """Records why the layer of `op` is not binary or not fused further. Returns False, so that the rule can
        return this result.
        """
        layer = self._layer_of.get(op)
        if layer is not None and reason not in layer.reasons:
            layer.reasons[reason] = None
            self._said.append((layer, reason))
        return False

    def keep_reasons(self) -> None:
        """Keeps the reasons, recorded so far, why layers are not binary or not fused further. The rules that gave these
        reasons do not run again, so the reasons stay in the report."""
        self._said.clear()

    def start_round(self) -> None:
        """Removes the reasons, recorded in earlier rounds, why layers are not binary. If a reason still holds, a rule
        records it again in the next round."""
        for layer, reason in self._said:
            layer.reasons.pop(reason, None)
        self._said.clear()

    def has_reasons(self, op: Op) -> bool:
        """True if there is already a reason why the layer of `op` is not binary."""
        layer = self._layer_of.get(op)
        return layer is not None and bool(layer.reasons)

    def unread(self, op: Op) -> None:
        """Records that the layer's op `op` is removed because nothing reads its output. Other reasons are removed after
        each round of rules, and recorded again if they still hold. This reason stays, because later rounds cannot see
        the removed op.
        """
        if (layer := self._layer_of.get(op)) is not None and not layer.binary and not layer.reasons:
            layer.reasons["nothing reads what it computes"] = None

    def made_binary(self, old: Op, new: Op) -> None:
        self.became(old, new)
        layer = self._layer_of.get(new)
        if layer is not None:
            layer.binary = True
            layer.reasons.clear()

    def took_zeros(self, op: Op, zeros: int, weights: int) -> None:
        """Records that `zeros` of the layer's `weights` weights are 0 and are taken for +1."""
        layer = self._layer_of.get(op)
        if layer is None or not zeros:
            return
        layer.zero_weights = zeros
        self.warn(op, f"{zeros_in_words(zeros, weights)}, taken for +1 (assume_nonzero)")

    def fused(self, op: Op, what: str) -> None:
        """Records for the report that `op` also computes `what`, such as an activation.

        If a layer became several ops, each of them computes a part of `what`.
        """
        layer, own = self._layer_of.get(op), self._fused.setdefault(op, [])
        own.append(what)
        if layer is not None and len(own) > len(layer.fused):
            layer.fused = list(own)

    def warn(self, of: Op | Tensor, what: str) -> None:
        """Records a warning on a tensor or an op; an op that belongs to a layer is named by the layer."""
        layer = self._layer_of.get(of) if isinstance(of, Op) else None
        tensor = of if isinstance(of, Tensor) else of.output
        name = layer.name if layer is not None else tensor.name if tensor.origin is None else tensor.origin.source
        self.warnings[f"{derived(name, '')}: {what}"] = None

    def finish(self, graphs: list[Graph]) -> None:
        """Fills in the fields of the report's layers, such as size and padding, that are known only after all rules
        have run.
        """
        ops_of: dict[Layer, list[tuple[Graph, Op]]] = {layer: [] for layer in self.layers}
        for graph in graphs:
            for op in graph.ops:
                if op in self._layer_of:
                    ops_of[self._layer_of[op]].append((graph, op))
        for layer, ops in ops_of.items():
            layer.bytes_after = _stored_bytes(ops)
            # A layer that became several ops counts as binary only if all these ops are binary.
            layer.binary &= all(op.name == LCE_BCONV_2D for _, op in ops)
            for _, op in ops:
                layer.output = "bits" if layer.binary and op.output.type == "INT32" else op.output.type
                if layer.binary:
                    layer.padding = _padding_name(BConv2DOptions.decode(op.custom_options))


def _padding_name(options: BConv2DOptions) -> str:
    if options.padding == Padding.VALID:
        return "valid"
    kind = "explicit" if options.padding is None else "same"
    return f"{kind}-{PadValues(options.pad_values).name.lower()}"


def _stored_bytes(ops: list[tuple[Graph, Op]]) -> int:
    """Returns the size of the constants from which a layer's weights and bias are computed, each counted once."""
    behind = [_constants_of(graph, tensor) for graph, op in ops for tensor in op.inputs[1:] if tensor is not None]
    constants = dict.fromkeys(tensor for tensors in behind for tensor in tensors)
    return sum(tensor.buffer.data.size for tensor in constants if tensor.buffer.data is not None)


def _constants_of(graph: Graph, tensor: Tensor) -> set[Tensor]:
    """Returns the constants from which a tensor is computed, including types that NumPy lacks (INT2, INT4)."""
    stored = unrounded(graph, tensor)
    unpacking = graph.producer(stored, LITEBNN_UNPACK_WEIGHTS)
    if unpacking is not None:
        return {source for source in unpacking.inputs if source is not None}
    return {stored} if stored.is_constant else constants_upstream(graph, tensor) or set()


def macs_of(op: Op) -> int:
    """Returns the multiply-accumulates of a convolution or dense layer; 0 for other ops."""
    weights, output = op.input(1).shape, op.output.shape
    if op.name == "TRANSPOSE_CONV":
        return math.prod(op.input(2).shape) * math.prod(weights[:3])
    if not facts(op).layer:
        return 0
    of_each_output = {
        "BATCH_MATMUL": (max(op.input(0).channels, 0),),
        "CONV_3D": weights[:4],
        "DEPTHWISE_CONV_2D": weights[1:3],
    }
    return math.prod(output) * math.prod(of_each_output.get(op.name, weights[1:]))


Rule: TypeAlias = Callable[[Graph, Notes], bool]


def each(*names: str) -> Callable[[Callable[[Graph, Op, Notes], bool]], Rule]:
    """Makes a rule from a function that rewrites one op and returns True if it rewrote the op.

    Args:
        names: the kinds of ops to call the function for, in order of execution; all kinds if none is named.
    """

    def rule_of(rewrite: Callable[[Graph, Op, Notes], bool]) -> Rule:
        @functools.wraps(rewrite)
        def rewrite_each(graph: Graph, notes: Notes) -> bool:
            changed = False
            for op in list(graph.ops):
                if (not names or op.name in names) and graph.holds(op) and rewrite(graph, op, notes):
                    graph.reconsider(op)
                    changed = True
            return changed

        return rewrite_each

    return rule_of
