"""Builds small float .tflite models as exporters write them, for the converter's tests.

For exact comparisons, values are small multiples of powers of two. Every float sum and product is then exact, and
source and result agree to the last bit, including ties.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

import litebnn
from litebnn.contract import LCE_QUANTIZE, Padding
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import FACTS, Array, Graph, Model, Op, OpCode, Options, Signature, Tensor, builtin_op, constant
from litebnn.rules.build.notes import Notes
from litebnn.rules.build.ops import custom_op, packed_like
from litebnn.rules.phases import BINARY_PHASES, run_phases

ACTIVATIONS = {"none": 0, "relu": 1, "relu1": 2, "relu6": 3}
SIGN_FORMS = (
    "sign_add_sign",
    "sign_sub_sign",
    "sign_add_sign_down",
    "where_ge",
    "where_gt",
    "where_lt",
    "where_le",
    "where_swapped",
    "where_mirrored",
    "where_broadcast",
    "where_not",
    "where_zero",
    "where_channels",
    "scaled_cast",
)


class FloatModel:
    """A builder of a model with one subgraph; every method adds an op and returns its output."""

    def __init__(self) -> None:
        self.graph = Graph("main", [], [], [], [])
        self._count = 0

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}_{self._count}"

    def input(self, *shape: int, type: str = "FLOAT32", signature: Sequence[int] | None = None) -> Tensor:
        tensor = Tensor(self._name("input"), type, shape, shape_signature=tuple(signature) if signature else None)
        self.graph.tensors.append(tensor)
        self.graph.inputs.append(tensor)
        return tensor

    def const(self, value: Any, dtype: Any = np.float32) -> Tensor:
        return constant(self._name("const"), np.asarray(value, dtype))

    def op(
        self,
        name: str,
        inputs: Sequence[Tensor | None],
        shape: Sequence[int],
        *,
        type: str = "FLOAT32",
        version: int = 1,
        **options: Any,
    ) -> Tensor:
        """Adds any op, with options by name.

        If `FACTS` has no entry for the op, also pass `table`, the TFLite schema's name for its options, such as
        "SliceOptions". Ops without options need no `table`.
        """
        unknown = any(size < 0 for size in shape)
        output = Tensor(self._name(name.lower()), type, tuple(max(size, 1) for size in shape))
        output.shape_signature = tuple(shape) if unknown else None
        if "table" in options or name not in FACTS:
            op = Op(OpCode(name, "", version), list(inputs), [output], Options(**options))
        else:
            op = builtin_op(name, inputs, output, version=version, **options)
        self.graph.insert(op)
        return output

    def elementwise(self, name: str, *inputs: Tensor, activation: str = "none", type: str = "FLOAT32") -> Tensor:
        largest = max(inputs, key=lambda tensor: len(tensor.dims))
        shape = np.broadcast_shapes(*(tensor.shape for tensor in inputs))
        dims = [d if d < 0 else size for d, size in zip(largest.dims, shape, strict=True)]
        if name in ("ADD", "SUB", "MUL", "DIV"):
            return self.op(name, inputs, dims, type=type, fused_activation_function=ACTIVATIONS[activation])
        return self.op(name, inputs, dims, type=type)

    def sign(self, x: Tensor, form: str = "sign_add_sign", threshold: float = 0.0) -> Tensor:
        """Adds a sign of ±1, in one of the forms that quantizers use."""
        if form.startswith("sign"):
            amount = -0.1 if form == "sign_add_sign_down" else 0.1
            name, amount = ("SUB", -amount) if form == "sign_sub_sign" else ("ADD", amount)
            return self.elementwise("SIGN", self.elementwise(name, self.elementwise("SIGN", x), self.const(amount)))
        level, one, minus = self.const(threshold), self.const(1), self.const(-1)
        if form == "where_channels":
            level = self.const(threshold + np.arange(x.dims[-1]) % 5 / 4)
        if form == "where_zero":
            equal = self.elementwise("EQUAL", x, self.const(0), type="BOOL")
            return self.op("SELECT_V2", [equal, one, self.elementwise("SIGN", x)], x.dims)
        comparison = {"where_gt": "GREATER", "where_lt": "LESS", "where_le": "LESS_EQUAL"}.get(form, "GREATER_EQUAL")
        sides = (level, x) if form == "where_mirrored" else (x, level)
        condition = self.elementwise(comparison, *sides, type="BOOL")
        if form == "where_not":
            condition = self.elementwise("LOGICAL_NOT", condition, type="BOOL")
        if form == "where_broadcast":
            one, minus = self.const(np.ones(x.shape)), self.const(-np.ones(x.shape))
            return self.op("SELECT" if x.dims == x.shape else "SELECT_V2", [condition, one, minus], x.dims)
        if form == "scaled_cast":
            number = self.op("CAST", [condition], x.dims)
            return self.elementwise("SUB", self.elementwise("MUL", number, self.const(2)), self.const(1))
        values = (minus, one) if form == "where_swapped" else (one, minus)
        return self.op("SELECT_V2", [condition, *values], x.dims)

    def two_values(self, x: Tensor, false: float = 0.0, true: float = 1.0, comparison: str = "GREATER_EQUAL") -> Tensor:
        """Adds ops that return `true` if a comparison of x with 0 is true, otherwise `false`. For 0 and 1 the ops
        are a comparison and a cast, for other values a comparison and a select.
        """
        condition = self.elementwise(comparison, x, self.const(0), type="BOOL")
        if (false, true) == (0.0, 1.0):
            return self.op("CAST", [condition], x.dims)
        return self.op("SELECT_V2", [condition, self.const(true), self.const(false)], x.dims)

    def packed(self, x: Tensor) -> Tensor:
        """Adds an LceQuantize, and returns its packed signs."""
        bits = packed_like(x, self._name("bits"))
        self.graph.insert(custom_op(LCE_QUANTIZE, [x], bits))
        return bits

    def concatenated(self, *parts: Tensor) -> Tensor:
        dims = (*parts[0].dims[:-1], sum(part.channels for part in parts))
        return self.op("CONCATENATION", parts, dims, axis=len(dims) - 1, fused_activation_function=0)

    def expand(self, x: Tensor, axis: int) -> Tensor:
        shape = [*x.dims[:axis], 1, *x.dims[axis:]]
        return self.op("EXPAND_DIMS", [x, self.const(axis, np.int32)], shape)

    def space_to_batch(self, x: Tensor, block: Sequence[int], pads: Sequence[Sequence[int]]) -> Tensor:
        sizes = [(size + sum(p)) // b for size, b, p in zip(x.dims[1:], block, pads, strict=False)]
        shape = [x.dims[0] * int(np.prod(block)) if x.dims[0] > 0 else -1, *sizes, x.dims[-1]]
        inputs = [x, self.const(block, np.int32), self.const(pads, np.int32)]
        return self.op("SPACE_TO_BATCH_ND", inputs, shape)

    def batch_to_space(self, x: Tensor, block: Sequence[int], crops: Sequence[Sequence[int]]) -> Tensor:
        sizes = [size * b - sum(c) for size, b, c in zip(x.dims[1:], block, crops, strict=False)]
        shape = [x.dims[0] // int(np.prod(block)) if x.dims[0] > 0 else -1, *sizes, x.dims[-1]]
        inputs = [x, self.const(block, np.int32), self.const(crops, np.int32)]
        return self.op("BATCH_TO_SPACE_ND", inputs, shape)

    def pad(self, x: Tensor, amounts: Sequence[Sequence[int]], value: float | None = None) -> Tensor:
        """Adds a PADV2 with `value`, or a PAD if it is None. `amounts` are for the axes between batch and channels."""
        pads = self.const([(0, 0), *amounts, (0, 0)], np.int32)
        shape = [
            size if size < 0 else size + sum(a) for size, a in zip(x.dims, [(0, 0), *amounts, (0, 0)], strict=True)
        ]
        if value is None:
            return self.op("PAD", [x, pads], shape)
        return self.op("PADV2", [x, pads, self.const(value)], shape)

    def conv(
        self,
        x: Tensor,
        weights: Tensor | Array,
        bias: Array | None = None,
        *,
        same: bool = False,
        stride: tuple[int, int] = (1, 1),
        dilation: tuple[int, int] = (1, 1),
        activation: str = "none",
    ) -> Tensor:
        kernel = weights if isinstance(weights, Tensor) else self.const(weights)
        channels_out, *taps = kernel.shape[:3]
        sizes = [window(s, k, t, d, same) for s, k, t, d in zip(x.dims[1:3], taps, stride, dilation, strict=True)]
        offset = self.const(np.zeros(channels_out) if bias is None else bias)
        return self.op(
            "CONV_2D",
            [x, kernel, offset],
            (x.dims[0], *sizes, channels_out),
            padding=Padding.SAME if same else Padding.VALID,
            stride_h=stride[0],
            stride_w=stride[1],
            dilation_h_factor=dilation[0],
            dilation_w_factor=dilation[1],
            fused_activation_function=ACTIVATIONS[activation],
        )

    def transpose(self, x: Tensor, *order: int) -> Tensor:
        return self.op("TRANSPOSE", [x, self.const(order, np.int32)], [x.dims[axis] for axis in order])

    def transposed_conv(
        self,
        x: Tensor,
        weights: Array | Tensor,
        bias: Array | None = None,
        *,
        same: bool = True,
        stride: tuple[int, int] = (2, 2),
        activation: str = "none",
        odd: int = 0,
    ) -> Tensor:
        """Adds a TRANSPOSE_CONV with the output size that Keras requests.

        With SAME padding, the output size is reduced by `odd` rows, otherwise it is increased by them.
        """
        sides = zip(x.dims[1:3], stride, weights.shape[1:3], strict=True)
        height, width = (n * s if same else (n - 1) * s + k for n, s, k in sides)
        shape = (x.dims[0], height - odd if same else height + odd, width, weights.shape[0])
        asked = self.const(shape, np.int32) if shape[0] > 0 else self._asked_shape(x, shape[1:])
        kernel = weights if isinstance(weights, Tensor) else self.const(weights)
        return self.op(
            "TRANSPOSE_CONV",
            [asked, kernel, x, None if bias is None else self.const(bias)],
            shape,
            version=4,
            padding=Padding.SAME if same else Padding.VALID,
            stride_h=stride[0],
            stride_w=stride[1],
            fused_activation_function=ACTIVATIONS[activation],
        )

    def _asked_shape(self, x: Tensor, sizes: Sequence[int]) -> Tensor:
        """Adds ops that compute a shape: the batch size of `x`, which is known only at run time, and then fixed
        sizes."""
        whole = self.op("SHAPE", [x], [len(x.dims)], type="INT32", table="ShapeOptions", out_type=2)
        bounds = [self.const([place], np.int32) for place in (0, 1, 1)]
        batch = self.op("STRIDED_SLICE", [whole, *bounds], [], type="INT32", shrink_axis_mask=1)
        numbers = [self.const(size, np.int32) for size in sizes]
        shape = [1 + len(sizes)]
        return self.op("PACK", [batch, *numbers], shape, type="INT32", axis=0, values_count=shape[0])

    def depthwise_conv(
        self,
        x: Tensor,
        weights: Tensor | Array,
        bias: Array,
        *,
        same: bool = True,
        stride: int = 1,
        activation: str = "none",
    ) -> Tensor:
        """Adds a DEPTHWISE_CONV_2D with weights [1, height, width, channels_out]."""
        kernel = weights if isinstance(weights, Tensor) else self.const(weights)
        sizes = [window(s, k, stride, 1, same) for s, k in zip(x.dims[1:3], weights.shape[1:3], strict=True)]
        channels = weights.shape[3]
        return self.op(
            "DEPTHWISE_CONV_2D",
            [x, kernel, self.const(bias)],
            (x.dims[0], *sizes, channels),
            padding=Padding.SAME if same else Padding.VALID,
            stride_h=stride,
            stride_w=stride,
            depth_multiplier=channels // x.channels,
            fused_activation_function=ACTIVATIONS[activation],
        )

    def dense(
        self, x: Tensor, weights: Tensor | Array, bias: Array | None = None, *, activation: str = "none"
    ) -> Tensor:
        kernel = weights if isinstance(weights, Tensor) else self.const(weights)
        inputs = [x, kernel, None if bias is None else self.const(bias)]
        fused = ACTIVATIONS[activation]
        return self.op("FULLY_CONNECTED", inputs, (x.dims[0], weights.shape[0]), fused_activation_function=fused)

    def max_pool(self, x: Tensor, taps: int, stride: int, *, same: bool = False, activation: str = "none") -> Tensor:
        sizes = [window(size, taps, stride, 1, same) for size in x.dims[1:3]]
        return self.op(
            "MAX_POOL_2D",
            [x],
            (x.dims[0], *sizes, x.dims[3]),
            padding=Padding.SAME if same else Padding.VALID,
            stride_h=stride,
            stride_w=stride,
            filter_height=taps,
            filter_width=taps,
            fused_activation_function=ACTIVATIONS[activation],
        )

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        return self.op("RESHAPE", [x, self.const(shape, np.int32)], shape, new_shape=np.asarray(shape, np.int32))

    def lstm(self, x: Tensor, units: int, seed: int = 0) -> Tensor:
        """Adds a UNIDIRECTIONAL_SEQUENCE_LSTM [batch, time, units] with random weights, as TensorFlow writes it: the
        state and the cell are variables.
        """
        rng = np.random.default_rng(seed)
        inputs = [self.const(rng.normal(0, 0.3, (units, x.channels))) for _ in range(4)]
        recurrent = [self.const(rng.normal(0, 0.3, (units, units))) for _ in range(4)]
        biases = [self.const(np.ones(units)) for _ in range(4)]
        shape = (x.shape[0], units)
        state = [Tensor(self._name(name), "FLOAT32", shape, is_variable=True) for name in ("state", "cell")]
        operands = [x, *inputs, *recurrent, None, None, None, *biases, None, None, *state, None, None, None, None]
        return self.op(
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            operands,
            (*x.shape[:2], units),
            table="UnidirectionalSequenceLSTMOptions",
            fused_activation_function=4,
            cell_clip=10.0,
        )

    def model(self, *outputs: Tensor) -> Model:
        graph = self.graph
        graph.outputs = list(outputs)
        graph.pinned.update(graph.inputs, outputs)
        names = [[(tensor.name, tensor) for tensor in tensors] for tensors in (graph.inputs, outputs)]
        signature = Signature("serving_default", graph, *names)
        return Model([graph], [], [], [], None, [signature], 3, "test")

    def finish(self, *outputs: Tensor) -> bytes:
        """Returns the .tflite file."""
        return write_model(self.model(*outputs))


def any_size_model(channels: int = 32, stride: int = 1, sizes: tuple[int, int] = (-1, -1)) -> bytes:
    """A float model of images of any height and width (-1). One of its layers has no padding, and so no output for the
    size 1, which the file has for an unknown size.
    """
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.input(1, *(max(size, 1) for size in sizes), 3, signature=(-1, *sizes, 3))
    x = model.conv(x, rng.standard_normal((channels, 3, 3, 3)), same=True)
    x = model.conv(model.sign(x), sign_weights(rng, 32, 3, 3, channels), stride=(stride, stride))
    x = model.max_pool(x, 2, 2, same=True)
    return model.finish(model.conv(model.sign(x), sign_weights(rng, 8, 3, 3, 32), same=True))


def recurrent_model(steps: int = 3) -> bytes:
    """A binary layer and an LSTM, from [1, steps, 32] to [1, 4]; the state of the LSTM is in variables."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    image = model.reshape(model.sign(model.input(1, steps, 32)), 1, 1, steps, 32)
    convolved = model.conv(image, sign_weights(rng, 32, 1, 3, 32, alpha=False) * np.float32(1 / 16), same=True)
    states = model.lstm(model.reshape(convolved, 1, steps, 32), 4)
    bounds = [model.const(each, np.int32) for each in ((0, steps - 1, 0), (1, steps, 4), (1, 1, 1))]
    last = model.op("STRIDED_SLICE", [states, *bounds], (1, 1, 4))
    return model.finish(model.reshape(last, 1, 4))


def counting_model() -> bytes:
    """Adds the number of the run, 1 to begin with, to [1, 4], and packs the signs of that. TensorFlow writes the state
    of a stateful layer so: a resource, which a second subgraph initializes.
    """
    model, first = FloatModel(), FloatModel()
    options = {"table": "VarHandleOptions", "container": b"", "shared_name": b"count"}
    handle = first.op("VAR_HANDLE", [], (), type="RESOURCE", **options)
    first.graph.insert(Op(OpCode("ASSIGN_VARIABLE", "", 1), [handle, first.const([0.0])], [], Options()))
    call = Options(table="CallOnceOptions", init_subgraph_index=1)
    model.graph.insert(Op(OpCode("CALL_ONCE", "", 1), [], [], call))
    x = model.input(1, 4)
    handle = model.op("VAR_HANDLE", [], (), type="RESOURCE", **options)
    count = model.elementwise("ADD", model.op("READ_VARIABLE", [handle], (1,)), model.const([1.0]))
    model.graph.insert(Op(OpCode("ASSIGN_VARIABLE", "", 1), [handle, count], [], Options()))
    counted = model.model(model.elementwise("ADD", x, count))
    counted.graphs.append(first.graph)
    return write_model(counted)


def window(size: int, taps: int, stride: int, dilation: int, same: bool) -> int:
    """The output size of a sliding window; -1 if the input size is unknown."""
    if size < 0:
        return -1
    return -(-size // stride) if same else (size - (taps - 1) * dilation - 1) // stride + 1


def sign_weights(rng: np.random.Generator, *shape: int, alpha: bool = True) -> Array:
    """Weights of ±alpha [O, ...], with a power of two as alpha for each output channel."""
    signs = rng.choice([-1.0, 1.0], shape)
    scale = 2.0 ** rng.integers(-2, 2, shape[0]) if alpha else np.ones(shape[0])
    return (signs * scale.reshape(-1, *[1] * (len(shape) - 1))).astype(np.float32)


def dyadic(rng: np.random.Generator, *shape: int, largest: int = 64, step: float = 1 / 8) -> Array:
    """Random multiples of `step`, including zero."""
    return (rng.integers(-largest, largest + 1, shape) * step).astype(np.float32)


def sums_of_tenths(model: FloatModel, rng: np.random.Generator, x: Tensor, channels: int) -> Tensor:
    """Adds a convolution with weights of ±0.1, whose float sums differ from exact sums by rounding."""
    return model.conv(x, np.float32(0.1) * sign_weights(rng, channels, 3, 3, x.channels, alpha=False))


def sums_near_zero(channels: int, size: int, seed: int, channels_first: bool = False) -> tuple[bytes, str, Array]:
    """A model in which some sums of terms ±0.1 are exactly zero, but a rounding error away from zero in floats.

    Args:
        channels_first: True to put the bias and the sign between two transposes.

    Returns:
        The file, the name of the tensor with the signs of all sums, and samples. Each sample gives sums that are zero.
    """
    rng = np.random.default_rng(seed)
    model = FloatModel()
    x = sums_of_tenths(model, rng, model.sign(model.input(1, size, size, channels)), channels)
    # Each bias is 0.1 times -16, -8, 8 or 16, and cancels one possible dot product, so that the exact sum is zero. The
    # bias has no rounding error of its own, because 8 and 16 are powers of two.
    bias = np.float32(0.1) * rng.choice([-16, -8, 8, 16], channels)
    if channels_first:
        sign = model.sign(model.elementwise("ADD", model.transpose(x, 0, 3, 1, 2), model.const(bias.reshape(-1, 1, 1))))
        signs = model.transpose(sign, 0, 2, 3, 1)
    else:
        sign = signs = model.sign(model.elementwise("ADD", x, model.const(bias)))
    output = model.conv(signs, sign_weights(rng, 8, 3, 3, channels))
    samples = rng.standard_normal((4, size, size, channels)).astype(np.float32)
    return model.finish(output), sign.name, samples


def op_names(model: bytes | Model) -> list[str]:
    """The ops of a model's first subgraph, in order of execution."""
    return [op.name for op in (read_model(model) if isinstance(model, bytes) else model).graphs[0].ops]


def with_changed(
    model: bytes, names: Collection[str], index: int, change: Callable[[Array], Any], at: int = 0
) -> bytes:
    """The model with new values in the constant input `index` of an op. The op is number `at` among the ops of the
    kinds `names`, by default the first.
    """
    read = read_model(model)
    tensor = [op for op in read.ops() if op.name in names][at].input(index)
    assert tensor.array is not None
    tensor.buffer.data = np.atleast_1d(np.asarray(change(tensor.array), tensor.array.dtype)).view(np.uint8)
    return write_model(read)


def run_pass(one: Any, model: Model) -> tuple[bool, list[str]]:
    """Runs a rule once; returns its result and the names of the remaining ops."""
    changed = _run(one, model.graphs[0], Notes(model))
    return changed, op_names(model)


def _run(one: Any, graph: Graph, notes: Notes) -> bool:
    """Runs a rule. Checks that the rule returns True exactly if it has changed the graph."""
    before = _ops(graph)
    changed = bool(one(graph, notes))
    assert changed == (_ops(graph) != before), one.__name__
    return changed


def _ops(graph: Graph) -> list[Any]:
    """A summary of a graph's ops. If a rule changes the graph, the summary changes."""
    return [
        (
            *(op.code, [*op.inputs], str(op.options), op.custom_options),
            [(tensor, tensor.type, tensor.dims) for tensor in op.outputs],
        )
        for op in graph.ops
    ]


def binarized(model: FloatModel | Model, *outputs: Tensor) -> tuple[Model, Notes]:
    """Applies the rules of all binary phases to a model, with these outputs; returns it and the notes."""
    built = model.model(*outputs) if isinstance(model, FloatModel) else model
    notes = Notes(built)
    run_phases(built, BINARY_PHASES, notes)
    return built, notes


def rewritten(source: bytes, *passes: Any) -> Model:
    """The model after each rule in `passes` has run once, in that order."""
    model = read_model(source)
    notes = Notes(model)
    for one in passes:
        _run(one, model.graphs[0], notes)
    return model


def assert_same_values(source: bytes, result: Model) -> None:
    """Checks that two models give the same bits for random inputs; needs the fixture `library`."""
    rng = np.random.default_rng(0)
    inputs = [_random(rng, tensor) for tensor in read_model(source).graphs[0].inputs]
    expected, actual = (litebnn.Interpreter(model).predict(inputs) for model in (source, write_model(result)))
    for left, right in zip(_listed(expected), _listed(actual), strict=True):
        np.testing.assert_array_equal(right, left)


def _random(rng: np.random.Generator, tensor: Tensor) -> Array:
    if tensor.type == "FLOAT32":
        return dyadic(rng, *tensor.shape)
    return rng.integers(-128, 128, tensor.shape).astype(np.int8)


def _listed(result: Any) -> list[Array]:
    return result if isinstance(result, list) else [result]
