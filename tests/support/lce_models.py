"""Builds small .tflite models with the custom ops, valid or deliberately invalid."""

from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import flexbuffers

from tests.support import reference

LEFT_OUT = -1

TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "int32": schema.TensorType.INT32,
    "int8": schema.TensorType.INT8,
    "bool": schema.TensorType.BOOL,
    "int64": schema.TensorType.INT64,
    "uint8": schema.TensorType.UINT8,
    "float16": schema.TensorType.FLOAT16,
}


class Graph:
    """A builder of a model with one subgraph, whose tensors are identified by their indices."""

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self.buffers: list[Any] = [schema.BufferT()]
        self.codes: list[Any] = []
        self.operators: list[Any] = []

    def tensor(
        self,
        shape: Any,
        dtype: str = "int32",
        data: Any = None,
        *,
        name: str = "",
        scale: float | None = None,
        zero_point: int = 0,
    ) -> int:
        """Adds a tensor, which is constant if `data` (an array or bytes) is given."""
        tensor = schema.TensorT()
        tensor.name = name or f"tensor{len(self.tensors)}"
        tensor.shape = [int(size) for size in shape]
        tensor.type = TYPES[dtype]
        tensor.buffer = 0
        if data is not None:
            content = schema.BufferT()
            raw = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
            content.data = np.frombuffer(raw, np.uint8)
            tensor.buffer = len(self.buffers)
            self.buffers.append(content)
        if scale is not None:
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = [scale]
            tensor.quantization.zeroPoint = [zero_point]
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def constant(self, array: Any, *, name: str = "") -> int:
        """Adds a constant tensor with the array's own shape and type."""
        return self.tensor(array.shape, str(array.dtype), array, name=name)

    def custom(self, op: str, inputs: list[int], outputs: list[int], options: dict[str, Any] | bytes = b"") -> None:
        """Adds a custom op. `options` is a map for its FlexBuffer, or the bytes of the FlexBuffer."""
        code = schema.OperatorCodeT()
        code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.CUSTOM
        code.customCode = op
        encoded = options if isinstance(options, bytes) else bytes(flexbuffers.Dumps(options))
        self._operator(code, inputs, outputs).customOptions = np.frombuffer(encoded, np.uint8)

    def builtin(self, op: str, inputs: list[int], outputs: list[int], options: Any = None) -> None:
        """Adds a builtin op, such as "ADD"; `options` is an object of the schema, such as `schema.AddOptionsT()`."""
        code = schema.OperatorCodeT()
        code.builtinCode = code.deprecatedBuiltinCode = getattr(schema.BuiltinOperator, op)
        operator = self._operator(code, inputs, outputs)
        if options is not None:
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, type(options).__name__[:-1])
            operator.builtinOptions = options

    def max_pool(
        self,
        source: int,
        output: int,
        filter_size: tuple[int, int],
        strides: tuple[int, int],
        padding: int,
        activation: int,
    ) -> None:
        """Adds a MAX_POOL_2D."""
        options = schema.Pool2DOptionsT()
        options.filterHeight, options.filterWidth = filter_size
        options.strideH, options.strideW = strides
        options.padding, options.fusedActivationFunction = padding, activation
        self.builtin("MAX_POOL_2D", [source], [output], options)

    def _operator(self, code: Any, inputs: list[int], outputs: list[int]) -> Any:
        code.version = 1
        self.codes.append(code)
        operator = schema.OperatorT()
        operator.opcodeIndex = len(self.codes) - 1
        operator.inputs, operator.outputs = list(inputs), list(outputs)
        self.operators.append(operator)
        return operator

    def build(self, inputs: list[int], outputs: list[int]) -> bytes:
        """Returns the file of the model."""
        subgraph = schema.SubGraphT()
        subgraph.tensors, subgraph.operators = self.tensors, self.operators
        subgraph.inputs, subgraph.outputs = list(inputs), list(outputs)
        model = schema.ModelT()
        model.version = 3
        model.operatorCodes, model.subgraphs, model.buffers = self.codes, [subgraph], self.buffers
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


@dataclass
class Case:
    """A model with an input and the expected output. `tolerance` is the largest allowed absolute difference."""

    name: str
    model: bytes
    input: Any
    expected: Any
    tolerance: float = 0.0


@dataclass
class Conv:
    """The parameters of one LceBconv2d, with random constants drawn from `seed`."""

    input_shape: tuple[int, int, int, int] = (1, 5, 6, 64)  # NHWC, real channels
    channels_out: int = 8
    filter_size: tuple[int, int] = (3, 3)
    groups: int = 1
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    padding: int | tuple[tuple[int, int], tuple[int, int]] = reference.SAME  # or explicit: top, bottom; left, right
    pad_values: int = 1
    activation: int = 0
    output: str = "float32"  # or "int8" or "packed"
    multiplier: bool = True
    bias: bool = True
    scale: float = 0.5
    zero_point: int = 3
    seed: int = 0
    changed: dict[str, Any] = field(default_factory=dict)  # options with other values; None omits an option

    @property
    def options(self) -> dict[str, int]:
        padding = {"padding": self.padding}
        if isinstance(self.padding, tuple):
            padding = dict(zip(("pad_top", "pad_bottom", "pad_left", "pad_right"), sum(self.padding, ()), strict=True))
        return {
            "channels_in": self.input_shape[3],
            "dilation_height_factor": self.dilations[0],
            "dilation_width_factor": self.dilations[1],
            "fused_activation_function": self.activation,
            "pad_values": self.pad_values,
            **padding,
            "stride_height": self.strides[0],
            "stride_width": self.strides[1],
        }

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        """The output shape in NHWC, with words as channels for packed output."""
        height, width = (
            reference.axis_window(
                self.input_shape[1 + i],
                self.filter_size[i],
                self.strides[i],
                self.dilations[i],
                self.padding[i] if isinstance(self.padding, tuple) else self.padding,
            )[0]
            for i in (0, 1)
        )
        channels = (self.channels_out + 31) // 32 if self.output == "packed" else self.channels_out
        return self.input_shape[0], height, width, channels

    def constants(self) -> dict[str, Any]:
        """The constant inputs: the filter's words, multiplier, bias and thresholds. An input that is left out is
        None.
        """
        rng = np.random.default_rng(self.seed)
        group_channels = self.input_shape[3] // self.groups
        depth = self.filter_size[0] * self.filter_size[1] * group_channels
        signs = rng.choice([-1, 1], (self.channels_out, *self.filter_size, group_channels))
        threshold = rng.integers(0, depth + 1, self.channels_out).astype(np.int32)
        threshold[rng.random(self.channels_out) < 0.1] = np.iinfo(np.int32).min
        threshold[rng.random(self.channels_out) < 0.1] = np.iinfo(np.int32).max
        packed = self.output == "packed"
        spread = 60 / depth**0.5  # lets int8 outputs use their range
        return {
            "filter": reference.pack(signs),
            "post_activation_multiplier": rng.normal(0, spread, self.channels_out).astype(np.float32)
            if self.multiplier and not packed
            else None,
            "post_activation_bias": rng.normal(0, 10, self.channels_out).astype(np.float32)
            if self.bias and not packed
            else None,
            "output_threshold": threshold if packed else None,
        }

    def add_to(self, graph: Graph, source: int) -> int:
        """Adds the op with the packed input `source` to a graph, and returns its output."""
        inputs = [source]
        for name, value in self.constants().items():
            inputs.append(LEFT_OUT if value is None else graph.constant(value, name=name))
        quantized = {"scale": self.scale, "zero_point": self.zero_point} if self.output == "int8" else {}
        dtype = "int32" if self.output == "packed" else self.output
        output = graph.tensor(self.output_shape, dtype, name="output", **quantized)
        options = {key: value for key, value in {**self.options, **self.changed}.items() if value is not None}
        graph.custom("LceBconv2d", inputs, [output], options)
        return output

    def model(self) -> bytes:
        """A model of this LceBconv2d alone, with packed input."""
        graph = Graph()
        *pixels, channels = self.input_shape
        source = graph.tensor((*pixels, (channels + 31) // 32), name="input")
        return graph.build([source], [self.add_to(graph, source)])

    def compute(self, words: Any) -> Any:
        """Computes the op's output with the reference implementation."""
        constants = self.constants()
        return reference.lce_bconv2d(
            words,
            constants["filter"],
            constants["post_activation_multiplier"],
            constants["post_activation_bias"],
            constants["output_threshold"],
            self.options,
            self.output,
            self.scale,
            self.zero_point,
        )

    def random_input(self, batch: int | None = None) -> Any:
        """Random packed signs in the input's shape, or with another batch size."""
        shape = (self.input_shape[0] if batch is None else batch, *self.input_shape[1:])
        return reference.pack(np.random.default_rng(self.seed + 1).choice([-1, 1], shape))

    def tolerance(self, expected: Any) -> float:
        """The largest allowed difference from the reference implementation."""
        if self.output == "float32":
            return 1e-5 * max(float(np.abs(expected).max()), 1.0)
        return 1.0 if self.output == "int8" else 0.0

    def case(self, name: str, batch: int | None = None) -> Case:
        words = self.random_input(batch)
        expected = self.compute(words)
        return Case(name, self.model(), words, expected, self.tolerance(expected))


def quantize_model(shape: tuple[int, ...], dtype: str, scale: float | None = None, zero_point: int = 0) -> bytes:
    """A model of one LceQuantize."""
    graph = Graph()
    source = graph.tensor(shape, dtype, name="input", scale=scale, zero_point=zero_point)
    output = graph.tensor((*shape[:-1], (shape[-1] + 31) // 32), name="output")
    graph.custom("LceQuantize", [source], [output])
    return graph.build([source], [output])


def dequantize_model(shape: tuple[int, ...], dtype: str, scale: float | None = None, zero_point: int = 0) -> bytes:
    """A model of one LceDequantize; `shape` is the unpacked shape."""
    graph = Graph()
    source = graph.tensor((*shape[:-1], (shape[-1] + 31) // 32), name="input")
    output = graph.tensor(shape, dtype, name="output", scale=scale, zero_point=zero_point)
    graph.custom("LceDequantize", [source], [output])
    return graph.build([source], [output])


def unpack_weights_model(signs: Any, scales: Any, zeros: Any, shape: tuple[int, ...]) -> bytes:
    """A model that adds the weights of a LitebnnUnpackWeights to its input."""
    graph = Graph()
    source = graph.tensor(shape, "float32", name="input")
    arrays = [(signs, "int32"), (scales, "float32"), *([] if zeros is None else [(zeros, "int32")])]
    weights, output = graph.tensor(shape, "float32", name="weights"), graph.tensor(shape, "float32", name="output")
    inputs = [graph.tensor(each.shape, dtype, each) for each, dtype in arrays]
    graph.custom("LitebnnUnpackWeights", inputs, [weights])
    graph.builtin("ADD", [source, weights], [output], schema.AddOptionsT())
    return graph.build([source], [output])


def bmaxpool_model(
    shape: tuple[int, int, int, int],
    filter_size: tuple[int, int],
    strides: tuple[int, int],
    padding: int,
    changed: dict[str, Any] | None = None,
) -> bytes:
    """A model of one LceBMaxPool2d; `shape` is the packed input's."""
    graph = Graph()
    source = graph.tensor(shape, name="input")
    size = [reference.axis_window(shape[1 + i], filter_size[i], strides[i], 1, padding)[0] for i in (0, 1)]
    output = graph.tensor((shape[0], *size, shape[3]), name="output")
    options = {
        "padding": padding,
        "stride_width": strides[1],
        "stride_height": strides[0],
        "filter_width": filter_size[1],
        "filter_height": filter_size[0],
    }
    options = {key: value for key, value in {**options, **(changed or {})}.items() if value is not None}
    graph.custom("LceBMaxPool2d", [source], [output], options)
    return graph.build([source], [output])


def chain_model(
    batch: int = 1, size: int = 12, channels: tuple[int, int, int] = (40, 70, 33), seed: int = 0
) -> tuple[bytes, Any, Any]:
    """A model that uses all four ops in one partition: quantize, packed conv, pool, float conv, quantize, dequantize.

    Returns the model, a float32 input and the expected float32 signs.
    """
    first = Conv((batch, size, size, channels[0]), channels[1], output="packed", seed=seed)
    half = (size + 1) // 2
    second = Conv((batch, half, half, channels[1]), channels[2], padding=reference.VALID, seed=seed + 7)

    graph = Graph()
    source = graph.tensor(first.input_shape, "float32", name="input")
    packed = graph.tensor((*first.input_shape[:3], (channels[0] + 31) // 32))
    graph.custom("LceQuantize", [source], [packed])
    convolved = first.add_to(graph, packed)
    pooled = graph.tensor((batch, half, half, (channels[1] + 31) // 32))
    pool = {"padding": reference.SAME, "stride_width": 2, "stride_height": 2, "filter_width": 3, "filter_height": 3}
    graph.custom("LceBMaxPool2d", [convolved], [pooled], pool)
    values = second.add_to(graph, pooled)
    signs = graph.tensor((*second.output_shape[:3], (channels[2] + 31) // 32))
    graph.custom("LceQuantize", [values], [signs])
    output = graph.tensor(second.output_shape, "float32", name="output")
    graph.custom("LceDequantize", [signs], [output])

    x = np.random.default_rng(seed + 3).normal(size=first.input_shape).astype(np.float32)
    words = reference.lce_bmaxpool2d(first.compute(reference.lce_quantize(x)), (3, 3), (2, 2), reference.SAME)
    signed = reference.lce_quantize(second.compute(words))
    return graph.build([source], [output]), x, reference.lce_dequantize(signed, channels[2], np.float32)
