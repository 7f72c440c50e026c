"""What holds for every builtin op of one kind: the one table that validation and passes look things up in.

A kind of op that is not in the table may do anything: it is carried along as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from litebnn.contract import Activation
from litebnn.graph.graph import Op, OpCode, Options, Tensor

MANY = 1 << 31


@dataclass(frozen=True)
class Int8:
    """How an op is computed in int8 (https://ai.google.dev/edge/litert/models/quantization_spec)."""

    version: int  # of the operator that knows int8
    weights_axis: int | None = None  # one scale for each channel along it; -1 for one scale in all
    same_parameters: bool = False  # input and output share scale and zero point
    result: tuple[float, int] | None = None  # scale and zero point that the output must have


@dataclass(frozen=True)
class Facts:
    """The facts about one kind of op.

    Attributes:
        inputs: how many inputs there must be at least and at most; None where nothing is known of them. An op of which
            this is known has one output.
        kinds: which NumPy kinds of element types each input may have ("?" for types that NumPy lacks), "" for all.
        ranks: how many dimensions each input has, 0 for any number; `rank` the same of the output.
        options: the format's name for the table of its options, "" where it has none.
        needs_options: the runtime does not do without them.
        defaults: options of a new op, where the format has no default or the passes read it.
        layer: what the report calls it, where it is a layer with trained weights.
        data, constants: which input holds the data of a layer, and which its weights and bias.
        int8: how it is computed in int8, where that is known.
        clamp: the fused activation that does the same.
        keeps_signs: the sign of every value stays, whatever the options.
        moves: values are only moved or picked from, so that int8 comes out the same as float.
        reshapes: the elements stay in order.
        on_signs: the passes know what it does to packed signs.
        effects: it does more than compute its outputs, or refers to state or to other subgraphs.
    """

    inputs: tuple[int, int] | None = None
    kinds: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    rank: int = 0
    options: str = ""
    needs_options: bool = False
    defaults: dict[str, Any] = field(default_factory=dict)
    layer: str = ""
    data: int = 0
    constants: tuple[int, ...] = ()
    int8: Int8 | None = None
    clamp: Activation | None = None
    keeps_signs: bool = False
    moves: bool = False
    reshapes: bool = False
    on_signs: bool = False
    effects: bool = False


# Options that must be at least 1 wherever they occur.
POSITIVE_OPTIONS = (
    *("stride_d", "stride_h", "stride_w", "filter_height", "filter_width"),
    *("dilation_d_factor", "dilation_h_factor", "dilation_w_factor"),
)
_STRIDES = {"stride_h": 1, "stride_w": 1}
_DILATIONS = {"dilation_h_factor": 1, "dilation_w_factor": 1}
_ONE, _TWO, _THREE = (1, 1), (2, 2), (3, 3)
_NUMBER, _INDEX, _BOOL = "fiuc?", "iu", "b"
_NUMBERS = (_NUMBER, _NUMBER)
_SAME_GRID = {version: Int8(version, same_parameters=True) for version in (1, 2)}


def _arithmetic(options: str, int8_version: int = 0) -> Facts:
    return Facts(_TWO, _NUMBERS, options=options, int8=Int8(int8_version) if int8_version else None)


FACTS: dict[str, Facts] = {
    "CONV_2D": Facts(
        (2, 3),
        ranks=(4, 4),
        rank=4,
        options="Conv2DOptions",
        needs_options=True,
        defaults=_STRIDES | _DILATIONS,
        layer="conv",
        constants=(1, 2),
        int8=Int8(3, weights_axis=0),
        on_signs=True,
    ),
    "DEPTHWISE_CONV_2D": Facts(
        (2, 3),
        ranks=(4, 4),
        rank=4,
        options="DepthwiseConv2DOptions",
        needs_options=True,
        defaults=_STRIDES | _DILATIONS | {"depth_multiplier": 1},
        layer="depthwise conv",
        constants=(1, 2),
        int8=Int8(3, weights_axis=3),
    ),
    "FULLY_CONNECTED": Facts(
        (2, 3),
        ranks=(0, 2),
        options="FullyConnectedOptions",
        needs_options=True,
        defaults={"fused_activation_function": Activation.NONE, "weights_format": 0},
        layer="dense",
        constants=(1, 2),
        int8=Int8(4, weights_axis=-1),
        on_signs=True,
    ),
    "BATCH_MATMUL": Facts(
        _TWO,
        options="BatchMatMulOptions",
        needs_options=True,
        defaults={"adj_x": False, "adj_y": False},
        layer="matmul",
        constants=(1,),
    ),
    "TRANSPOSE_CONV": Facts(
        (3, 4),
        (_INDEX,),
        ranks=(1, 4, 4),
        rank=4,
        options="TransposeConvOptions",
        layer="transposed conv",
        data=2,
        constants=(1, 3),
    ),
    "CONV_3D": Facts((2, 3), ranks=(5, 5), rank=5, options="Conv3DOptions", layer="conv 3d", constants=(1, 2)),
    # arithmetic, element by element
    "ADD": _arithmetic("AddOptions", 2),
    "SUB": _arithmetic("SubOptions", 3),
    "MUL": _arithmetic("MulOptions", 2),
    "DIV": _arithmetic("DivOptions"),
    "MAXIMUM": _arithmetic("MaximumMinimumOptions"),
    "MINIMUM": _arithmetic("MaximumMinimumOptions"),
    "NEG": Facts(_ONE, (_NUMBER,), options="NegOptions"),
    "ABS": Facts(_ONE, (_NUMBER,), options="AbsOptions"),
    "SIGN": Facts(_ONE, (_NUMBER,), options="SignOptions"),
    "CAST": Facts(_ONE, options="CastOptions"),
    # truth
    "EQUAL": Facts(_TWO, options="EqualOptions"),
    "GREATER_EQUAL": Facts(_TWO, _NUMBERS, options="GreaterEqualOptions"),
    "GREATER": Facts(_TWO, _NUMBERS, options="GreaterOptions"),
    "LESS_EQUAL": Facts(_TWO, _NUMBERS, options="LessEqualOptions"),
    "LESS": Facts(_TWO, _NUMBERS, options="LessOptions"),
    "LOGICAL_NOT": Facts(_ONE, (_BOOL,), options="LogicalNotOptions"),
    "SELECT": Facts(_THREE, (_BOOL,), options="SelectOptions"),
    "SELECT_V2": Facts(_THREE, (_BOOL,), options="SelectV2Options"),
    # activations
    "RELU": Facts(_ONE, int8=Int8(2), clamp=Activation.RELU),
    "RELU6": Facts(_ONE, int8=Int8(2), clamp=Activation.RELU6),
    "RELU_N1_TO_1": Facts(_ONE, int8=Int8(1), clamp=Activation.RELU_N1_TO_1, keeps_signs=True),
    "LEAKY_RELU": Facts(_ONE, options="LeakyReluOptions", int8=Int8(2)),
    "PRELU": Facts(_TWO),
    "ELU": Facts(_ONE, keeps_signs=True),
    "TANH": Facts(_ONE, int8=Int8(2, result=(1 / 128, 0)), keeps_signs=True),
    "LOGISTIC": Facts(_ONE, int8=Int8(2, result=(1 / 256, -128))),
    "SOFTMAX": Facts(_ONE, options="SoftmaxOptions", int8=Int8(2, result=(1 / 256, -128))),
    "HARD_SWISH": Facts(_ONE, options="HardSwishOptions", int8=Int8(1)),
    # windows and reductions
    "MAX_POOL_2D": Facts(
        _ONE,
        ranks=(4,),
        rank=4,
        options="Pool2DOptions",
        needs_options=True,
        defaults=_STRIDES | {"filter_height": 1, "filter_width": 1},
        int8=_SAME_GRID[2],
        moves=True,
        on_signs=True,
    ),
    "AVERAGE_POOL_2D": Facts(_ONE, ranks=(4,), rank=4, options="Pool2DOptions", int8=_SAME_GRID[2]),
    "MEAN": Facts(_TWO, ("", _INDEX), options="ReducerOptions", needs_options=True, int8=Int8(2)),
    # shapes
    "RESHAPE": Facts(
        (1, 2),
        ("", _INDEX),
        options="ReshapeOptions",
        int8=_SAME_GRID[1],
        moves=True,
        reshapes=True,
        on_signs=True,
    ),
    "SQUEEZE": Facts(_ONE, options="SqueezeOptions", int8=_SAME_GRID[1], moves=True, reshapes=True, on_signs=True),
    "EXPAND_DIMS": Facts(
        _TWO,
        ("", _INDEX),
        options="ExpandDimsOptions",
        int8=_SAME_GRID[1],
        moves=True,
        reshapes=True,
        on_signs=True,
    ),
    "TRANSPOSE": Facts(_TWO, ("", _INDEX), options="TransposeOptions", int8=_SAME_GRID[2], moves=True),
    "STRIDED_SLICE": Facts(
        (4, 4), ("", _INDEX, _INDEX, _INDEX), options="StridedSliceOptions", int8=_SAME_GRID[2], moves=True
    ),
    "DEPTH_TO_SPACE": Facts(_ONE, options="DepthToSpaceOptions", int8=_SAME_GRID[1], moves=True),
    "SPACE_TO_DEPTH": Facts(_ONE, options="SpaceToDepthOptions", int8=_SAME_GRID[2], moves=True),
    "PAD": Facts(_TWO, ("", _INDEX), ranks=(0, 2), options="PadOptions", int8=_SAME_GRID[2], on_signs=True),
    "PADV2": Facts(_THREE, ("", _INDEX), ranks=(0, 2), options="PadV2Options", on_signs=True),
    "SPACE_TO_BATCH_ND": Facts(
        _THREE, ("", _INDEX, _INDEX), ranks=(0, 1, 2), options="SpaceToBatchNDOptions", on_signs=True
    ),
    "BATCH_TO_SPACE_ND": Facts(_THREE, ("", _INDEX, _INDEX), ranks=(0, 1, 2), options="BatchToSpaceNDOptions"),
    "CONCATENATION": Facts((1, MANY), options="ConcatenationOptions", int8=_SAME_GRID[2]),
    "RESIZE_BILINEAR": Facts(_TWO, ("", _INDEX), options="ResizeBilinearOptions", int8=_SAME_GRID[2]),
    "RESIZE_NEAREST_NEIGHBOR": Facts(_TWO, ("", _INDEX), options="ResizeNearestNeighborOptions", int8=_SAME_GRID[2]),
    # number formats
    "QUANTIZE": Facts(_ONE, options="QuantizeOptions"),
    "DEQUANTIZE": Facts(_ONE, options="DequantizeOptions"),
    **dict.fromkeys(
        ("ASSIGN_VARIABLE", "CALL", "CALL_ONCE", "CUSTOM", "DELEGATE", "HASHTABLE", "HASHTABLE_IMPORT", "IF"),
        Facts(effects=True),
    ),
    **dict.fromkeys(
        ("MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "READ_VARIABLE", "VAR_HANDLE", "WHILE"),
        Facts(effects=True),
    ),
    **dict.fromkeys(
        ("STABLEHLO_CASE", "STABLEHLO_COMPOSITE", "STABLEHLO_CUSTOM_CALL", "STABLEHLO_WHILE"), Facts(effects=True)
    ),
}
_UNKNOWN = Facts()


def facts(op: Op) -> Facts:
    """The facts about the op's kind."""
    return FACTS.get(op.code.builtin, _UNKNOWN)


def builtin_op(name: str, inputs: Iterable[Tensor | None], output: Tensor, *, version: int = 1, **options: Any) -> Op:
    """A new builtin op with the given options, and with the defaults of the others."""
    known = FACTS[name]
    return Op(
        OpCode(name, "", version), list(inputs), [output], Options(known.options, **{**known.defaults, **options})
    )
