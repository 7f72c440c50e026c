"""Lowers ops that only move values: pad, slice, gather, transpose, concatenate, split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from litebnn.analysis.quantization import dequantized
from litebnn.contract import Activation
from litebnn.graph import Array, Op, Tensor
from litebnn.micro.program import (
    AXES,
    C_TYPES,
    Argument,
    Call,
    Context,
    Lowered,
    Read,
    Struct,
    Write,
    check_types,
    constant_of,
    grid,
    refuse,
    strides_of,
)

_SUFFIXES = {"FLOAT32": "floats", "INT8": "bytes", "INT32": "words"}
RESHAPES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")


def _move(
    context: Context,
    source: Tensor,
    result: Tensor,
    sizes: Sequence[int],
    steps: tuple[Sequence[int], Sequence[int]],
    starts: tuple[int, int],
) -> Call:
    """The call of a strided copy: `sizes` elements along each axis, with the strides `steps` of input and output."""
    if source.type != result.type:
        raise refuse(f"it moves {source.type} to {result.type}: expected one type")
    if source.type == "INT8" and grid(source) != grid(result):
        raise refuse("its inputs and its output have several scales, expected one")
    merged = _merged(sizes, *steps)
    if len(merged) > AXES:
        raise refuse(f"it moves along {len(merged)} axes, expected at most {AXES}")
    merged = [(1, 0, 0)] * (AXES - len(merged)) + merged
    names = ("sizes", "input_strides", "output_strides")
    fields = {name: tuple(column) for name, column in zip(names, zip(*merged, strict=True), strict=True)}
    struct = Struct("litebnn_move", {**fields, "input_start": starts[0], "output_start": starts[1]})
    arguments = (struct, Read(source), Write(result))
    work = {"elements": int(np.prod(sizes, dtype=np.int64))}
    return Call(f"litebnn_move_{_SUFFIXES[source.type]}", arguments, ("builtin/move.c",), work)


def _merged(sizes: Sequence[int], first: Sequence[int], second: Sequence[int]) -> list[tuple[int, int, int]]:
    """Merges neighbouring axes that are contiguous in both tensors, whose strides are `first` and `second`. Returns the
    size and the two strides of each merged axis.
    """
    found: list[tuple[int, int, int]] = []
    for size, a, b in zip(sizes, first, second, strict=True):
        if size == 1:
            continue
        if found and found[-1][1:] == (a * size, b * size):
            found[-1] = (found[-1][0] * size, a, b)
        else:
            found.append((size, a, b))
    return found or [(1, 0, 0)]


def concatenation(context: Context, op: Op) -> Lowered:
    """Lowers CONCATENATION to a copy of each input. Packed signs can be concatenated only if each part fills whole
    words.
    """
    check_types(op, *_SUFFIXES)
    if getattr(op.options, "fused_activation_function", Activation.NONE) != Activation.NONE:
        raise refuse("it has a fused activation, expected none")
    shape = context.shape(op.output)
    axis = op.options.axis % len(shape)
    out_strides = strides_of(shape)
    calls, start = [], 0
    for tensor in op.inputs:
        assert tensor is not None
        part = context.shape(tensor)
        calls.append(_move(context, tensor, op.output, part, (strides_of(part), out_strides), (0, start)))
        start += part[axis] * out_strides[axis]
    return Lowered(tuple(calls))


def pad(context: Context, op: Op) -> Lowered:
    """Lowers PAD and PADV2: the output is filled with the padding value, then the input is copied into it."""
    source, result = op.input(0), op.output
    check_types(op, "FLOAT32", "INT8")
    shape, out_strides = context.shape(source), strides_of(context.shape(result))
    before = constant_of(op.input(1), "padding").reshape(-1, 2)[:, 0].tolist()
    if len(before) != len(shape) or min(before) < 0:
        raise refuse(f"its padding is {before} before {len(shape)} axes, expected one of at least 0 for each")
    start = sum(amount * stride for amount, stride in zip(before, out_strides, strict=True))
    call = _move(context, source, result, shape, (strides_of(shape), out_strides), (0, start))
    return Lowered((_fill(context, op), call))


def _fill(context: Context, op: Op) -> Call:
    result, count = op.output, context.count(op.output)
    value: float | int = 0.0 if result.type == "FLOAT32" else grid(result)[1]
    if op.name == "PADV2":
        given = constant_of(op.input(2), "value").reshape(-1)[0]
        value = float(given) if result.type == "FLOAT32" else int(given)
    arguments: tuple[Argument, ...] = (value, count, Write(result))
    return Call(f"litebnn_fill_{_SUFFIXES[result.type]}", arguments, ("builtin/move.c",), {"filled": count})


def transpose(context: Context, op: Op) -> Lowered:
    """Lowers TRANSPOSE."""
    check_types(op, *_SUFFIXES)
    order = constant_of(op.input(1), "order").reshape(-1).tolist()
    shape, rank = context.shape(op.input(0)), len(context.shape(op.input(0)))
    if sorted(axis % rank for axis in order) != list(range(rank)):
        raise refuse(f"its order is {order}, expected each of {rank} axes once")
    strides = strides_of(shape)
    steps = [strides[axis] for axis in order], strides_of([shape[axis] for axis in order])
    return Lowered((_move(context, op.input(0), op.output, [shape[axis] for axis in order], steps, (0, 0)),))


def slice_(context: Context, op: Op) -> Lowered:
    """Lowers SLICE."""
    check_types(op, *_SUFFIXES)
    begin = constant_of(op.input(1), "beginning").reshape(-1).tolist()
    return _sliced(context, op, begin, [1] * len(begin), context.shape(op.output))


def strided_slice(context: Context, op: Op) -> Lowered:
    """Lowers STRIDED_SLICE, without new axes and ellipses."""
    check_types(op, *_SUFFIXES)
    options, shape = op.options, context.shape(op.input(0))
    if getattr(options, "ellipsis_mask", 0) or getattr(options, "new_axis_mask", 0):
        raise refuse("it has an ellipsis or a new axis, expected none")
    begin, end, step = (constant_of(op.input(index), "bounds").reshape(-1).tolist() for index in (1, 2, 3))
    spans = []
    for axis, size in enumerate(shape):
        if axis >= len(begin):
            spans.append(range(size))
            continue
        at = None if options.begin_mask >> axis & 1 else begin[axis]
        stop = None if options.end_mask >> axis & 1 else end[axis]
        if getattr(options, "shrink_axis_mask", 0) >> axis & 1:
            at, stop, step[axis] = begin[axis] % size, begin[axis] % size + 1, 1
        spans.append(range(size)[slice(at, stop, step[axis])])
    return _sliced(context, op, [s.start for s in spans], [s.step for s in spans], [len(s) for s in spans])


def _sliced(context: Context, op: Op, begin: Sequence[int], steps: Sequence[int], sizes: Sequence[int]) -> Lowered:
    shape = context.shape(op.input(0))
    if int(np.prod(sizes, dtype=np.int64)) != context.count(op.output):
        raise refuse(f"it takes {list(sizes)} of {list(shape)}, expected {list(context.shape(op.output))}")
    strides = strides_of(shape)
    start = sum(first * stride for first, stride in zip(begin, strides, strict=True))
    walks = [step * stride for step, stride in zip(steps, strides, strict=True)], strides_of(sizes)
    return Lowered((_move(context, op.input(0), op.output, sizes, walks, (start, 0)),))


def gather(context: Context, op: Op) -> Lowered:
    """Lowers GATHER by constant indices to a copy of each run of evenly spaced ones."""
    check_types(op, *_SUFFIXES)
    shape, indices = context.shape(op.input(0)), constant_of(op.input(1), "indices")
    axis = op.options.axis % len(shape)
    if indices.ndim != 1 or not indices.size or getattr(op.options, "batch_dims", 0) != 0:
        raise refuse(f"its indices are {list(indices.shape)}, expected one axis")
    if indices.min() < 0 or indices.max() >= shape[axis]:
        raise refuse(f"it has an index of {indices.min()} to {indices.max()}, expected 0 to {shape[axis] - 1}")
    strides, out_strides = strides_of(shape), strides_of(context.shape(op.output))
    calls, place = [], 0
    for run in _runs(indices.tolist()):
        sizes, steps = list(shape), list(strides)
        sizes[axis], steps[axis] = len(run), run.step * strides[axis]
        starts = run.start * strides[axis], place * out_strides[axis]
        calls.append(_move(context, op.input(0), op.output, sizes, (steps, out_strides), starts))
        place += len(run)
    return Lowered(tuple(calls))


def _runs(indices: Sequence[int]) -> list[range]:
    """Splits indices into runs with a constant step other than 0.

    >>> _runs([2, 1, 0, 0, 1, 2, 2])
    [range(2, -1, -1), range(0, 3), range(2, 3)]
    """
    runs: list[range] = []
    for index in indices:
        last = runs[-1] if runs else range(0)
        step = index - last[-1] if last else 0
        if step and (len(last) == 1 or step == last.step):
            runs[-1] = range(last.start, index + (1 if step > 0 else -1), step)
        else:
            runs.append(range(index, index + 1))
    return runs


def split(context: Context, op: Op) -> Lowered:
    """Lowers SPLIT and SPLIT_V to a copy for each output."""
    source = op.input(1 if op.name == "SPLIT" else 0)
    axis_tensor = op.input(0 if op.name == "SPLIT" else 2)
    shape = context.shape(source)
    axis = int(constant_of(axis_tensor, "axis").reshape(-1)[0]) % len(shape)
    strides, start, calls = strides_of(shape), 0, []
    for result in op.outputs:
        if result.type not in C_TYPES or result.type not in _SUFFIXES:
            raise refuse(f'"{result.name}" is {result.type}, expected {" or ".join(_SUFFIXES)}')
        part = context.shape(result)
        calls.append(_move(context, source, result, part, (strides, strides_of(part)), (start, 0)))
        start += part[axis] * strides[axis]
    return Lowered(tuple(calls))


def stack(context: Context, op: Op) -> Lowered:
    """Lowers PACK: each input becomes one position of a new axis."""
    check_types(op, *_SUFFIXES)
    shape = context.shape(op.output)
    axis = op.options.axis % len(shape)
    strides = strides_of(shape)
    rest = [stride for index, stride in enumerate(strides) if index != axis]
    calls = []
    for position, tensor in enumerate(op.inputs):
        assert tensor is not None
        part = context.shape(tensor)
        steps = strides_of(part), rest
        calls.append(_move(context, tensor, op.output, part, steps, (0, position * strides[axis])))
    return Lowered(tuple(calls))


def folded(op: Op) -> Array | None:
    """The value of an op that only moves or dequantizes constants. None if an operand of the op is computed at run
    time.
    """
    source = op.inputs[0] if op.inputs else None
    if source is None or not source.is_constant:
        return None
    value = source.array
    if op.name in RESHAPES and value is not None:
        return value.reshape(op.output.shape)
    if op.name != "DEQUANTIZE":
        return None
    return dequantized(source) if value is None or value.dtype != np.float16 else value.astype(np.float32)
