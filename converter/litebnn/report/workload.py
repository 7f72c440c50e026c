"""Measures the work of an op in the units from which its time is estimated: multiply-adds, windows, values, bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from litebnn.contract import (
    BITS_PER_WORD,
    LCE_BCONV_2D,
    LCE_BMAXPOOL_2D,
    LCE_DEQUANTIZE,
    LCE_QUANTIZE,
    LITEBNN_UNPACK_WEIGHTS,
)
from litebnn.graph import Op, facts
from litebnn.report.macs import macs_by_precision
from litebnn.report.op_properties import bytes_of, data_of, filter_shape
from litebnn.rules.build.bconv import bconv_options, channels_per_group

# The approximate number of output channels that XNNPACK's loops compute together.
_GEMM_TILE = 16
# The size in bytes of a core's own cache. Larger data comes from the shared cache or from memory.
_CACHE_BYTES = 1 << 20
_LAST_CACHE_BYTES = 32 << 20
# The number of bits of a window that one table lookup covers.
_BITS_OF_A_TABLE = 6


@dataclass(frozen=True)
class Workload:
    """The work of an op: an amount for each column of the cost table."""

    kind: str  # kind of op: a row of the cost table
    # The amount of each kind of work, by the names of the cost table's columns. The amount of `calls` is always 1.
    amounts: Mapping[str, float]


def workload_of(op: Op, delegated: Collection[Op], adds: bool = False, tile: int = 1) -> Workload | None:
    """The work of an op; None if the cost table lacks its kind.

    `delegated` are the ops that litebnn's delegate runs. `adds` is True if an ADD is fused into an LceBconv2d. `tile`
    is the number of output channels that the kernels of LceBconv2d compute together.
    """
    if op.name == LCE_BCONV_2D:
        return _bconv(op, adds, tile)
    if op.name == LITEBNN_UNPACK_WEIGHTS:
        return Workload("reshaping", {})  # it runs only once, when the model is loaded
    make = _KINDS.get(op.name)
    if make is None or not op.outputs or data_of(op) is None:
        return None
    work = make(op)
    work = Workload(work.kind, {**work.amounts, **_past_caches(op), "calls": 1})
    if op.name == "MAX_POOL_2D" and op in delegated:
        return Workload("max_pool of litebnn", work.amounts)
    return work


def windows_share_little(op: Op, table_channels: int, shared_tables: int, tile: int) -> bool:
    """True if an LceBconv2d uses each lookup table too rarely to pay for building it.

    `table_channels` is the number of output channels whose lookups take as long as building one table. `shared_tables`
    is the largest number of tables for each tile that stay in the cache until adjacent windows use them again. `tile`
    is the number of output channels that are computed together.
    """
    options, channels = bconv_options(op), _channels_of_group(op)
    _, height, width, words = op.input(1).shape
    step = min(options.stride_width, width)
    tables_of_two = (width + step) * height * -(-words * BITS_PER_WORD // _BITS_OF_A_TABLE)
    shares_rows = options.stride_height == options.dilation_height_factor and height > 1
    shares_columns = options.channels_in == channels_per_group(op) and options.dilation_width_factor == 1
    shares_columns = shares_columns and tables_of_two <= shared_tables * -(-channels // tile)
    tables = (1 if shares_rows else height) * (step if shares_columns else width)
    return height * width == 1 or table_channels * tables >= channels * height * width


def _channels_of_group(op: Op) -> int:
    """The number of output channels in a group of an LceBconv2d."""
    return int(op.input(1).shape[0] * channels_per_group(op) // bconv_options(op).channels_in)


def _bytes(op: Op) -> int:
    return sum(bytes_of(tensor) for tensor in (*op.inputs, *op.outputs) if tensor is not None)


def _past_caches(op: Op) -> dict[str, float]:
    found = _bytes(op)
    return {
        "bytes past the cache": max(0, found - _CACHE_BYTES),
        "bytes past the last cache": max(0, found - _LAST_CACHE_BYTES),
    }


def _bconv(op: Op, adds: bool, tile: int) -> Workload:
    options = bconv_options(op)
    channels_out, height, width, words = op.input(1).shape
    groups = options.channels_in // channels_per_group(op)
    padded = groups * (-(-_channels_of_group(op) // tile) * tile)
    pixels = math.prod(op.output.shape[:3])
    outputs = pixels * channels_out
    kind = {"FLOAT32": "floats", "INT8": "int8s"}.get(op.output.type, "signs")
    amounts = {
        "macs": pixels * height * width * words * BITS_PER_WORD * padded,
        "window words": pixels * height * width * words * groups,
        "pixels": pixels,
        "runs": outputs * _runs_of_window(op),
        kind: outputs,
        "edge outputs": outputs * edge_share(op) if options.pads_zeros else 0.0,
        "weight bytes": bytes_of(op.input(1)),
        **_past_caches(op),
        "calls": 1,
    }
    if adds:
        amounts["added floats"] = outputs
    return Workload("LceBconv2d", amounts)


def _runs_of_window(op: Op) -> int:
    """The number of runs (words that are contiguous in memory) in a window of an LceBconv2d. They are its rows, or its
    taps if it is dilated or grouped.

    Each run starts a separate loop, whose overhead matters if words are computed one by one.
    """
    options = bconv_options(op)
    _, height, width, _ = op.input(1).shape
    rows_are_runs = options.channels_in == channels_per_group(op) and (options.dilation_width_factor == 1 or width == 1)
    return int(height if rows_are_runs else height * width)


def edge_share(op: Op) -> float:
    """The share of an LceBconv2d's outputs whose windows include padding."""
    options = bconv_options(op)
    _, height, width, _ = op.output.shape
    inside = 1.0
    for axis, size in enumerate((height, width)):
        taps = (op.input(1).shape[1 + axis] - 1) * options.dilations[axis]
        fitting = max((op.input(0).shape[1 + axis] - taps - 1) // options.strides[axis] + 1, 0)
        inside *= min(fitting, size) / size if size else 0.0
    return 1.0 - inside


def _layer(op: Op) -> Workload:
    """The work of a convolution or dense layer that the runtime computes."""
    precision = " int8" if op.input(facts(op).data).type == "INT8" else ""
    macs = sum(macs_by_precision(op))
    outputs = math.prod(op.output.shape)
    channels = op.output.shape[-1] if op.output.shape else 1
    amounts: dict[str, float] = {"macs": macs, "values": outputs, "weight bytes": bytes_of(op.input(1))}
    if op.name == "DEPTHWISE_CONV_2D":
        return Workload(f"depthwise conv{precision}", amounts)
    if op.name == "TRANSPOSE_CONV":
        return Workload(f"transposed conv{precision}", amounts)
    rows = outputs // max(channels, 1)
    if not op.input(1).is_constant and op.name == "BATCH_MATMUL":
        # If weights are not constant, they are packed in every run. The op then counts as a matrix product.
        return Workload("matmul", amounts)
    if rows == 1:
        return Workload(f"dense{precision}", amounts)
    taps = math.prod(filter_shape(op)[:2])
    amounts["macs"] = macs / max(channels, 1) * (-(-channels // _GEMM_TILE) * _GEMM_TILE)
    amounts["window tiles"] = rows * taps * -(-channels // _GEMM_TILE)
    return Workload(f"conv{precision}", amounts)


def _values(kind: str) -> Callable[[Op], Workload]:
    """Makes the workload function of a kind of op whose time is proportional to the bytes that it reads and writes."""

    def work(op: Op) -> Workload:
        return Workload(kind, {"bytes": _bytes(op)})

    return work


def _runs(op: Op) -> Workload:
    """The work of an op that copies the channels of each pixel separately."""
    rows = [math.prod(tensor.shape[:-1]) for tensor in (*op.inputs, *op.outputs) if tensor is not None]
    return Workload("moving", {"bytes": _bytes(op), "rows": sum(rows)})


def _results(kind: str) -> Callable[[Op], Workload]:
    """Makes the workload function of a kind of op whose time is proportional to the number of values that it writes."""

    def work(op: Op) -> Workload:
        return Workload(kind, {"values": sum(math.prod(tensor.shape) for tensor in op.outputs)})

    return work


def _pool(op: Op) -> Workload:
    taps = math.prod(filter_shape(op))
    kind = {"MAX_POOL_2D": "max pool", "AVERAGE_POOL_2D": "average pool"}.get(op.name, LCE_BMAXPOOL_2D)
    values = math.prod(op.output.shape)
    return Workload(kind, {"taps": values * taps, "values": values})


_ELEMENTWISE = "ADD SUB MUL DIV MAXIMUM MINIMUM NEG ABS SQUARE RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 LEAKY_RELU PRELU"
_TRANSCENDENTAL = "LOGISTIC SOFTMAX TANH EXP ELU HARD_SWISH RSQRT SQRT POW"
_RESHAPING = "RESHAPE SQUEEZE EXPAND_DIMS"
_MOVING = """TRANSPOSE STRIDED_SLICE SLICE DEPTH_TO_SPACE SPACE_TO_DEPTH PAD PADV2 MIRROR_PAD CONCATENATION BROADCAST_TO
    TILE PACK UNPACK SPLIT SPLIT_V GATHER SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND"""
_COMPARING = """SIGN EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_OR LOGICAL_NOT SELECT
    SELECT_V2 CAST CEIL FLOOR ROUND"""
_KINDS: dict[str, Callable[[Op], Workload]] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "BATCH_MATMUL"), _layer),
    **dict.fromkeys(("MAX_POOL_2D", "AVERAGE_POOL_2D", LCE_BMAXPOOL_2D), _pool),
    **dict.fromkeys(_ELEMENTWISE.split(), _values("elementwise")),
    **dict.fromkeys(_RESHAPING.split(), _values("reshaping")),
    **dict.fromkeys(_MOVING.split(), _runs),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"), _values("reduction")),
    **dict.fromkeys(_TRANSCENDENTAL.split(), _results("transcendental")),
    **dict.fromkeys(_COMPARING.split(), _results("comparison")),
    **dict.fromkeys(("QUANTIZE", "DEQUANTIZE"), _results("int8 and back")),
    LCE_QUANTIZE: _values(LCE_QUANTIZE),
    LCE_DEQUANTIZE: _values(LCE_DEQUANTIZE),
}
