"""Tests that invalid dependencies between ops are refused. A runtime that follows them would access memory out of
bounds.
"""

import numpy as np
import pytest

from litebnn.errors import ConversionError
from litebnn.graph import Buffer, Model, OpCode
from litebnn.safety import check_model
from litebnn.safety.control_dependencies import check_control_dependencies
from tests.support.float_models import FloatModel


def _of_three_ops(metadata: bytes) -> Model:
    model = FloatModel()
    x = model.input(1, 4)
    for _ in range(3):
        x = model.elementwise("ABS", x)
    whole = model.model(x)
    whole.metadata = [("model_control_dependencies", Buffer(np.frombuffer(metadata, np.uint8)))]
    return whole


@pytest.mark.parametrize("edges", [b"", bytes([0]), bytes([1, 0, 2]), bytes([3, 0, 2, 0, 4, 2, 4])])
def test_ops_that_wait_for_ops_before_them_pass(edges: bytes) -> None:
    check_model(_of_three_ops(bytes([1, 1]) + edges if edges else b""))


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (bytes([1, 1, 1, 0, 6]), "op 3 waits for op 0, expected one of 3 ops and one before it"),
        (bytes([1, 1, 1, 0, 0x80, 0x80, 0x80, 0x26]), "op 39,845,888 waits for op 0"),
        (bytes([1, 1, 1, 1, 2]), "op 1 waits for op -1"),
        (bytes([1, 1, 1, 2, 2]), "op 1 waits for op 1"),
        (bytes([1, 1, 2, 0, 2, 4, 2]), "op 1 waits for op 2"),
        (bytes([1, 0]), "are of 0 subgraphs, expected 1"),
        (bytes([1, 2, 0, 0]), "are of 2 subgraphs, expected 1"),
        (bytes([2, 1, 0]), "are not of version 1"),
        (bytes([1]), "end too early"),
        (bytes([1, 1, 1, 0]), "end too early"),
        (bytes([1, 1, 0x80]), "end too early"),
        (bytes([1, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 1]), "a number takes more than 5 bytes"),
        (bytes([1, 1, 0, 0]), "go on behind their end"),
    ],
)
def test_what_leads_out_of_bounds_is_refused(metadata: bytes, reason: str) -> None:
    with pytest.raises(ConversionError, match=f'the metadata "model_control_dependencies": .*{reason}'):
        check_model(_of_three_ops(metadata))


def test_a_count_as_large_as_it_may_be_takes_no_time() -> None:
    with pytest.raises(ConversionError, match="end too early"):
        check_model(_of_three_ops(bytes([1, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F])))


def test_ops_of_litebnn_wait_for_none() -> None:
    """Control dependencies name ops by index. A runtime that applies another delegate after litebnn's looks up these
    indices again, but among the nodes that remain."""
    model = _of_three_ops(bytes([1, 1, 1, 0, 2]))
    model.graphs[0].ops[2].code = OpCode("CUSTOM", "LceQuantize")
    with pytest.raises(ConversionError, match="op 1 waits for op 0, expected none in a model with litebnn's ops"):
        check_control_dependencies(model)
    model.metadata = _of_three_ops(bytes([1, 1, 0])).metadata
    check_control_dependencies(model)
