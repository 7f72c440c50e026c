from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litebnn.errors import ConversionError
from litebnn.graph import Op, OpCode, Tensor
from litebnn.safety import check_graph
from tests.support.float_models import FloatModel

Build = Callable[[FloatModel], Tensor]


def gather_windows(**changed: Any) -> Build:
    """A builder of a STABLEHLO_GATHER of two windows [1, 2, 2] from [3, 4, 2], which removes their first axis."""
    options = {
        "offset_dims": [1, 2],
        "collapsed_slice_dims": [0],
        "start_index_map": [1, 0],
        "index_vector_dim": 1,
        "slice_sizes": [1, 2, 2],
        **changed,
    }
    return lambda m: m.op(
        "STABLEHLO_GATHER",
        [m.input(3, 4, 2), m.const([[0, 0], [1, 0]], np.int64)],
        (2, 2, 2),
        table="StablehloGatherOptions",
        **options,
    )


def scatter_windows(windows: int = 2, **changed: Any) -> Build:
    """A builder of a STABLEHLO_SCATTER of two windows [2, 2] into [3, 4, 2]."""
    options = {
        "update_window_dims": [1, 2],
        "inserted_window_dims": [0],
        "scatter_dims_to_operand_dims": [1, 0],
        "index_vector_dim": 1,
        "update_computation_subgraph_index": 0,
        **changed,
    }
    return lambda m: m.op(
        "STABLEHLO_SCATTER",
        [m.input(3, 4, 2), m.const([[0, 0], [1, 0]], np.int64), m.input(windows, 2, 2)],
        (3, 4, 2),
        table="StablehloScatterOptions",
        **options,
    )


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (
            lambda m: m.op("SPLIT", [m.const(0, np.int32), m.input(4)], (2,), num_splits=2),
            "num_splits is 2, and it has 1",
        ),
        (
            lambda m: m.op("UNPACK", [m.input(1, 2)], (2,), table="UnpackOptions", num=3, axis=0),
            "num is 3, and it has 1",
        ),
        (
            lambda m: m.op("PACK", [m.input(2)] * 2, (3, 2), table="PackOptions", values_count=3, axis=0),
            "values_count is 3, and it has 2 inputs",
        ),
        (gather_windows(offset_dims=[1, 3]), r"offset_dims is \[1, 3\], expected some of 3 axes"),
        (gather_windows(offset_dims=[1]), "have 1 and 1 axes, expected 3 in all"),
        (gather_windows(collapsed_slice_dims=[0, 0]), r"collapsed_slice_dims is \[0, 0\]"),
        (gather_windows(start_index_map=[1]), "start_index_map has 1 axes, expected 2"),
        (gather_windows(index_vector_dim=2), "index_vector_dim is 2, expected 0 to 1"),
        (gather_windows(slice_sizes=[1, 2, 3]), r"slice_sizes are \[1, 2, 3\] of a tensor of shape \[3, 4, 2\]"),
        (scatter_windows(3), r"has \[3\] windows, expected \[2\]"),
        (scatter_windows(update_window_dims=[1]), "have 1 and 1 axes, expected 3 in all"),
        (scatter_windows(scatter_dims_to_operand_dims=[1, 3]), r"is \[1, 3\], expected some of 3 axes"),
        (lambda m: m.op("PACK", [m.input(2)], (1, 2), table=""), "options are missing, expected PackOptions"),
        (lambda m: m.op("SPLIT_V", [m.input(2)], (2,), table="SplitVOptions", num_splits=1), "1 inputs and 1 outputs"),
        (
            lambda m: m.op("STABLEHLO_GATHER", [m.input(2)], (2,), table="StablehloGatherOptions"),
            "1 inputs and 1 outputs",
        ),
    ],
)
def test_options_that_do_not_fit_their_op(build: Build, reason: str) -> None:
    model = FloatModel()
    build(model)
    with pytest.raises(ConversionError, match=reason):
        check_graph(model.graph)


@pytest.mark.parametrize("build", [gather_windows(), scatter_windows()])
def test_options_that_fit(build: Build) -> None:
    model = FloatModel()
    build(model)
    check_graph(model.graph)


def test_an_unpack_has_as_many_outputs_as_it_says() -> None:
    model = FloatModel()
    model.op("UNPACK", [model.input(2, 3)], (3,), table="UnpackOptions", num=1, axis=0)
    [op] = model.graph.ops
    model.graph.remove(op)
    op.options.num = 2
    model.graph.insert(Op(OpCode("UNPACK"), op.inputs, [op.output, Tensor("other", "FLOAT32", (3,))], op.options))
    check_graph(model.graph)
