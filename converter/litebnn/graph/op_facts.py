"""Facts about each kind of builtin op. Validation and rules use no other table.

The converter does not know what other kinds of ops do, so it leaves such ops unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from litebnn.contract import ACTIVATION_RANGES, Activation
from litebnn.graph.graph import Op

MANY = 1 << 31


@dataclass(frozen=True)
class Int8:
    """Facts about the int8 form of an op (https://ai.google.dev/edge/litert/models/quantization_spec)."""

    # The first operator version that supports int8.
    version: int
    # The axis along which weights have a scale for each channel; -1 for a single scale.
    weights_axis: int | None = None
    # True if input and output share scale and zero point.
    same_parameters: bool = False
    # The fixed scale and zero point of the output, if the kind of op requires them.
    result: tuple[float, int] | None = None


@dataclass(frozen=True)
class Facts:
    """The facts about one kind of op."""

    # The minimum and the maximum number of inputs; `most` is 0 if the maximum is unknown.
    least: int = 0
    most: int = 0
    # The format's name for the table of the op's options; "" if the op has no options.
    options: str = ""
    # Options that new ops get. They are needed if the format has no default for an option, or if rules read the option.
    defaults: Mapping[str, Any] = field(default_factory=dict)
    # True if the runtime requires that the op has options.
    needs_options: bool = False
    # For each input, the kinds of allowed element types, as NumPy names them ("?" for types that NumPy lacks); "" if
    # all are allowed.
    kinds: tuple[str, ...] = ()
    # The number of dimensions of each input (`ranks`) and of the output (`rank`); 0 for any.
    ranks: tuple[int, ...] = ()
    rank: int = 0
    # The kind of layer in reports; "" if the op is no layer with trained weights.
    layer: str = ""
    # The indices of a layer's inputs: its data, its weights and its bias.
    data: int = 0
    constants: tuple[int, ...] = ()
    # The facts about the op's int8 form, if they are known.
    int8: Int8 | None = None
    # The fused activation with the same effect, if the op is an activation.
    clamp: Activation | None = None
    # The limits of a clamp that is no fused activation.
    limits: tuple[float, float] | None = None
    # True if the op keeps the sign of every value, whatever its options are.
    keeps_signs: bool = False
    # True if the op only moves or selects values, so that its int8 form is exact.
    moves: bool = False
    # True if the op keeps the elements in order, as a reshape does.
    reshapes: bool = False
    # True if the rules know the op's effect on packed signs.
    on_signs: bool = False
    # True if the op does more than compute its outputs, or uses state or other subgraphs.
    effects: bool = False
    # The largest number of outputs that the op may have. The field has no meaning if `most` is 0, which stands for an
    # unknown number of inputs.
    most_outputs: int = 1

    @property
    def clamp_limits(self) -> tuple[float, float] | None:
        """The least and the greatest output of an op that only clamps its input; None for other ops."""
        return self.limits if self.clamp is None else ACTIVATION_RANGES[self.clamp]


_CONV = {"stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
_POOL = {"stride_h": 1, "stride_w": 1, "filter_height": 1, "filter_width": 1}
_DENSE = {"fused_activation_function": Activation.NONE, "weights_format": 0}
_MATMUL = {"adj_x": False, "adj_y": False}
_NUMBER, _NUMBERS, _BOOL = ("fiuc?",), ("fiuc?", "fiuc?"), ("b",)
_INDEX, _INDICES = ("", "iu"), ("", "iu", "iu")
_LAYER = partial(Facts, needs_options=True, constants=(1, 2))
_SAME_GRID = partial(Int8, same_parameters=True)
_RESHAPE = partial(Facts, int8=_SAME_GRID(1), moves=True, reshapes=True, on_signs=True)
_WITH_EFFECTS = """ASSIGN_VARIABLE CALL CALL_ONCE CUSTOM DELEGATE HASHTABLE HASHTABLE_IMPORT IF MULTINOMIAL
    RANDOM_STANDARD_NORMAL RANDOM_UNIFORM READ_VARIABLE STABLEHLO_CASE STABLEHLO_COMPOSITE STABLEHLO_CUSTOM_CALL
    STABLEHLO_WHILE VAR_HANDLE WHILE"""

FACTS: dict[str, Facts] = {
    "CONV_2D": _LAYER(2, 3, "Conv2DOptions", _CONV, ranks=(4, 4), rank=4, layer="conv", int8=Int8(3, 0), on_signs=True),
    "DEPTHWISE_CONV_2D": _LAYER(
        *(2, 3, "DepthwiseConv2DOptions", _CONV), ranks=(4, 4), rank=4, layer="depthwise conv", int8=Int8(3, 3)
    ),
    "FULLY_CONNECTED": _LAYER(
        *(2, 3, "FullyConnectedOptions", _DENSE), ranks=(0, 2), layer="dense", int8=Int8(4, -1), on_signs=True
    ),
    "BATCH_MATMUL": _LAYER(2, 2, "BatchMatMulOptions", _MATMUL, layer="matmul", constants=(1,)),
    "TRANSPOSE_CONV": Facts(
        *(3, 4, "TransposeConvOptions"),
        needs_options=True,
        ranks=(1, 4, 4),
        rank=4,
        layer="transposed conv",
        data=2,
        constants=(1, 3),
        int8=Int8(4, 0),  # version 2 has neither a bias nor an activation
    ),
    "CONV_3D": Facts(2, 3, "Conv3DOptions", ranks=(5, 5), rank=5, layer="conv 3d", constants=(1, 2)),
    "ADD": Facts(2, 2, "AddOptions", kinds=_NUMBERS, int8=Int8(2)),
    "SUB": Facts(2, 2, "SubOptions", kinds=_NUMBERS, int8=Int8(3)),
    "MUL": Facts(2, 2, "MulOptions", kinds=_NUMBERS, int8=Int8(2)),
    "DIV": Facts(2, 2, "DivOptions", kinds=_NUMBERS),
    "FLOOR_DIV": Facts(2, 2, "FloorDivOptions", kinds=_NUMBERS),
    "MAXIMUM": Facts(2, 2, "MaximumMinimumOptions", kinds=_NUMBERS),
    "MINIMUM": Facts(2, 2, "MaximumMinimumOptions", kinds=_NUMBERS),
    "NEG": Facts(1, 1, "NegOptions", kinds=_NUMBER),
    "ABS": Facts(1, 1, "AbsOptions", kinds=_NUMBER),
    "SIGN": Facts(1, 1, "SignOptions", kinds=_NUMBER),
    "CAST": Facts(1, 1, "CastOptions"),
    "SQUARE": Facts(1, 1, "SquareOptions", kinds=_NUMBER),
    "EXP": Facts(1, 1, "ExpOptions", kinds=_NUMBER),
    **dict.fromkeys(("CEIL", "FLOOR", "ROUND", "RSQRT", "SQRT"), Facts(1, 1, kinds=_NUMBER)),
    "EQUAL": Facts(2, 2, "EqualOptions"),
    "NOT_EQUAL": Facts(2, 2, "NotEqualOptions"),
    "GREATER_EQUAL": Facts(2, 2, "GreaterEqualOptions", kinds=_NUMBERS),
    "GREATER": Facts(2, 2, "GreaterOptions", kinds=_NUMBERS),
    "LESS_EQUAL": Facts(2, 2, "LessEqualOptions", kinds=_NUMBERS),
    "LESS": Facts(2, 2, "LessOptions", kinds=_NUMBERS),
    "LOGICAL_AND": Facts(2, 2, "LogicalAndOptions", kinds=("b", "b")),
    "LOGICAL_OR": Facts(2, 2, "LogicalOrOptions", kinds=("b", "b")),
    "LOGICAL_NOT": Facts(1, 1, "LogicalNotOptions", kinds=_BOOL),
    "SELECT": Facts(3, 3, "SelectOptions", kinds=_BOOL),
    "SELECT_V2": Facts(3, 3, "SelectV2Options", kinds=_BOOL),
    "RELU": Facts(1, 1, int8=Int8(2), clamp=Activation.RELU),
    "RELU6": Facts(1, 1, int8=Int8(2), clamp=Activation.RELU6),
    "RELU_N1_TO_1": Facts(1, 1, int8=Int8(1), clamp=Activation.RELU_N1_TO_1, keeps_signs=True),
    "RELU_0_TO_1": Facts(1, 1, limits=(0.0, 1.0)),
    "LEAKY_RELU": Facts(1, 1, "LeakyReluOptions", int8=Int8(2)),
    "PRELU": Facts(2, 2),
    "POW": Facts(2, 2, "PowOptions", kinds=_NUMBERS),
    "ELU": Facts(1, 1, keeps_signs=True),
    "TANH": Facts(1, 1, int8=Int8(2, result=(1 / 128, 0)), keeps_signs=True),
    "LOGISTIC": Facts(1, 1, int8=Int8(2, result=(1 / 256, -128))),
    "SOFTMAX": Facts(1, 1, "SoftmaxOptions", int8=Int8(2, result=(1 / 256, -128))),
    "HARD_SWISH": Facts(1, 1, "HardSwishOptions", int8=Int8(1)),
    "MAX_POOL_2D": Facts(
        *(1, 1, "Pool2DOptions", _POOL, True), ranks=(4,), rank=4, int8=_SAME_GRID(2), moves=True, on_signs=True
    ),
    "AVERAGE_POOL_2D": Facts(1, 1, "Pool2DOptions", _POOL, ranks=(4,), rank=4, int8=_SAME_GRID(2)),
    "MEAN": Facts(2, 2, "ReducerOptions", {"keep_dims": False}, True, kinds=_INDEX, int8=Int8(2)),
    **dict.fromkeys(
        ("REDUCE_MAX", "REDUCE_MIN", "SUM"), Facts(2, 2, "ReducerOptions", {"keep_dims": False}, True, kinds=_INDEX)
    ),
    "RESHAPE": _RESHAPE(1, 2, "ReshapeOptions", kinds=_INDEX),
    "SQUEEZE": _RESHAPE(1, 1, "SqueezeOptions"),
    "EXPAND_DIMS": _RESHAPE(2, 2, "ExpandDimsOptions", kinds=_INDEX),
    "BROADCAST_TO": Facts(2, 2, "BroadcastToOptions", kinds=_INDEX),
    "FILL": Facts(2, 2, "FillOptions"),
    "TILE": Facts(2, 2, "TileOptions", kinds=_INDEX),
    "TRANSPOSE": Facts(2, 2, "TransposeOptions", kinds=_INDEX, int8=_SAME_GRID(2), moves=True),
    "STRIDED_SLICE": Facts(4, 4, "StridedSliceOptions", kinds=(*_INDICES, "iu"), int8=_SAME_GRID(2), moves=True),
    "DEPTH_TO_SPACE": Facts(1, 1, "DepthToSpaceOptions", int8=_SAME_GRID(1), moves=True),
    "SPACE_TO_DEPTH": Facts(1, 1, "SpaceToDepthOptions", int8=_SAME_GRID(2), moves=True),
    "PAD": Facts(2, 2, "PadOptions", kinds=_INDEX, ranks=(0, 2), int8=_SAME_GRID(2), on_signs=True),
    "PADV2": Facts(3, 3, "PadV2Options", kinds=_INDEX, ranks=(0, 2), on_signs=True),
    "MIRROR_PAD": Facts(2, 2, "MirrorPadOptions", kinds=_INDEX, ranks=(0, 2)),
    "SLICE": Facts(3, 3, "SliceOptions", kinds=_INDICES),
    "GATHER": Facts(2, 2, "GatherOptions", kinds=_INDEX),
    "GATHER_ND": Facts(2, 2, "GatherNdOptions", kinds=_INDEX),
    "REVERSE_V2": Facts(2, 2, "ReverseV2Options", kinds=_INDEX),
    "PACK": Facts(1, MANY, "PackOptions"),
    "SPLIT": Facts(2, 2, "SplitOptions", kinds=("iu",), most_outputs=MANY),
    "SPACE_TO_BATCH_ND": Facts(3, 3, "SpaceToBatchNDOptions", kinds=_INDICES, ranks=(0, 1, 2), on_signs=True),
    "BATCH_TO_SPACE_ND": Facts(3, 3, "BatchToSpaceNDOptions", kinds=_INDICES, ranks=(0, 1, 2)),
    "CONCATENATION": Facts(1, MANY, "ConcatenationOptions", needs_options=True, int8=_SAME_GRID(2)),
    "RESIZE_BILINEAR": Facts(2, 2, "ResizeBilinearOptions", kinds=_INDEX, int8=_SAME_GRID(2)),
    "RESIZE_NEAREST_NEIGHBOR": Facts(2, 2, "ResizeNearestNeighborOptions", kinds=_INDEX, int8=_SAME_GRID(2)),
    "QUANTIZE": Facts(1, 1, "QuantizeOptions"),
    "DEQUANTIZE": Facts(1, 1, "DequantizeOptions"),
    **dict.fromkeys(_WITH_EFFECTS.split(), Facts(effects=True)),
}
_UNKNOWN = Facts()


def facts(op: Op) -> Facts:
    """Returns the facts that hold for all ops of the same kind as `op`."""
    return FACTS.get(op.code.builtin, _UNKNOWN)
