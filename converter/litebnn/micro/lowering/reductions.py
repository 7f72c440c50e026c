"""Lowers reductions along axes."""

from __future__ import annotations

import numpy as np

from litebnn.graph import Op
from litebnn.micro.fixed_point import quantized_multiplier
from litebnn.micro.program import (
    AXES,
    Call,
    Context,
    Lowered,
    Read,
    Struct,
    Value,
    Write,
    check_types,
    constant_of,
    grid,
    refuse,
    strides_of,
)


def _all_axes(context: Context, op: Op) -> list[int]:
    rank = len(context.shape(op.input(0)))
    axes = constant_of(op.input(1), "axes").reshape(-1).tolist()
    if any(not -rank <= axis < rank for axis in axes):
        raise refuse(f"its axes are {axes}, expected -{rank} to {rank - 1}")
    return sorted({axis % rank for axis in axes})


def reduction(context: Context, op: Op) -> Lowered:
    """Lowers MEAN, SUM, REDUCE_MAX and REDUCE_MIN along any axes."""
    check_types(op, "FLOAT32", "INT8")
    source, shape = op.input(0), context.shape(op.input(0))
    if source.type != op.output.type:
        raise refuse(f"it computes {source.type} to {op.output.type}: expected one type")
    axes = _all_axes(context, op)
    strides = strides_of(shape)
    rows = [(size, stride, axis in axes) for axis, (size, stride) in enumerate(zip(shape, strides, strict=True))]
    merged = _merge_reduced([row for row in rows if row[0] != 1])
    if len(merged) > AXES:
        raise refuse(f"it has {len(merged)} axes, expected at most {AXES}")
    merged = [(1, 0, False)] * (AXES - len(merged)) + merged
    count = int(np.prod([shape[axis] for axis in axes], dtype=np.int64))
    walk: dict[str, Value] = {
        "kept": tuple(1 if is_reduced else size for size, _, is_reduced in merged),
        "reduced": tuple(size if is_reduced else 1 for size, _, is_reduced in merged),
        "strides": tuple(stride for _, stride, _ in merged),
        "count": count,
    }
    work = {"elements": context.count(source), "outputs": context.count(op.output)}
    pointers = Read(source), Write(op.output)
    if op.output.type == "FLOAT32":
        call = Call(
            f"litebnn_{op.name.lower()}_float",
            (Struct("litebnn_reduction", walk), *pointers),
            ("builtin/reduce.c",),
            work,
        )
        return Lowered((call,))
    if op.name != "MEAN":
        raise refuse("on INT8 it is not known, expected FLOAT32")
    fields = {"reduction": walk, **_mean_fields(op, count)}
    call = Call(
        "litebnn_reduce_mean_int8", (Struct("litebnn_mean_int8", fields), *pointers), ("builtin/reduce.c",), work
    )
    return Lowered((call,))


def _merge_reduced(rows: list[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
    """Merges neighbouring axes that are both reduced, or both kept."""
    found: list[tuple[int, int, bool]] = []
    for size, stride, is_reduced in rows:
        if found and found[-1][2] == is_reduced:
            found[-1] = (found[-1][0] * size, stride, is_reduced)
        else:
            found.append((size, stride, is_reduced))
    return found


def _mean_fields(op: Op, count: int) -> dict[str, Value]:
    """The fields of an int8 MEAN. The multiplier includes the division by the number of averaged elements, with as many
    bits as fit, as in TFLite.
    """
    (scale, zero_point), (out_scale, out_zero_point) = grid(op.input(0)), grid(op.output)
    multiplier, shift = quantized_multiplier(scale / out_scale)
    spare = min(63 - (64 - count.bit_length()), 32, 31 + shift)
    return {
        "input_zero_point": zero_point,
        "output_zero_point": out_zero_point,
        "multiplier": (multiplier << spare) // count,
        "shift": shift - spare,
    }
