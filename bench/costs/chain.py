"""Builds a network op by op; each op reads the previous one's output."""

from __future__ import annotations

from typing import Any

import numpy as np

from litebnn.contract import (
    LCE_BMAXPOOL_2D,
    LCE_DEQUANTIZE,
    LCE_QUANTIZE,
    Activation,
    BConv2DOptions,
    BMaxPool2DOptions,
    Padding,
    PadValues,
)
from litebnn.flatbuffer import write_model
from litebnn.graph import Array, Graph, Model, Quantization, Tensor, builtin_op, constant, packed_words
from litebnn.rules.build.bconv import bconv_of
from litebnn.rules.build.ops import custom_op

RNG = np.random.default_rng(0)
GRID = Quantization(np.array([1 / 32], np.float32), np.array([0], np.int64))


class Chain:
    """A network under construction, in which each op reads the previous one's output."""

    def __init__(self, *shape: int, type: str = "FLOAT32") -> None:
        self.graph = Graph("main", [], [], [], [])
        self._count = 0
        self.x = self.y = self._tensor(type, shape)

    def _tensor(self, type: str, shape: tuple[int, ...]) -> Tensor:
        self._count += 1
        quantization = GRID if type == "INT8" else None
        return Tensor(f"tensor_{self._count}", type, shape, quantization=quantization)

    def bytes(self) -> bytes:
        """The .tflite file of the network."""
        graph = self.graph
        graph.tensors, graph.inputs, graph.outputs = [self.x], [self.x], [self.y]  # buffer 0 stands for no data
        return write_model(Model([graph], [], [], [], None, None, 3, "bench"))

    def _values(self, *shape: int) -> Array:
        return RNG.standard_normal(shape, np.float32)

    def _weights(self, type: str, shape: tuple[int, ...], axis: int) -> tuple[Tensor, Tensor]:
        """Random weights and the bias of a float or int8 layer. `axis` is the axis of the output channels."""
        channels = shape[axis]
        if type == "FLOAT32":
            return constant("weights", self._values(*shape)), constant("bias", self._values(channels))
        weights = constant("weights", RNG.integers(-127, 128, shape).astype(np.int8))
        bias = constant("bias", np.zeros(channels, np.int32))
        scales, zeros = np.full(channels, 1 / 512, np.float32), np.zeros(channels, np.int64)
        weights.quantization = Quantization(scales, zeros, axis)
        bias.quantization = Quantization(scales / np.float32(32), zeros)
        return weights, bias

    def pack(self) -> Chain:
        """Appends an op that packs the signs of the current output."""
        bits = self._tensor("INT32", (*self.y.shape[:-1], packed_words(self.y.shape[-1])))
        self.graph.insert(custom_op(LCE_QUANTIZE, [self.y], bits))
        self.y = bits
        return self

    def bconv(
        self,
        channels_in: int,
        channels: int,
        taps: int,
        stride: int = 1,
        type: str = "FLOAT32",
        zeros: bool = False,
        dilation: int = 1,
        groups: int = 1,
        activation: Activation = Activation.NONE,
    ) -> Chain:
        """Appends an LceBconv2d with SAME padding, whose outputs are floats, int8 (type INT8) or signs (type INT32)."""
        minus_one = RNG.random((channels, taps, taps, channels_in // groups)) < 0.5
        options = BConv2DOptions(
            channels_in,
            padding=Padding.SAME if taps > 1 else Padding.VALID,
            pad_values=PadValues.ZERO if zeros else PadValues.ONE,
            stride_height=stride,
            stride_width=stride,
            dilation_height_factor=dilation,
            dilation_width_factor=dilation,
            fused_activation_function=activation,
        )
        batch, height, width, _ = self.y.shape
        words = packed_words(channels) if type == "INT32" else channels
        output = self._tensor(type, (batch, -(-height // stride), -(-width // stride), words))
        op = bconv_of(self.y, output, "filter", minus_one, self._values(channels), self._values(channels), options)
        if type == "INT32":
            thresholds = np.full(channels, taps * taps * channels_in // groups // 2, np.int32)
            op.inputs[2:] = [None, None, constant("thresholds", thresholds)]
        self.graph.insert(op)
        self.y = output
        return self

    def unpack(self, channels: int) -> Chain:
        """Appends an op that unpacks the current signs to floats."""
        floats = self._tensor("FLOAT32", (*self.y.shape[:-1], channels))
        self.graph.insert(custom_op(LCE_DEQUANTIZE, [self.y], floats))
        self.y = floats
        return self

    def reshape(self, *shape: int) -> Chain:
        """Appends a RESHAPE to `shape`."""
        return self.builtin("RESHAPE", [self.y, constant("shape", np.array(shape, np.int32))], shape)

    def add(self, addend: Tensor) -> Chain:
        return self.builtin("ADD", [self.y, addend], self.y.shape)

    def builtin(
        self,
        name: str,
        inputs: list[Tensor | None],
        shape: tuple[int, ...],
        type: str = "",
        version: int = 0,
        **options: Any,
    ) -> Chain:
        """Appends the built-in op `name`. Its output has the element type of its input unless `type` is given."""
        output = self._tensor(type or self.y.type, shape)
        version = version or (3 if self.y.type == "INT8" else 1)
        self.graph.insert(builtin_op(name, inputs, output, version=version, **options))
        self.y = output
        return self

    def conv(self, channels: int, taps: int, stride: int = 1) -> Chain:
        """Appends a CONV_2D with SAME padding, of floats or int8."""
        batch, height, width, channels_in = self.y.shape
        weights, bias = self._weights(self.y.type, (channels, taps, taps, channels_in), 0)
        shape = (batch, -(-height // stride), -(-width // stride), channels)
        return self.builtin(
            "CONV_2D", [self.y, weights, bias], shape, padding=Padding.SAME, stride_h=stride, stride_w=stride
        )

    def transposed_conv(self, channels: int, taps: int, stride: int) -> Chain:
        """Appends a TRANSPOSE_CONV with SAME padding, of floats or int8."""
        batch, height, width, channels_in = self.y.shape
        weights, bias = self._weights(self.y.type, (channels, taps, taps, channels_in), 0)
        shape = (batch, height * stride, width * stride, channels)
        return self.builtin(
            "TRANSPOSE_CONV",
            [constant("shape", np.array(shape, np.int32)), weights, self.y, bias],
            shape,
            padding=Padding.SAME,
            stride_h=stride,
            stride_w=stride,
        )

    def depthwise(self, taps: int, stride: int = 1) -> Chain:
        """Appends a DEPTHWISE_CONV_2D with SAME padding."""
        batch, height, width, channels = self.y.shape
        weights, bias = self._weights(self.y.type, (1, taps, taps, channels), 3)
        shape = (batch, -(-height // stride), -(-width // stride), channels)
        return self.builtin(
            "DEPTHWISE_CONV_2D",
            [self.y, weights, bias],
            shape,
            padding=Padding.SAME,
            stride_h=stride,
            stride_w=stride,
            depth_multiplier=1,
        )

    def dense(self, channels: int) -> Chain:
        """Appends a FULLY_CONNECTED, with one scale for all weights if they are int8."""
        weights, bias = self._weights(self.y.type, (channels, self.y.shape[-1]), 0)
        for tensor in (weights, bias):
            if tensor.quantization is not None:
                one = tensor.quantization
                tensor.quantization = Quantization(one.scale[:1], one.zero_point[:1])
        return self.builtin("FULLY_CONNECTED", [self.y, weights, bias], (self.y.shape[0], channels))

    def pool(self, name: str, taps: int, stride: int) -> Chain:
        """Appends a MAX_POOL_2D or an AVERAGE_POOL_2D with SAME padding. `name` is one of these two names."""
        batch, height, width, channels = self.y.shape
        shape = (batch, -(-height // stride), -(-width // stride), channels)
        options: dict[str, Any] = {"filter_height": taps, "filter_width": taps, "stride_h": stride, "stride_w": stride}
        return self.builtin(name, [self.y], shape, padding=Padding.SAME, **options)

    def max_pool_signs(self, taps: int, stride: int) -> Chain:
        """Appends an LceBMaxPool2d with SAME padding."""
        batch, height, width, words = self.y.shape
        output = self._tensor("INT32", (batch, -(-height // stride), -(-width // stride), words))
        options = BMaxPool2DOptions(Padding.SAME, stride, stride, taps, taps)
        self.graph.insert(custom_op(LCE_BMAXPOOL_2D, [self.y], output, options))
        self.y = output
        return self
