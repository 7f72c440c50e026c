"""Checks the reasons that reports give for layers that are not binary, by running the models."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

import litebnn
from litebnn.analysis.constants import evaluate
from litebnn.analysis.match import fused_activation
from litebnn.analysis.quantization import from_levels
from litebnn.analysis.weights import weight_values
from litebnn.contract import Padding
from litebnn.flatbuffer import read_model
from litebnn.graph import Array, Graph, Op, Tensor, facts
from litebnn.rules.build.notes import Layer
from litebnn.runtime.intermediates import interpreter_for, with_outputs
from litebnn.runtime.predictor import arrays_of

_ON_THE_WAY = ("ADD", "SUB", "MUL", "DIV", "NEG", "MAX_POOL_2D", "CONCATENATION")


@dataclass(frozen=True)
class Left:
    """A layer that is not binary: the reasons, its op in the source, its weights [O, ...] and the observed values of
    its input.

    An input that is always the same can still take two values, if it is padded or if two of its channels differ.
    """

    reasons: list[str]
    op: Op
    weights: Array
    values: set[float]
    padded: bool
    spaced: bool  # in a space-to-batch
    moves: bool  # the values differ between samples
    is_read: bool  # by something that an output is computed from
    is_clamped_sum: bool
    is_rounded: bool


def check_reasons(source: bytes, report: litebnn.ConversionReport, inputs: list[Array]) -> None:
    """Checks that every layer is binary or has reasons. The reasons must be true for the layer's op, its weights and
    its input."""
    left = [layer for layer in report.layers if not layer.binary]
    assert all(layer.reasons for layer in left), str(report)
    if not left:
        return
    for layer, found in zip(left, _looked_up(source, left, inputs), strict=True):
        for reason in layer.reasons:
            checks = [check for words, check in _TRUTH.items() if words in reason]
            assert checks, f"{layer.name}: no check for {reason}"
            assert checks[0](found, reason), f"{layer.name}: {reason}"


def _looked_up(source: bytes, layers: list[Layer], inputs: list[Array]) -> list[Left]:
    model = read_model(source)
    [graph] = model.graphs
    ops = {op.output.name: op for op in graph.ops if facts(op).layer}
    found = []
    read = [ops[layer.name].input(facts(ops[layer.name]).data) for layer in layers]
    observed = _observed(with_outputs(model, read), inputs)
    if any(np.unique(values).size == 2 for values in observed):  # a few numbers may have two values by chance
        observed = _observed(with_outputs(model, read), [np.concatenate([x, *_others(x)]) for x in inputs])
    alive = _ops_upstream(graph, graph.outputs)
    for layer, tensor, values in zip(layers, read, observed, strict=True):
        op = ops[layer.name]
        weights = weight_values(op.input(1)) if op.input(1).is_constant else evaluate(graph, op.input(1))
        weights = np.zeros(0, np.float32) if weights is None else weights
        if op.name == "BATCH_MATMUL":
            weights = weights.T
        behind = {each.name for each in _ops_upstream(graph, [tensor])}
        padded, spaced = not behind.isdisjoint({"PAD", "PADV2"}), "SPACE_TO_BATCH_ND" in behind
        numbers = set(_numbers(tensor, np.unique(values)).tolist())
        moves = bool(np.any(values != values[0]))
        whole, rounded = _is_clamped_sum(graph, tensor), _is_rounded(graph, tensor)
        found.append(
            Left(list(layer.reasons), op, weights, numbers, padded, spaced, moves, op in alive, whole, rounded)
        )
    return found


def _others(inputs: Array) -> list[Array]:
    """Random inputs in the shapes of the given ones."""
    return [(inputs[..., ::step] * factor).astype(inputs.dtype) for step in (1, -1) for factor in (-1, 3, 0.5)]


def _ops_upstream(graph: Graph, tensors: Iterable[Tensor | None]) -> set[Op]:
    """All ops upstream of the given tensors."""
    found: set[Op] = set()
    waiting = list(tensors)
    while waiting:
        op = graph.producer(waiting.pop())
        if op is not None and op not in found:
            found.add(op)
            waiting += op.inputs
    return found


def _is_clamped_sum(graph: Graph, tensor: Tensor) -> bool:
    """True if clamps between a layer and a tensor turn integers into 0 and 1 only. The result looks like a sign but
    is none.
    """
    clamps = False
    while (op := graph.producer(tensor)) is not None:
        clamps |= facts(op).clamp is not None or bool(fused_activation(op))
        if facts(op).layer:
            return clamps
        if op.name not in _ON_THE_WAY and facts(op).clamp is None and not facts(op).moves:
            return False
        tensor = next(x for x in op.inputs if x is not None and not x.is_constant)
    return False


def _is_rounded(graph: Graph, tensor: Tensor) -> bool:
    """True if values are rounded between the previous layers and a tensor. Rounding may leave only few different
    values."""
    waiting: list[Tensor | None] = [tensor]
    while waiting:
        op = graph.producer(waiting.pop())
        if op is not None and op.name in ("ROUND", "FLOOR"):
            return True
        waiting += [] if op is None or facts(op).layer else op.inputs
    return False


def _observed(model: bytes, inputs: list[Array]) -> list[Array]:
    """The observed values of each output of a model, one row for each sample. After a space-to-batch, one row for each
    part of a sample."""
    interpreter = interpreter_for("a test", model)
    batch = interpreter.input_shapes[0][0]
    starts = range(0, len(inputs[0]), batch)
    runs = [arrays_of(interpreter.predict([x[start : start + batch] for x in inputs])) for start in starts]
    return [np.concatenate([array.reshape(len(array), -1) for array in arrays]) for arrays in zip(*runs, strict=True)]


def _numbers(tensor: Tensor, values: Array) -> Array:
    """The real values of a quantized tensor."""
    grid = tensor.per_tensor_quantization
    return values if grid is None or tensor.type == "FLOAT32" else from_levels(values, *grid)


def _magnitudes(weights: Array) -> int:
    """The largest number of different magnitudes of the weights in any output channel, not counting zero."""
    return max(np.unique(np.abs(channel[channel != 0])).size for channel in weights)


def _takes_no_others(left: Left, reason: str) -> bool:
    """True if a layer's input takes only the numbers in `reason`, the report's explanation why the layer is not binary.
    Padding may also be the middle of the first two numbers.
    """
    named = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", reason)]
    named += [sum(named[:2]) / 2] if len(named) > 1 else []
    named += [-1.0] if "±1" in reason else []
    return all(np.min(np.abs(np.subtract(named, value))) < 1e-4 for value in left.values)


def _is_ternary(left: Left) -> bool:
    """True if the input takes only -1, 0 and 1, rounded to its quantization levels."""
    return all(abs(value - round(value)) < 0.01 and abs(round(value)) <= 1 for value in left.values)


def _is_no_sign(left: Left, reason: str) -> bool:
    """True if the observed values of the input do not prove that the input is a sign.

    The output of a sign takes two clearly different values, and differs between samples. Two values are no proof if
    one of them may be padding, if they come from a clamped sum, or if they are nearly equal. A clamp followed by a
    coarse quantization may leave only two nearly equal values.
    """
    largest, smallest = max(left.values), min(left.values)
    hardly_differ = largest - smallest < 0.1 * max(abs(largest), abs(smallest))
    return left.padded or not left.moves or len(left.values) != 2 or hardly_differ or left.is_clamped_sum


def _takes_two_others(left: Left, reason: str) -> bool:
    """True if the layer's input takes two values that are not 1 and -1, apart from padding."""
    are_signs = len(left.values) == 2 and left.values <= {-1.0, 1.0}
    return len(left.values) <= (4 if left.padded else 3) and (left.padded or not are_signs)


def _is_what_it_says(left: Left, reason: str) -> bool:
    """True if the layer's input is constant, apart from padding, and has the value that the converter's reason
    states."""
    # SPACE_TO_BATCH_ND pads each batch of its output with zeros at other positions. Therefore the observed zeros do not
    # count as values of the input.
    within = replace(left, values=left.values - {0.0}) if left.spaced else left
    return _takes_no_others(within, reason) or (left.padded and not left.moves)


def _pads_unknown_size(left: Left, reason: str) -> bool:
    return left.op.options.padding == Padding.SAME and min(left.op.input(0).dims[1:3]) < 0


def _leaves_out(left: Left, reason: str) -> bool:
    """A TRANSPOSE_CONV with a stride is computed as several convolutions, its phases, each for a part of the outputs.
    True if a phase has no output that uses the first or the last row or column of the input.
    """
    op = left.op
    strides = op.options.stride_h, op.options.stride_w
    axes = zip(op.input(2).dims[1:3], op.output.dims[1:3], left.weights.shape[1:3], strides, strict=True)
    for size, output, taps, stride in axes:
        total = max((size - 1) * stride + taps - output, 0)
        before = total // 2 if op.options.padding == Padding.SAME else 0
        for place in range(stride):
            rows = range(place, place + -(-output // stride) * stride, stride)
            reached = [row + before - tap for row in rows for tap in range(taps)]
            if not {0, (size - 1) * stride} <= set(reached):
                return True
    return False


def _is_no_constant_matrix(left: Left, reason: str) -> bool:
    matrix = left.op.input(1)
    plain = matrix.is_constant and matrix.type == "FLOAT32" and len(matrix.dims) == 2
    return left.op.name == "BATCH_MATMUL" and (left.op.options.adj_x or not plain)


def _is_of_signs(left: Left, reason: str) -> bool:
    """True if `reason`, the report's explanation why a layer is not binary, names the layer's op. The layer's input
    must also take at most four values, apart from rounding and padding."""
    distinct = {round(value, 4) for value in left.values}
    return left.op.name in reason and len(distinct) <= (6 if left.padded else 4)


def _takes_levels(left: Left, reason: str) -> bool:
    """True if the input takes no more values than the reason says, apart from padding."""
    [count] = re.findall(r"takes (\d+) levels", reason)
    return len(left.values) <= int(count) + left.padded


def _counts_zeros(left: Left, reason: str) -> bool:
    """True if the reason states how many weights are zero, apart from channels of zeros alone."""
    zeros = left.weights.reshape(len(left.weights), -1) == 0
    count = zeros[~zeros.all(axis=1)].sum()
    return reason.startswith(f"{count:,} of its {zeros.size:,} weights ") and _magnitudes(left.weights) == 1


def _is_small(left: Left, reason: str) -> bool:
    """True if the weights are few, or those of each output channel are."""
    return left.weights.size < 1024 or left.weights[0].size < 32


_TRUTH: dict[str, Callable[[Left, str], bool]] = {
    **dict.fromkeys(("weights is 0", "weights are 0"), _counts_zeros),
    "not ±alpha": lambda left, reason: _magnitudes(left.weights) > 1,
    "take other values than -alpha, 0 and alpha": lambda left, reason: _magnitudes(left.weights) > 1,
    "are all zero": lambda left, reason: not np.any(left.weights),
    "not the output of a sign": _is_no_sign,
    "which is 0 where x is 0": lambda left, reason: _is_ternary(left) or left.padded,
    "takes 0 and 1": lambda left, reason: left.values <= {0.0, 1.0} or left.padded,
    "takes several levels": lambda left, reason: len(left.values) > 2 or left.is_rounded,
    **dict.fromkeys(("levels, more than", "levels that are not evenly spaced"), _takes_levels),
    "joins signs with other values": lambda left, reason: len(left.values) > 2,
    "differs between the inputs of a sum": lambda left, reason: len(left.values) > 2,
    "both inputs are computed": lambda left, reason: not left.op.input(0).is_constant,
    "no product with a constant float matrix": _is_no_constant_matrix,
    "stands between the sign and it": lambda left, reason: 0.0 in left.values or _is_no_sign(left, reason),
    "takes two values that are not": _takes_two_others,
    "whatever the model's is": _is_what_it_says,
    "the opposite of a sign": lambda left, reason: left.values <= {-1.0, 1.0},
    "is padded with": _takes_no_others,
    "not a multiple of": lambda left, reason: left.weights.shape[-1] < left.op.input(0).channels,
    "takes maxima against a sign": _takes_no_others,
    "depends on a size that is not known": _pads_unknown_size,
    "leaves out rows or columns": _leaves_out,
    "nothing reads what it computes": lambda left, reason: not left.is_read,
    "there is no binary": _is_of_signs,
    "would not make the file smaller": _is_small,
    "only convolutions in float": lambda left, reason: {left.op.input(1).type, left.op.output.type} != {"FLOAT32"},
    "no fake quantization": lambda left, reason: not left.op.input(1).is_constant,
    "it has groups": lambda left, reason: left.weights.shape[-1] < left.op.input(0).channels,
}
