"""Small models with quantized activations and weights, as TensorFlow's converter and ai-edge-quantizer write them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litebnn.analysis.quantization import NARROW_TYPES, pack_levels, parameters
from litebnn.contract import Padding
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import (
    Array,
    Buffer,
    Op,
    OpCode,
    Options,
    QuantizationDetails,
    Tensor,
    builtin_op,
    constant,
    facts,
)
from litebnn.rules.build.int8 import int8_constant
from litebnn.rules.int8.narrow_weights import FORMATS
from tests.support.float_models import ACTIVATIONS, FloatModel, window

Grid = tuple[float, int]
# Scales and zero points of signs. The first pair represents 1 and -1 exactly, the second represents neither, the third
# does not represent -1. In float32, 2/255 is slightly too large, so that 1 is 127.49999 times the scale.
EXACT_GRID, USUAL_GRID, NO_MINUS_GRID = (1 / 127, 0), (float(np.float32(2 / 255)), -1), (1 / 255, -128)
INT8_SIGNS = (
    "where",
    "where_lt",
    "where_gt",
    "where_channels",
    "where_broadcast",
    "where_flat",
    "zeros_replaced",
    "ste_sign",
    "heaviside",
)


class Int8Model(FloatModel):
    """A builder of a model of int8 ops; every method returns an int8 tensor."""

    level_type, bias_type = "INT8", np.int32

    def input8(self, grid: Grid, *shape: int, signature: Sequence[int] | None = None) -> Tensor:
        return self._on(grid, self.input(*shape, type=self.level_type, signature=signature))

    def sign8(self, x: Tensor, form: str, grid: Grid) -> Tensor:
        """Adds the ops that `form` names, which compute an int8 sign of `x`: ±1, or 0 and 1 for "heaviside"."""
        if form == "heaviside":
            condition = self.elementwise("GREATER_EQUAL", self.dequantize8(x), self.const(0), type="BOOL")
            return self.quantize8(self.op("CAST", [condition], x.dims), NO_MINUS_GRID)
        if form == "ste_sign":
            ternary = self.quantize8(self.elementwise("SIGN", self.dequantize8(x)), EXACT_GRID)
            tenth = int8_constant("tenth", np.full((), 0.1), 0.1 / 127)
            shifted = self.add8(ternary, tenth, (2.2 / 255, -13))
            return self.quantize8(self.elementwise("SIGN", self.dequantize8(shifted)), grid)
        zero = int8_constant("zero", np.zeros(()), 1e-9)
        if form == "zeros_replaced":
            condition = self.elementwise("EQUAL", x, zero, type="BOOL")
            one = int8_constant("one", np.full((), 1), *(x.per_tensor_quantization or (1.0, 0)))
            nonzero = self.as_(x, self.op("SELECT_V2", [condition, one, x], x.dims), 1)
            return self.quantize8(self.elementwise("SIGN", self.dequantize8(nonzero)), grid)
        if form == "where_broadcast":
            shape = [*x.dims[:-1], 1]
            largest = self.op("REDUCE_MAX", [x, self.const([len(shape) - 1], np.int32)], shape, keep_dims=True)
            condition = self.elementwise("GREATER_EQUAL", self.as_(x, largest, 2), zero, type="BOOL")
            whole = (1, *x.shape[1:])
            ones, minus = (int8_constant(f"values{value}", np.full(whole, value), *grid) for value in (1, -1))
            return self._on(grid, self.op("SELECT_V2", [condition, ones, minus], x.dims, type=self.level_type))
        if form == "where_channels":
            scale, zero_point = x.per_tensor_quantization or (1.0, 0)
            zero = int8_constant("levels", (np.arange(x.channels) % 5 - 2) * 8 * scale, scale, zero_point)
        comparison = {"where_lt": "LESS", "where_gt": "GREATER"}.get(form, "GREATER_EQUAL")
        values = (-1, 1) if form == "where_lt" else (1, -1)
        condition = self.elementwise(comparison, x, zero, type="BOOL")
        picked = [int8_constant(f"value{value}", np.full((), value), *grid) for value in values]
        if form == "where_flat":
            flat = (x.dims[0], int(np.prod(x.dims[1:])))
            condition = self.reshape(condition, *flat)
            condition.type = "BOOL"
            rows = self._on(grid, self.op("SELECT_V2", [condition, *picked], flat, type=self.level_type))
            return self.reshape8(rows, *x.dims)
        return self._on(grid, self.op("SELECT_V2", [condition, *picked], x.dims, type=self.level_type))

    def conv8(
        self, x: Tensor, weights: Array, bias: Array, grid: Grid, *, same: bool, activation: str, stride: int = 1
    ) -> Tensor:
        kernel, counts = self._constants(x, weights, bias)
        sides = zip(x.dims[1:3], weights.shape[1:3], strict=True)
        sizes = [window(size, taps, stride, 1, same) for size, taps in sides]
        shape = (x.dims[0], *sizes, len(weights))
        padding = Padding.SAME if same else Padding.VALID
        fused = ACTIVATIONS[activation]
        layer = self.op(
            "CONV_2D",
            [x, kernel, counts],
            shape,
            type=self.level_type,
            version=3,
            padding=padding,
            stride_h=stride,
            stride_w=stride,
            fused_activation_function=fused,
        )
        return self._on(grid, layer)

    def transposed_conv8(self, x: Tensor, weights: Array, bias: Array, grid: Grid) -> Tensor:
        y = self.transposed_conv(x, weights, bias)
        op = self.graph.ops[-1]
        op.code = OpCode(op.name, "", 3)
        kernel, counts = self._constants(x, weights, bias)
        self.graph.set_input(op, 1, kernel)
        self.graph.set_input(op, 3, counts)
        y.type = self.level_type
        return self._on(grid, y)

    def depthwise_conv8(self, x: Tensor, weights: Array, bias: Array, grid: Grid, *, stride: int) -> Tensor:
        """Adds an int8 depthwise convolution with weights [1, height, width, channels] and one scale."""
        y = self.depthwise_conv(x, weights, bias, stride=stride)
        op = self.graph.ops[-1]
        op.code = OpCode(op.name, "", 3)
        kernel, counts = self._constants(x, weights, bias, scales=1)
        self.graph.set_input(op, 1, kernel)
        self.graph.set_input(op, 2, counts)
        y.type = self.level_type
        return self._on(grid, y)

    def dense8(self, x: Tensor, weights: Array, bias: Array, grid: Grid) -> Tensor:
        kernel, counts = self._constants(x, weights, bias, scales=1)
        shape = (x.dims[0], len(weights))
        return self._on(grid, self.op("FULLY_CONNECTED", [x, kernel, counts], shape, type=self.level_type, version=4))

    def add8(self, x: Tensor, y: Tensor, grid: Grid) -> Tensor:
        added = self.op("ADD", [x, y], x.dims, type=self.level_type, version=2, fused_activation_function=0)
        return self._on(grid, added)

    def softmax8(self, x: Tensor) -> Tensor:
        return self._on((1 / 256, -128), self.op("SOFTMAX", [x], x.dims, type=self.level_type, version=2, beta=1.0))

    def pool8(self, x: Tensor) -> Tensor:
        return self.as_(x, self.max_pool(x, 2, 1), 2)

    def reshape8(self, x: Tensor, *shape: int) -> Tensor:
        return self.as_(x, self.reshape(x, *shape), 1)

    def pad8(self, x: Tensor, value: float | None, amounts: Sequence[Sequence[int]] = ((1, 1), (1, 1))) -> Tensor:
        """Pads an image with zeros if `value` is None, otherwise with this number, by default one row and column on
        each side."""
        padded = self.pad(x, amounts, value)
        if value is not None:
            scale, zero_point = x.per_tensor_quantization or (1.0, 0)
            self.graph.set_input(self.graph.ops[-1], 2, int8_constant("pad", np.full((), value), scale, zero_point))
        return self.as_(x, padded, 2)

    def quantize8(self, x: Tensor, grid: Grid) -> Tensor:
        return self._on(grid, self.op("QUANTIZE", [x], x.dims, type=self.level_type))

    def dequantize8(self, x: Tensor) -> Tensor:
        return self.op("DEQUANTIZE", [x], x.dims, version=2)

    def _constants(self, x: Tensor, weights: Array, bias: Array, *, scales: int = 0) -> tuple[Tensor, Tensor]:
        """The int8 weights, with one scale or one for each output channel, and the quantized bias."""
        largest = np.abs(weights).reshape(scales or len(weights), -1).max(axis=1)
        step = np.where(largest > 0, largest, 1.0) / 127
        kernel = int8_constant(self._name("kernel"), weights, step)
        unit = step * (x.per_tensor_quantization or (1.0, 0))[0]
        counts = self.const(np.round(bias / unit), self.bias_type)
        counts.quantization = parameters(unit)
        return kernel, counts

    def as_(self, x: Tensor, result: Tensor, version: int) -> Tensor:
        """Gives `result`, the last op's output, the scale and zero point of `x`. Also sets the last op's
        version to `version`.
        """
        op = self.graph.ops[-1]
        op.code = OpCode(op.name, "", version)
        result.type, result.quantization = self.level_type, x.quantization
        return result

    def _on(self, grid: Grid, tensor: Tensor) -> Tensor:
        tensor.quantization = parameters(*grid)
        return tensor


class Int16Model(Int8Model):
    """A builder with int16 activations, whose zero point is 0, and with int64 biases."""

    level_type, bias_type = "INT16", np.int64


class TrainedModel(FloatModel):
    """A builder of a float model whose values are multiples of scales, as quantization-aware training leaves them."""

    def fake(self, x: Tensor, grid: Grid) -> Tensor:
        levels = self.op("QUANTIZE", [x], x.dims, type="INT8")
        levels.quantization = parameters(*grid)
        return self.op("DEQUANTIZE", [levels], x.dims, version=2)

    def fake_weights(self, levels: Array, scales: Array, axis: int = 0) -> Tensor:
        """Fake-quantized weights with one scale, or one for each output channel, which are along `axis`."""
        stored = self.const(levels, np.int8)
        stored.quantization = parameters(scales, 0, axis)
        return self.op("DEQUANTIZE", [stored], stored.shape, version=2)


def in_half_precision(source: bytes) -> bytes:
    """Stores every float constant as float16 followed by a DEQUANTIZE, as TensorFlow does."""
    model = read_model(source)
    [graph] = model.graphs
    halves: dict[Tensor, Tensor] = {}
    for op in list(graph.ops):
        for index, tensor in enumerate(op.inputs):
            array = None if tensor is None else tensor.array
            if tensor is None or array is None or array.dtype != np.float32:
                continue
            if tensor not in halves:
                half = constant(f"{tensor.name}/half", array.astype(np.float16))
                halves[tensor] = Tensor(f"{tensor.name}/float", "FLOAT32", tensor.shape)
                graph.insert(builtin_op("DEQUANTIZE", [half], halves[tensor], version=3), before=graph.ops[0])
            graph.set_input(op, index, halves[tensor])
    return write_model(model)


def with_quantized_weights(source: bytes, type: str = "INT8") -> bytes:
    """Quantizes the weights of layers by output channel. INT4 and INT2 weights are followed by a DEQUANTIZE, as in
    exports. Depthwise INT8 weights stay float: LiteRT's kernel for them gives different results in each interpreter.
    """
    model = read_model(source)
    [graph] = model.graphs
    most = {"INT8": 127, "INT4": 7, "INT2": 1}[type]
    for op in list(graph.ops):
        weights = op.input(1).array if facts(op).layer and op.name != "BATCH_MATMUL" else None
        if weights is None or (op.name == "DEPTHWISE_CONV_2D" and type == "INT8"):
            continue
        largest = np.abs(weights).reshape(len(weights), -1).max(axis=1)
        stored = int8_constant(op.input(1).name, weights, np.where(largest > 0, largest, 1.0) / most)
        if type == "INT8":
            graph.set_input(op, 1, stored)
            continue
        assert stored.array is not None
        narrow = replace(stored, type=type, buffer=Buffer(pack_levels(stored.array, NARROW_TYPES[type])))
        values = Tensor(f"{stored.name}/float", "FLOAT32", stored.shape)
        graph.insert(builtin_op("DEQUANTIZE", [narrow], values, version=FORMATS[type].dequantize), before=op)
        graph.set_input(op, 1, values)
    return write_model(model)


def block_scales(weights: Array, size: int, bits: int) -> Array:
    """The scales float16 [O, I / size] of weights in blocks, as ai-edge-quantizer chooses them: symmetric, with a
    mantissa of 7 bits."""
    largest = np.abs(weights.reshape(len(weights), -1, size)).max(axis=2)
    scales = np.maximum(largest / (2 ** (bits - 1) - 1), 1e-3).astype(np.float32)
    return ((scales.view(np.uint32) + 0x8000) & 0xFFFF0000).view(np.float32).astype(np.float16)


def in_blocks(weights: Tensor, type: str, size: int) -> Tensor:
    """Quantizes constant float weights [O, I] in blocks of `size`."""
    values = weights.array
    assert values is not None
    scales = block_scales(values, size, NARROW_TYPES[type])
    wide = np.repeat(scales.astype(np.float32), size, axis=1)
    limit = 2 ** (NARROW_TYPES[type] - 1)
    levels = np.clip(np.rint(values / wide), -limit, limit - 1).astype(np.int8)
    named: dict[str, Tensor | None] = {"scales": constant(weights.name + "_scales", scales), "zero_points": None}
    details = QuantizationDetails(Options("BlockwiseQuantization", block_size=size), named)
    return Tensor(weights.name, type, weights.shape, Buffer(pack_levels(levels, NARROW_TYPES[type])), details=details)


def with_blocks(source: bytes, type: str, size: int) -> bytes:
    """The model after the weights of its dense layers were quantized in blocks. The scales come after all other
    tensors.
    """
    model = read_model(source)
    for graph in model.graphs:
        for op in graph.ops:
            if op.name == "FULLY_CONNECTED" and op.input(1).array is not None and op.input(1).shape[1] % size == 0:
                old = op.input(1)
                new = in_blocks(old, type, size)
                graph.set_input(op, 1, new)
                graph.tensors[graph.tensors.index(old)] = new
    return write_model(model)


def dequantized_weights(dense: Op) -> Array:
    """The float32 weights [O, I] of a dense layer, computed from the stored bytes."""
    weights = dense.input(1)
    data, details = weights.buffer.data, weights.details
    assert data is not None
    assert details is not None
    named, bits = details.tensors["scales"], NARROW_TYPES[weights.type]
    assert named is not None
    assert named.array is not None
    codes = np.stack([(data >> shift) & (2**bits - 1) for shift in range(0, 8, bits)], axis=1)
    levels = codes.reshape(-1)[: np.prod(weights.shape)].astype(np.int64)
    levels = np.where(levels >= 2 ** (bits - 1), levels - 2**bits, levels)
    scales = named.array.astype(np.float64).reshape(-1, 1)
    values: Array = (levels.reshape(-1, details.options.block_size) * scales).reshape(weights.shape).astype(np.float32)
    return values
