"""Finds the ops that the library's delegate claims, and those that it runs without a copy. The tables repeat the rules
in claim.cc and fuse.cc.

Time estimates need these rules without the library, for boards too. `claimed_test.py` compares the rules with the
library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from litebnn.contract import CUSTOM_OPS, LCE_BCONV_2D, LCE_QUANTIZE, Activation
from litebnn.graph import Graph, Op, Tensor

# Limits of the library. The first is the maximum number of inputs of a CONCATENATION. The second is the maximum number
# of channels of a float sum or a gate, which is a product of two float tensors.
_MOST_PARTS, _MOST_CHANNELS = 256, 1 << 20
# The maximum number of channels of an int8 batch norm.
_MOST_INT8_CHANNELS = 1 << 12
# The library computes an int8 convolution without groups if it has at most this many input channels. With groups, each
# group must have one of these numbers of input channels.
_MOST_STEM_CHANNELS, _GROUP_CHANNELS = 4, range(4, 9)
# The library computes an int8 convolution with at most these numbers of output channels, of weights, and of weights for
# each output.
_MOST_STEM_OUTPUTS, _MOST_STEM_WEIGHTS, _MOST_STEM_DEPTH = 1 << 10, 1 << 16, 1 << 14
# The delegate claims an int8 convolution only if the magnitudes of its sums stay below this bound.
_MOST_STEM_SUM = 1 << 29
# The delegate claims an int8 pool only if it has fewer taps than this bound.
_MOST_POOLED = 1 << 17


@dataclass(frozen=True)
class _Kind:
    """A kind of builtin op, as an `OpType` of the library describes it."""

    op: str
    # A predicate that is true if the library can compute the node.
    computes: Callable[[Op], bool]
    # The fused activations that the library supports.
    activations: Sequence[Activation] = (Activation.NONE,)
    # The kinds of ops that may produce an input of the node; at least one input must come from such an op. If empty,
    # any claimed op may produce it.
    follows: Sequence[str] = ()
    # True if an output that leads only to signs is enough reason to claim the op, whatever produces its inputs.
    passes: bool = False
    # True if the op is claimed when a sign reads its output, even if other ops read its output too.
    begins: bool = False
    # True if the op is claimed only if a claimed op reads its output.
    needs_reader: bool = False
    # True if no other op may read the input that a claimed op produces.
    is_sole_reader: bool = False
    # True if the op is claimed whatever produces its inputs.
    stands_alone: bool = False


def _is_computed_float(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.type == "FLOAT32" and not tensor.is_constant


def _are_images(op: Op, inputs: int) -> bool:
    tensors = (*op.inputs, *op.outputs)
    return len(tensors) == inputs + 1 and all(
        _is_computed_float(t) and t is not None and len(t.shape) == 4 for t in tensors
    )


def _has_channel_values(op: Op, type: str = "FLOAT32") -> bool:
    if len(op.inputs) != 2 or len(op.outputs) != 1:
        return False
    image, values = op.inputs
    if image is None or values is None or {image.type, values.type, op.output.type} != {type}:
        return False
    if image.is_constant or op.output.is_constant or not values.is_constant:
        return False
    is_vector = 0 < len(values.shape) <= len(image.shape) and math.prod(values.shape[:-1]) == 1
    return is_vector and values.shape[-1] == image.shape[-1]


def _has_slopes(op: Op) -> bool:
    return _has_channel_values(op) and len(op.input(0).shape) == 4


def _is_sum(op: Op) -> bool:
    if not _are_images(op, 2):
        return False
    return op.input(0).shape[3] == op.input(1).shape[3] <= _MOST_CHANNELS


def _is_gate(op: Op) -> bool:
    tensors = (*op.inputs, *op.outputs)
    if len(tensors) != 3 or not all(map(_is_computed_float, tensors)) or len(op.output.shape) != 4:
        return False
    channels = op.output.shape[3]
    return channels <= _MOST_CHANNELS and all(
        t is not None and 0 < len(t.shape) <= 4 and t.shape[-1] == channels for t in tensors
    )


def _joins_channels(op: Op) -> bool:
    whole = op.output
    if not 1 <= len(op.inputs) <= _MOST_PARTS or len(op.outputs) != 1 or whole.type not in ("FLOAT32", "INT32"):
        return False
    rank = len(whole.shape)
    fitting = (
        part is not None and part.type == whole.type and len(part.shape) == rank and not part.is_constant
        for part in op.inputs
    )
    return rank > 0 and all(fitting) and op.options.axis in (-1, rank - 1)


def _pools(op: Op) -> bool:
    options = op.options
    sizes = options.stride_h, options.stride_w, options.filter_height, options.filter_width
    return _are_images(op, 1) and min(sizes) > 0


def _averages(op: Op) -> bool:
    options = op.options
    return _pools(op) and options.stride_h >= options.filter_height and options.stride_w >= options.filter_width


def _grid(tensor: Tensor | None) -> tuple[float, int] | None:
    """The scale and the zero point of an INT8 tensor, or None if they are not valid."""
    grid = None if tensor is None else tensor.per_tensor_quantization
    return grid if grid is not None and math.isfinite(grid[0]) and -128 <= grid[1] <= 127 else None


def _is_int8_image(tensor: Tensor | None) -> bool:
    if tensor is None or tensor.type != "INT8" or len(tensor.shape) != 4 or tensor.is_constant:
        return False
    return _grid(tensor) is not None


def _is_int8_norm(op: Op) -> bool:
    is_norm = _has_channel_values(op, "INT8") and op.input(0).shape[-1] <= _MOST_INT8_CHANNELS
    return is_norm and all(_grid(tensor) is not None for tensor in (*op.inputs, *op.outputs))


def _scales(op: Op) -> Iterator[np.float32]:
    return (np.float32(grid[0]) for tensor in (*op.inputs, *op.outputs) if (grid := _grid(tensor)) is not None)


def _is_int8_scale(op: Op) -> bool:
    if not _is_int8_norm(op):
        return False
    image, multiplier, product = _scales(op)
    with np.errstate(over="ignore", under="ignore"):
        return bool(0 < image * multiplier / product < 1)


def _adds_scales(op: Op) -> bool:
    """True if the reference kernel's fixed-point numbers can represent the scales of an int8 ADD."""
    first, second, total = map(float, _scales(op))
    return 2 * max(first, second) < total * 2**20


def _is_int8_shift(op: Op) -> bool:
    return _is_int8_norm(op) and _adds_scales(op)


def _is_int8_sum(op: Op) -> bool:
    tensors = (*op.inputs, *op.outputs)
    if len(tensors) != 3 or not all(map(_is_int8_image, tensors)):
        return False
    return op.input(0).shape[3] == op.input(1).shape[3] and _adds_scales(op)


def _is_int8_pool(op: Op) -> bool:
    if (len(op.inputs), len(op.outputs)) != (1, 1) or not all(map(_is_int8_image, (*op.inputs, *op.outputs))):
        return False
    options = op.options
    sizes = options.filter_height, options.filter_width
    is_on_one_grid = op.input(0).per_tensor_quantization == op.output.per_tensor_quantization
    is_window = min(*sizes, options.stride_h, options.stride_w) > 0
    return is_on_one_grid and is_window and sizes[0] * sizes[1] < _MOST_POOLED


def _is_stem(op: Op) -> bool:
    if len(op.inputs) not in (2, 3) or len(op.outputs) != 1:
        return False
    if not _is_int8_image(op.inputs[0]) or not _is_int8_image(op.output):
        return False
    image, filter, options = op.input(0), op.input(1), op.options
    if filter.type != "INT8" or filter.array is None or len(filter.shape) != 4 or filter.quantization is None:
        return False
    outputs, depth = len(filter.array), filter.array[:1].size
    if not 1 <= outputs <= _MOST_STEM_OUTPUTS or filter.array.size > _MOST_STEM_WEIGHTS or depth > _MOST_STEM_DEPTH:
        return False
    bias = op.optional(2)
    sums = 256 * np.abs(filter.array.astype(np.int64)).reshape(outputs, -1).sum(axis=1)
    if bias is not None:
        if bias.type != "INT32" or bias.array is None or bias.array.size != outputs:
            return False
        sums += np.abs(bias.array.reshape(-1).astype(np.int64))
    if np.any(sums >= _MOST_STEM_SUM) or min(options.stride_h, options.stride_w) < 1:
        return False
    if (options.dilation_h_factor, options.dilation_w_factor) != (1, 1) or np.any(filter.quantization.zero_point):
        return False
    grid, whole = image.per_tensor_quantization, op.output.per_tensor_quantization
    if grid is None or whole is None or filter.shape[3] < 1 or image.shape[3] % filter.shape[3]:
        return False
    groups = image.shape[3] // filter.shape[3]
    is_narrow = filter.shape[3] <= _MOST_STEM_CHANNELS if groups == 1 else filter.shape[3] in _GROUP_CHANNELS
    if not groups or not is_narrow or outputs % groups:
        return False
    if filter.quantization.scale.size not in (1, outputs):
        return False
    scales = grid[0] * filter.quantization.scale.astype(np.float64) / whole[0]
    return bool(np.all((scales > 0) & (scales < 1))) and -128 not in filter.array


_OR_RELU = (Activation.NONE, Activation.RELU)
_CLAMPS = (*_OR_RELU, Activation.RELU_N1_TO_1, Activation.RELU6)
# The value of `follows` for averages, and for ops that are claimed only if their outputs lead to signs. Its only entry
# is an empty name, which no kind of op has, so no producer of an input matches.
_NOTHING = ("",)
_NORMS = ("scale", "shift")
_IMAGES = ("concatenation", "max pool", *_NORMS)
_READERS_OF_PARTS = ("max pool", *_NORMS, "rectified shift")
# The kinds of builtin ops that the delegate may claim. They are in the order of the op library, which takes the first
# kind that fits a node.
_KINDS: Mapping[str, _Kind] = {
    "sum": _Kind("ADD", _is_sum, _OR_RELU, follows=(LCE_BCONV_2D, "gate", "rectified gate", "PRELU")),
    "scale": _Kind("MUL", _has_channel_values, follows=_IMAGES, passes=True),
    "shift": _Kind("ADD", _has_channel_values, follows=_IMAGES, passes=True),
    "rectified shift": _Kind("ADD", _has_channel_values, (Activation.RELU,), follows=_IMAGES),
    "gate": _Kind("MUL", _is_gate, needs_reader=True),
    "rectified gate": _Kind("MUL", _is_gate, (Activation.RELU,), needs_reader=True),
    "max pool": _Kind("MAX_POOL_2D", _pools, _OR_RELU, begins=True),
    "concatenation": _Kind("CONCATENATION", _joins_channels),
    "PRELU": _Kind("PRELU", _has_slopes, passes=True, needs_reader=True),
    "int8 stem": _Kind("CONV_2D", _is_stem, _CLAMPS, stands_alone=True),
    "average": _Kind("AVERAGE_POOL_2D", _averages, follows=_NOTHING),
    "int8 average": _Kind("AVERAGE_POOL_2D", _is_int8_pool, _CLAMPS),
    "int8 max pool": _Kind("MAX_POOL_2D", _is_int8_pool, _CLAMPS),
    "int8 sum": _Kind("ADD", _is_int8_sum, _CLAMPS, follows=(LCE_BCONV_2D,), is_sole_reader=True),
    "int8 scale": _Kind("MUL", _is_int8_scale, follows=_NOTHING, passes=True),
    "int8 shift": _Kind("ADD", _is_int8_shift, follows=_NOTHING, passes=True),
}


def _kind_of(op: Op) -> str | None:
    if op.name in CUSTOM_OPS:
        return op.name
    activation = getattr(op.options, "fused_activation_function", Activation.NONE)
    fitting = (
        name
        for name, kind in _KINDS.items()
        if kind.op == op.name and activation in kind.activations and op.outputs and kind.computes(op)
    )
    return next(fitting, None)


def claimed_ops(graph: Graph) -> dict[Op, str]:
    """The ops that the delegate claims, each with its kind: a custom op's name, or a key of `_KINDS`."""
    kinds = {op: kind for op in graph.ops if (kind := _kind_of(op)) is not None}
    claimed = _claimed_forwards(graph, kinds)
    claimed |= _made_into_signs_alone(graph, kinds, claimed)
    read: set[Tensor | None] = set()
    for op in reversed(graph.ops):
        if op in claimed and op.name not in CUSTOM_OPS and _KINDS[kinds[op]].needs_reader and op.output not in read:
            claimed.remove(op)
        if op in claimed:
            read.update(op.inputs)
    return {op: kinds[op] for op in graph.ops if op in claimed}


def _beginnings(graph: Graph, kinds: Mapping[Op, str]) -> set[Op]:
    """The ops that the library claims whatever produces their inputs. They are the library's own ops, kinds with
    `stands_alone`, and kinds with `begins` if packed signs are computed from their outputs."""
    found: set[Op] = set()
    made_into_signs: set[Tensor | None] = set()
    for op in reversed(graph.ops):
        kind = _KINDS.get(kinds.get(op, ""))
        feeds = kind is not None and (kind.passes or kind.begins) and op.output in made_into_signs
        if op.name in CUSTOM_OPS or (kind is not None and (kind.stands_alone or (kind.begins and feeds))):
            found.add(op)
        if feeds or op.name == LCE_QUANTIZE:
            made_into_signs.update(op.inputs)
    return found


def _claimed_forwards(graph: Graph, kinds: Mapping[Op, str]) -> set[Op]:
    begin = _beginnings(graph, kinds)
    claimed: set[Op] = set()
    for op in graph.ops:
        kind = _KINDS.get(kinds.get(op, ""))
        inputs = [
            tensor
            for tensor in op.inputs
            if tensor is not None and (kind is None or not kind.is_sole_reader or len(graph.consumers(tensor)) == 1)
        ]
        writers = [kinds[writer] for writer in map(graph.producer, inputs) if writer in claimed]
        follows = kind is not None and any(not kind.follows or writer in kind.follows for writer in writers)
        if op in begin or follows:
            claimed.add(op)
    return claimed


def _made_into_signs_alone(graph: Graph, kinds: Mapping[Op, str], claimed: Iterable[Op]) -> set[Op]:
    """The ops whose outputs lead only to signs. One average may read the result of a batch norm too, and is then among
    these ops."""
    found: set[Op] = set()
    taken = set(claimed)
    averages = _packed_averages(graph, kinds, taken)
    by_signs: set[Tensor | None] = set()
    by_others: set[Tensor | None] = set()
    for op in reversed(graph.ops):
        if op in averages:
            continue
        kind = _KINDS.get(kinds.get(op, ""))
        if kind is not None and kind.passes and op.output in by_signs and op.output not in by_others:
            found.add(op)
        goes_into_signs = op in found or (op in taken and op.name == LCE_QUANTIZE)
        (by_signs if goes_into_signs else by_others).update(op.inputs)
    norms = {op.output for op in found if kinds[op] in _NORMS}
    return found | {op for op in averages if op.input(0) in norms}


def _packed_averages(graph: Graph, kinds: Mapping[Op, str], claimed: set[Op]) -> set[Op]:
    """The average pools of batch norms whose signs are packed. The packing can compute one average in the same pass."""
    norms = {op.output for op, kind in kinds.items() if kind in _NORMS}
    packed = {op.input(0) for op in claimed if op.name == LCE_QUANTIZE}
    first: dict[Tensor, Op] = {}
    for op in graph.ops:
        if kinds.get(op) == "average":
            first.setdefault(op.input(0), op)
    return {op for image, op in first.items() if image in norms & packed}


def joined_in_place(graph: Graph, claimed: Mapping[Op, str]) -> set[Op]:
    """The CONCATENATIONs that need no copy. Either their parts are written directly into the whole, or only the
    signs of their parts are packed into it.
    """
    norms = {op: _packed_with(graph, claimed, op) for op in claimed if op.name == LCE_QUANTIZE}
    packed = {op for norm in norms.values() for op in norm}
    # The type of the batch norms that are packed into each tensor.
    norm_types = {op.output: norm[0].output.type for op, norm in norms.items() if norm}
    found: set[Op] = set()
    for op in (op for op, kind in claimed.items() if kind == "concatenation"):
        reader = graph.sole_consumer(op.output)
        types_of_parts = {
            norm_types.get(part) if graph.sole_consumer(part) is op else None for part in op.inputs if part is not None
        }
        norm_type = types_of_parts.pop() if len(types_of_parts) == 1 else None
        if norm_type is not None:
            norm_types[op.output] = norm_type  # another CONCATENATION can join the result
        is_read_in_parts = reader is not None and reader not in packed and claimed.get(reader) in _READERS_OF_PARTS
        if norm_type is not None or is_read_in_parts:
            found.add(op)
    return found


def _packed_with(graph: Graph, claimed: Mapping[Op, str], packing: Op) -> list[Op]:
    """The ops of batch norms (MUL, ADD) that the library computes together with the packing of their signs."""
    found: list[Op] = []
    for kinds in (("shift", "int8 shift"), ("scale", "int8 scale")):
        reader = found[-1] if found else packing
        writer = graph.producer(reader.inputs[0])
        if writer is None or claimed.get(writer) not in kinds:
            continue
        others = [op for op in graph.consumers(writer.output) if op is not reader]
        # The packing also computes a claimed average of its image.
        if all(reader is packing and claimed.get(op) == "average" for op in others) and not graph.is_output(
            writer.output
        ):
            found.append(writer)
    return found
