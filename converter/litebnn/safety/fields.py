"""Every field of the .tflite schema: what its numbers refer to, and how the writer treats the field."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np


class Fate(Enum):
    """The way in which the reader and the writer of .tflite files treat a field of the schema."""

    KEPT = "It is written as it was read."
    RENUMBERED = "It stands for an object of the graph, and the writer finds the number that this object has by then."
    REBUILT = "The writer makes it anew: the bytes it counts, or where they lie, change."


@dataclass(frozen=True)
class Field:
    """One field of a table in the .tflite format."""

    # The kind of things, such as tensors, that the field's numbers count or refer to; "" for a plain value.
    holds: str = ""
    fate: Fate = Fate.KEPT
    # The least and the greatest valid number of the field in any model; None if there is no limit.
    least: int | None = None
    most: int | None = None
    # True if -1 means that the field refers to nothing.
    is_optional: bool = False

    def mistake(self, value: Any) -> str:
        """The reason why a value of the field is out of range; "" if it is in range."""
        numbers = [] if value is None or isinstance(value, str | bytes) else [*np.ravel(value)]
        for number in numbers if self.least is not None or self.most is not None else ():
            if self.least is not None and number < self.least:
                return f"is {number}, expected at least {self.least}"
            if self.most is not None and number > self.most:
                return f"is {number}, expected at most {self.most}"
        return ""


# The largest valid value of a field that counts elements, such as a stride or an amount of padding. Runtimes multiply
# such values as int32, so the limit is far below the maximum of int32.
_MOST = 1 << 24

VALUE = Field()
TENSOR = Field("tensors", Fate.RENUMBERED, least=0)
OPTIONAL_TENSOR = Field("tensors", Fate.RENUMBERED, least=-1, is_optional=True)
BUFFER = Field("buffers", Fate.RENUMBERED, least=0)
CODE = Field("operator codes", Fate.RENUMBERED, least=0)
OWNER = Field("subgraphs", Fate.RENUMBERED, least=0)
SUBGRAPH = Field("subgraphs", least=0)
BYTES = Field("bytes of the file", Fate.REBUILT, least=0)
PARTS = Field("parts", Fate.REBUILT)
FOREIGN = Field("bytes of another file", least=0)
EXTERNAL = Field("external buffers", least=0)
GROUP = Field("external buffer groups", least=0)
DEBUG = Field("debug metadata", least=-1, is_optional=True)
INPUTS = Field("inputs of the op")
AXIS = Field("axes")
AXES = Field("axes", least=0, most=63)
SIZE = Field("elements", least=0)
SIZES = Field("elements")
COUNT = Field("elements", least=0, most=_MOST)
STEP = Field("elements", least=1, most=_MOST)
PLACES = Field("elements", least=0)


def _fields(names: str, **others: Field) -> dict[str, Field]:
    """Makes the map from the names of a schema table's fields to their descriptions. `names` are the fields with plain
    values. `others` has the descriptions of all other fields.
    """
    return {**dict.fromkeys(names.split(), VALUE), **others}


_POOL = dict.fromkeys(("stride_w", "stride_h", "filter_width", "filter_height"), STEP)
_CONV = dict.fromkeys(("stride_w", "stride_h", "dilation_w_factor", "dilation_h_factor"), STEP)
_RNN = "fused_activation_function asymmetric_quantize_inputs"
_LSTM = f"{_RNN} cell_clip proj_clip"
_SAME = "padding fused_activation_function"

# The fields of the schema's tables for tensors, subgraphs and files.
_FORMAT: dict[str, dict[str, Field]] = {
    "Model": _fields(
        "version description",
        **dict.fromkeys(("operator_codes", "subgraphs", "buffers", "metadata", "signature_defs"), PARTS),
        metadata_buffer=BUFFER,
        external_buffer_groups=VALUE,
        external_buffers=VALUE,
    ),
    "OperatorCode": _fields("custom_code version builtin_code", deprecated_builtin_code=PARTS),
    "SubGraph": _fields(
        "name", tensors=PARTS, operators=PARTS, inputs=TENSOR, outputs=TENSOR, debug_metadata_index=DEBUG
    ),
    "Tensor": _fields(
        "type name quantization is_variable sparsity has_rank variant_tensors",
        shape=SIZE,
        shape_signature=Field("elements", least=-1),
        buffer=BUFFER,
        external_buffer=EXTERNAL,
    ),
    "Operator": _fields(
        "builtin_options builtin_options2 custom_options custom_options_format",
        builtin_options_type=PARTS,
        builtin_options2_type=PARTS,
        opcode_index=CODE,
        inputs=OPTIONAL_TENSOR,
        outputs=TENSOR,
        intermediates=TENSOR,
        mutating_variable_inputs=INPUTS,
        large_custom_options_offset=BYTES,
        large_custom_options_size=BYTES,
        debug_metadata_index=DEBUG,
    ),
    "Buffer": _fields("data", offset=BYTES, size=BYTES),
    "Metadata": _fields("name", buffer=BUFFER),
    "SignatureDef": _fields("signature_key", inputs=PARTS, outputs=PARTS, subgraph_index=OWNER),
    "TensorMap": _fields("name", tensor_index=TENSOR),
    "ExternalBufferGroup": _fields("name"),
    "ExternalBuffer": _fields("packing", id=EXTERNAL, group=GROUP, offset=FOREIGN, length=FOREIGN),
    "VariantSubType": _fields("type has_rank", shape=SIZES),
    "QuantizationParameters": _fields("min max scale zero_point details_type details", quantized_dimension=AXES),
    "CustomQuantization": _fields("custom"),
    "BlockwiseQuantization": {
        "scales": TENSOR,
        "zero_points": OPTIONAL_TENSOR,
        "block_size": STEP,
        "block_shape": STEP,
    },
    "MultiAxisQuantization": {
        "scales": TENSOR,
        "zero_points": OPTIONAL_TENSOR,
        "block_size": COUNT,
        "quantized_dimensions": AXES,
    },
    "SparsityParameters": _fields("dim_metadata", traversal_order=AXES, block_map=AXES),
    "DimensionMetadata": _fields(
        "format array_segments_type array_segments array_indices_type array_indices", dense_size=COUNT
    ),
    **{f"{kind}Vector": {"values": PLACES} for kind in ("Int32", "Uint16", "Uint8")},
}

# The fields of the options of StableHLO ops, some of which runtimes support.
_STABLEHLO: dict[str, dict[str, Field]] = {
    "StablehloGatherOptions": _fields(
        "indices_are_sorted",
        **dict.fromkeys(("offset_dims", "collapsed_slice_dims", "start_index_map", "index_vector_dim"), AXES),
        slice_sizes=COUNT,
    ),
    "StablehloTransposeOptions": {"permutation": AXES},
    "StablehloDotGeneralOptions": _fields(
        "precision_config",
        **dict.fromkeys(
            (f"{side}_{kind}_dimensions" for side in ("lhs", "rhs") for kind in ("batching", "contracting")), AXES
        ),
    ),
    "StablehloReduceWindowOptions": {
        **dict.fromkeys(("window_dimensions", "window_strides", "base_dilations", "window_dilations"), STEP),
        "padding": COUNT,
        "body_subgraph_index": SUBGRAPH,
    },
    "StablehloWhileOptions": {"cond_subgraph_index": SUBGRAPH, "body_subgraph_index": SUBGRAPH},
    "StablehloSortOptions": _fields("is_stable", dimension=AXES, comparator_subgraph_index=SUBGRAPH),
    "StablehloConcatenateOptions": {"dimension": AXES},
    "StablehloBroadcastInDimOptions": {"broadcast_dimensions": AXES},
    "StablehloCompareOptions": _fields("comparison_direction compare_type"),
    "StablehloDynamicSliceOptions": {"slice_sizes": COUNT},
    "StablehloPadOptions": {
        "edge_padding_low": Field("elements", least=-_MOST, most=_MOST),
        "edge_padding_high": Field("elements", least=-_MOST, most=_MOST),
        "interior_padding": COUNT,
    },
    "StablehloIotaOptions": {"iota_dimension": AXES},
    "StablehloCustomCallOptions": _fields(
        "call_target_name has_side_effect backend_config api_version custom_attributes", called_computations=SUBGRAPH
    ),
    "StablehloReduceOptions": {"dimensions": AXES, "body_subgraph_index": SUBGRAPH},
    "StablehloSliceOptions": {"start_indices": PLACES, "limit_indices": PLACES, "strides": STEP},
    "StablehloConvolutionOptions": _fields(
        "window_reversal precision_config",
        padding=SIZES,
        **dict.fromkeys(
            (
                *("input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"),
                *("kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions"),
                *("output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"),
            ),
            AXES,
        ),
        **dict.fromkeys(
            ("window_strides", "lhs_dilation", "rhs_dilation", "feature_group_count", "batch_group_count"), STEP
        ),
    ),
    "StablehloScatterOptions": _fields(
        "indices_are_sorted unique_indices",
        **dict.fromkeys(
            ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "index_vector_dim"), AXES
        ),
        update_computation_subgraph_index=SUBGRAPH,
    ),
    "StablehloCaseOptions": {"branch_subgraph_indices": SUBGRAPH},
    "StablehloRngBitGeneratorOptions": _fields("algorithm"),
    "StableHLOCompositeOptions": _fields(
        "name composite_attributes composite_attributes_format version", decomposition_subgraph_index=SUBGRAPH
    ),
    "StablehloShiftLeftOptions": {},
}

# The kinds of options that have no fields.
_WITHOUT = """ATan2 Abs AddN AssignVariable BatchToSpaceND Bitcast BitwiseXor BroadcastTo Cos Densify Dequantize Dilate
    DynamicUpdateSlice Equal Exp ExpandDims Fill FloorDiv FloorMod GatherNd Greater GreaterEqual HardSwish
    HashtableFind HashtableImport HashtableSize Less LessEqual LogSoftmax LogicalAnd LogicalNot LogicalOr MatrixDiag
    MatrixSetDiag MaximumMinimum Neg NonMaxSuppressionV4 NonMaxSuppressionV5 NotEqual Pad PadV2 Pow Quantize Range
    Rank ReadVariable ReverseV2 Rfft2d RightShift ScatterNd SegmentSum Select SelectV2 Sign Slice SpaceToBatchND
    Square SquaredDifference Tile TopKV2 Transpose UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd
    UnsortedSegmentSum Where ZerosLike"""

# The fields of the options of all builtin ops except those of StableHLO.
_OPTIONS: dict[str, dict[str, Field]] = {
    "Conv2DOptions": _fields(f"{_SAME} quantized_bias_type", **_CONV),
    "Conv3DOptions": _fields(_SAME, stride_d=STEP, dilation_d_factor=STEP, **_CONV),
    "DepthwiseConv2DOptions": _fields(_SAME, depth_multiplier=COUNT, **_CONV),
    "TransposeConvOptions": _fields(f"{_SAME} quantized_bias_type", stride_w=STEP, stride_h=STEP),
    "Pool2DOptions": _fields(_SAME, **_POOL),
    "ConcatEmbeddingsOptions": {
        "num_channels": COUNT,
        "num_columns_per_channel": COUNT,
        "embedding_dim_per_channel": COUNT,
    },
    "EmbeddingLookupSparseOptions": _fields("combiner"),
    "LSHProjectionOptions": _fields("type"),
    "SVDFOptions": _fields(_RNN, rank=STEP),
    "RNNOptions": _fields(_RNN),
    "SequenceRNNOptions": _fields(f"{_RNN} time_major"),
    "BidirectionalSequenceRNNOptions": _fields(f"{_RNN} time_major merge_outputs"),
    "LSTMOptions": _fields(f"{_LSTM} kernel_type"),
    "UnidirectionalSequenceLSTMOptions": _fields(f"{_LSTM} time_major diagonal_recurrent_tensors"),
    "BidirectionalSequenceLSTMOptions": _fields(f"{_LSTM} time_major merge_outputs"),
    "FullyConnectedOptions": _fields(f"{_RNN} weights_format keep_num_dims quantized_bias_type quant_spec"),
    "SoftmaxOptions": _fields("beta"),
    "ConcatenationOptions": _fields("fused_activation_function", axis=AXIS),
    **{f"{name}Options": _fields("fused_activation_function pot_scale_int16") for name in ("Add", "Sub")},
    **{f"{name}Options": _fields("fused_activation_function") for name in ("Mul", "Div", "L2Norm")},
    "LocalResponseNormalizationOptions": _fields("bias alpha beta", radius=COUNT),
    **{f"Resize{name}Options": _fields("align_corners half_pixel_centers") for name in ("Bilinear", "NearestNeighbor")},
    "CallOptions": {"subgraph": SUBGRAPH},
    "ReshapeOptions": {"new_shape": Field("elements", least=-1)},
    "SkipGramOptions": _fields("include_all_ngrams", ngram_size=COUNT, max_skip_size=COUNT),
    "SpaceToDepthOptions": {"block_size": STEP},
    "DepthToSpaceOptions": {"block_size": STEP},
    "GatherOptions": {"axis": AXIS, "batch_dims": AXIS},
    "ReducerOptions": _fields("keep_dims"),
    "SqueezeOptions": {"squeeze_dims": AXIS},
    "SplitOptions": {"num_splits": STEP},
    "SplitVOptions": {"num_splits": STEP},
    "StridedSliceOptions": _fields("begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask offset"),
    "CastOptions": _fields("in_data_type out_data_type"),
    **{f"{name}Options": _fields("output_type") for name in ("ArgMax", "ArgMin")},
    "SparseToDenseOptions": _fields("validate_indices"),
    "ShapeOptions": _fields("out_type"),
    "FakeQuantOptions": _fields("min max narrow_range num_bits"),
    "PackOptions": {"values_count": STEP, "axis": AXIS},
    "UnpackOptions": {"num": COUNT, "axis": AXIS},
    "OneHotOptions": {"axis": Field("axes", least=-1, is_optional=True)},
    "LeakyReluOptions": _fields("alpha"),
    "MirrorPadOptions": _fields("mode"),
    "UniqueOptions": _fields("idx_out_type"),
    "ReverseSequenceOptions": {"seq_dim": AXES, "batch_dim": AXES},
    "IfOptions": {"then_subgraph_index": SUBGRAPH, "else_subgraph_index": SUBGRAPH},
    "CallOnceOptions": {"init_subgraph_index": SUBGRAPH},
    "WhileOptions": {"cond_subgraph_index": SUBGRAPH, "body_subgraph_index": SUBGRAPH},
    "BatchMatMulOptions": _fields("adj_x adj_y asymmetric_quantize_inputs"),
    "CumsumOptions": _fields("exclusive reverse"),
    "HashtableOptions": _fields("table_id key_dtype value_dtype"),
    "VarHandleOptions": _fields("container shared_name"),
    "RandomOptions": _fields("seed seed2"),
    "BucketizeOptions": _fields("boundaries"),
    "GeluOptions": _fields("approximate"),
    "ReduceWindowOptions": _fields("reduce_function"),
    **{f"{name}Options": {} for name in _WITHOUT.split()},
}

FIELDS: dict[str, dict[str, Field]] = {**_FORMAT, **_STABLEHLO, **_OPTIONS}


def fields_that_hold(table: str, things: str) -> dict[str, Field]:
    """The fields of a table in the .tflite format whose numbers count or refer to things of one kind, for example
    "tensors".
    """
    return {name: field for name, field in FIELDS.get(table, {}).items() if field.holds == things}
