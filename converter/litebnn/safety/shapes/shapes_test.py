from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.cli import main
from litebnn.contract import CUSTOM_OPS
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model
from litebnn.graph import (
    Graph,
    Op,
    OpCode,
    Options,
    Tensor,
    constant,
)
from litebnn.safety import check_outputs
from litebnn.safety.shapes import outgrown_outputs
from tests.support.float_models import FloatModel

GOLDEN = Path(__file__).resolve().parents[4] / "tests" / "golden"
CONV = {"stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1, "padding": 1}
MASKS = {f"{key}_mask": 0 for key in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")} | {"offset": False}
# Test cases: the op, its inputs (shapes, and lists for constants), its options, and the shapes of its outputs.
CASES: list[tuple[str, list[Any], dict[str, Any], list[tuple[int, ...]]]] = [
    ("ABS", [(2, 3)], {}, [(2, 3)]),
    ("ADD", [(2, 1, 3), (4, 1)], {}, [(2, 4, 3)]),
    ("ADD", [(3,), ()], {}, [(3,)]),
    ("ARG_MAX", [(2, 3), [-1]], {}, [(2,)]),
    ("BATCH_MATMUL", [(2, 3, 4), (1, 5, 4)], {"adj_x": False, "adj_y": True}, [(2, 3, 5)]),
    ("BATCH_TO_SPACE_ND", [(8, 2, 3, 5), [2, 2], [[1, 0], [0, 2]]], {}, [(2, 3, 4, 5)]),
    ("BROADCAST_TO", [(1, 3), [2, 3]], {}, [(2, 3)]),
    ("CONCATENATION", [(2, 3), (2, 5)], {"axis": -1}, [(2, 8)]),
    ("CONV_2D", [(1, 7, 8, 3), (4, 3, 2, 3)], CONV, [(1, 5, 7, 4)]),
    ("CONV_2D", [(1, 7, 8, 3), (4, 3, 2, 3)], CONV | {"padding": 0, "stride_h": 2}, [(1, 4, 8, 4)]),
    ("CONV_2D", [(1, 7, 8, 3), (4, 3, 2, 3)], CONV | {"dilation_h_factor": 2}, [(1, 3, 7, 4)]),
    ("CONV_3D", [(1, 5, 6, 7, 2), (2, 3, 4, 2, 8)], {**CONV, "stride_d": 2, "dilation_d_factor": 1}, [(1, 2, 4, 4, 8)]),
    ("DEPTHWISE_CONV_2D", [(1, 7, 8, 3), (1, 3, 2, 6)], CONV, [(1, 5, 7, 6)]),
    ("DEPTH_TO_SPACE", [(1, 2, 3, 8)], {"block_size": 2}, [(1, 4, 6, 2)]),
    ("EMBEDDING_LOOKUP", [(2,), (9, 4, 5)], {}, [(2, 4, 5)]),
    ("EXPAND_DIMS", [(2, 3), [-1]], {}, [(2, 3, 1)]),
    ("FILL", [[2, 3], ()], {}, [(2, 3)]),
    ("FULLY_CONNECTED", [(2, 3, 4), (5, 4)], {"keep_num_dims": False}, [(6, 5)]),
    ("FULLY_CONNECTED", [(2, 3, 4), (5, 4)], {"keep_num_dims": True}, [(2, 3, 5)]),
    ("GATHER", [(2, 4, 3), (2, 5)], {"axis": 1, "batch_dims": 1}, [(2, 5, 3)]),
    ("GATHER_ND", [(3, 4, 5), (6, 2)], {}, [(6, 5)]),
    ("LSTM", [(2, 3), *[(4, 3)] * 4, *[(4, 4)] * 4], {}, [(2, 4)]),
    ("MATRIX_DIAG", [(2, 3)], {}, [(2, 3, 3)]),
    ("MAX_POOL_2D", [(1, 5, 6, 3)], {**CONV, "filter_height": 3, "filter_width": 2, "stride_w": 2}, [(1, 3, 3, 3)]),
    ("MEAN", [(2, 3, 4), [1, -1]], {"keep_dims": False}, [(2,)]),
    ("MEAN", [(2, 3, 4), [1, -1]], {"keep_dims": True}, [(2, 1, 1)]),
    ("ONE_HOT", [(3,), [4]], {"axis": -1}, [(3, 4)]),
    ("PACK", [(2, 3), (2, 3)], {"axis": 1}, [(2, 2, 3)]),
    ("PAD", [(2, 3), [[1, 0], [2, 4]]], {}, [(3, 9)]),
    ("RESHAPE", [(2, 6), [3, -1]], {}, [(3, 4)]),
    ("RESHAPE", [(2, 6)], {"new_shape": [-1, 2]}, [(6, 2)]),
    ("RESIZE_BILINEAR", [(1, 2, 3, 4), [5, 6]], {}, [(1, 5, 6, 4)]),
    ("SCATTER_ND", [(2, 1), (2, 3), [4, 3]], {}, [(4, 3)]),
    ("SELECT", [(3,), (3, 4), (3, 4)], {}, [(3, 4)]),
    ("SHAPE", [(2, 3, 4)], {}, [(3,)]),
    ("SLICE", [(4, 5), [1, 2], [-1, 2]], {}, [(3, 2)]),
    ("SPACE_TO_BATCH_ND", [(2, 3, 4, 5), [2, 2], [[1, 0], [0, 2]]], {}, [(8, 2, 3, 5)]),
    ("SPACE_TO_DEPTH", [(1, 4, 6, 2)], {"block_size": 2}, [(1, 2, 3, 8)]),
    ("SPLIT", [[-1], (2, 6)], {}, [(2, 3), (2, 3)]),
    ("SPLIT_V", [(2, 6), [2, -1], [1]], {}, [(2, 2), (2, 4)]),
    ("SQUEEZE", [(1, 3, 1)], {"squeeze_dims": [-1]}, [(1, 3)]),
    ("SQUEEZE", [(1, 3, 1)], {"squeeze_dims": []}, [(3,)]),
    ("STRIDED_SLICE", [(9, 5, 2), [7, 1], [0, 9], [-2, 1]], MASKS, [(4, 4, 2)]),
    ("STRIDED_SLICE", [(9, 5, 2), [7, 1], [0, 3], [1, 1]], MASKS | {"shrink_axis_mask": 1, "end_mask": 2}, [(4, 2)]),
    ("STRIDED_SLICE", [(9,), [7], [1], [1]], MASKS | {"offset": True}, [(1,)]),
    ("SVDF", [(2, 3), (8, 3)], {"rank": 2}, [(2, 4)]),
    ("TILE", [(2, 3), [2, 1]], {}, [(4, 3)]),
    ("TOPK_V2", [(2, 5), [3]], {}, [(2, 3), (2, 3)]),
    ("TRANSPOSE", [(2, 3, 4), [2, 0, 1]], {}, [(4, 2, 3)]),
    ("TRANSPOSE_CONV", [[1, 6, 6, 4], (4, 3, 3, 3), (1, 3, 3, 3)], {}, [(1, 6, 6, 4)]),
    ("UNIDIRECTIONAL_SEQUENCE_RNN", [(2, 5, 3), (4, 3)], {}, [(2, 5, 4)]),
    ("UNPACK", [(2, 3)], {"axis": 0}, [(3,), (3,)]),
    ("UNSORTED_SEGMENT_SUM", [(4, 2), (4,), [3]], {}, [(3, 2)]),
]


def graph_of(name: str, inputs: list[Any], options: dict[str, Any], shapes: list[tuple[int, ...]]) -> Graph:
    operands = [
        Tensor(f"x{i}", "FLOAT32", each) if isinstance(each, tuple) else constant(f"c{i}", np.array(each, np.int32))
        for i, each in enumerate(inputs)
    ]
    results = [Tensor(f"y{i}", "FLOAT32", shape) for i, shape in enumerate(shapes)]
    graph = Graph("main", [], [each for each in operands if not each.is_constant], results, [])
    graph.insert(Op(OpCode(name), [*operands], results, Options("Options", **options)))
    return graph


@pytest.mark.parametrize(("name", "inputs", "options", "shapes"), CASES)
def test_the_shapes_that_ops_compute(
    name: str, inputs: list[Any], options: dict[str, Any], shapes: list[tuple[int, ...]]
) -> None:
    check_outputs(graph_of(name, inputs, options, shapes))
    none = [(0,)] * len(shapes)
    assert [shape for _, shape in outgrown_outputs(graph_of(name, inputs, options, none))] == shapes


@pytest.mark.parametrize("name", sorted({*CUSTOM_OPS, *(name for name, *_ in CASES)}))
@pytest.mark.parametrize("operands", [[], [None] * 9, [(2,)], [(2,), None, None], [()] * 5, [(0, 0, 0, 0)] * 9])
def test_what_no_runtime_would_prepare_has_no_shape(name: str, operands: list[Any]) -> None:
    graph = graph_of(name, [(1,)], {}, [(1,)] * 2)
    graph.ops[0].inputs[:] = [each and Tensor(f"x{i}", "FLOAT32", each) for i, each in enumerate(operands)]
    list(outgrown_outputs(graph))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.tflite")), ids=lambda path: path.name)
def test_the_shapes_of_whole_networks(path: Path) -> None:
    for graph in read_model(path.read_bytes()).graphs:
        written = [tensor for op in graph.ops for tensor in op.outputs]
        shapes = [tensor.shape for tensor in written]
        graph.outputs[:] = written
        assert not [*outgrown_outputs(graph)]
        for op in graph.ops:
            for tensor in op.outputs:
                tensor.shape = (0, *tensor.shape[-1:])  # the channels of packed signs are in no other place
        assert [shape for _, shape in outgrown_outputs(graph)] == shapes


@pytest.mark.parametrize("op", ["WHERE", "UNIQUE", "NO_SUCH_OP"])
def test_what_is_known_only_when_it_runs_is_trusted(op: str) -> None:
    check_outputs(graph_of(op, [(2, 3)], {}, [(1,)]))
    check_outputs(graph_of("RESHAPE", [(2, 3), (2,)], {}, [(1,)]))


def grows(signature: tuple[int, ...] | None, shape: tuple[int, ...] = (1, 4)) -> bytes:
    """A model whose output is larger than its shape in the file. The argument `signature` is the output's shape
    signature."""
    model = FloatModel()
    x = model.elementwise("NEG", model.elementwise("ABS", model.input(5000, 4)))
    x.shape, x.shape_signature = shape, signature
    return model.finish(x)


def test_an_output_is_not_larger_than_its_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = r'op 1 \(NEG\): "neg_.*", an output of the graph, has shape \[1, 4\], and \[5000, 4\] is computed'
    with pytest.raises(ConversionError, match=message):
        litebnn.convert_tflite(grows(None))
    with pytest.raises(ConversionError, match=r"has shape \[\], and \[5000, 4\] is computed"):
        litebnn.convert_tflite(grows(None, ()))
    with pytest.warns(UserWarning, match="no binary layer"):
        assert litebnn.convert_tflite(grows((-1, 4))) == grows((-1, 4))
    path = tmp_path / "model.tflite"
    path.write_bytes(grows((-1, 4)))
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
