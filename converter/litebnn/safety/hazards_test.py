"""Tests that models are refused if they make a runtime access memory out of bounds, and that similar valid models
are accepted.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litebnn.errors import ConversionError
from litebnn.graph import Op, OpCode, Tensor
from litebnn.safety import check_model
from tests.support.float_models import FloatModel
from tests.support.quantized_models import Int8Model

Build = Callable[[FloatModel], Tensor]


def check(build: Build) -> None:
    model = FloatModel()
    check_model(model.model(build(model)))


def strided_slice(*operands: Any, shape: tuple[int, ...] = (4, 8), **masks: int) -> Build:
    def build(model: FloatModel) -> Tensor:
        values = [model.const(operand, np.int32) for operand in operands]
        return model.op("STRIDED_SLICE", [taken(model, shape), *values], (1, 1), **masks)

    return build


def taken(model: FloatModel, shape: tuple[int, ...]) -> Tensor:
    """Adds an input to the graph; a size of -1 is unknown."""
    known = tuple(1 if size < 0 else size for size in shape)
    return model.input(*known, signature=None if known == shape else shape)


def one(name: str, shape: tuple[int, ...], operand: Any, result: tuple[int, ...], **options: Any) -> Build:
    """An op with an input and a constant operand."""
    return lambda m: m.op(name, [taken(m, shape), m.const(operand, np.int32)], result, table="", **options)


def unknown(name: str, inputs: list[Tensor | None]) -> Build:
    def build(model: FloatModel) -> Tensor:
        result = Tensor("result", "FLOAT32", (1,))
        model.graph.insert(Op(OpCode(name), inputs, [result]))
        return result

    return build


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (one("RESHAPE", (4, 8), [3, 8], (3, 8)), r'op 0 \(RESHAPE\): "input_\d+" has shape \[4, 8\] and'),
        (one("EXPAND_DIMS", (4, 8), 0, (1, 4, 9)), "has shape"),
        (strided_slice([-5, 0], [4, 8], [1, 1]), 'begin -5 lies outside of axis 0 of "input_.*", which has 4'),
        (strided_slice([5, 0], [9, 8], [1, 1]), "begin 5"),
        (strided_slice([4, 0], [5, 8], [1, 1], shrink_axis_mask=1), "begin 4"),
        (strided_slice([9, 0], [4, 8], [1, 1], shrink_axis_mask=1, begin_mask=1), "begin 9"),
        (strided_slice([0, 0], [4, 8], [1, 0]), "a stride is 0"),
        (strided_slice([0, 0], [4], [1, 1]), r"begin, end and strides have \[2, 1, 2\] numbers"),
        (strided_slice([0] * 3, [1] * 3, [1] * 3), r"have \[3, 3, 3\] numbers"),
        (one("GATHER", (4, 8), [0, 4], (2, 8), axis=0), 'an index lies outside of axis 0 of "input_.*", which has 4'),
        (one("GATHER", (4, 8), [-1], (1, 8), axis=0), "an index"),
        (one("GATHER", (4, 8), [4], (1, 8)), "an index lies outside of axis 0"),
        (one("GATHER", (4, 8), [0], (4, 1), axis=2), "axis is 2, expected -2 to 1"),
        (one("SUM", (4, 8), [2], (4,), keep_dims=False), "axis 2, expected -2 to 1"),
        (one("ARG_MAX", (4, 8), -3, (4,)), "axis -3, expected"),
        (one("SUM", (2, 3, 4, 5), [4], (2, 3, 4), keep_dims=False), "axis 4, expected -4 to 3"),
        (one("GATHER", (2, 3, 4, 5), [0], (2, 3, 4, 1), axis=4), "axis is 4, expected -4 to 3"),
        (one("GATHER", (2, 3, 4, 5), [0], (2, 3, 4, 1), axis=-5), "axis is -5, expected -4 to 3"),
        (strided_slice([0, 9], [4, 9], [1, 1]), 'begin 9 lies outside of axis 1 of "input_.*", which has 8'),
        (strided_slice([0, 9], [4, 9], [1, 1], begin_mask=1), "begin 9 lies outside of axis 1"),
        (strided_slice([0, 8], [4, 9], [1, 1], shrink_axis_mask=2), "begin 8 lies outside of axis 1"),
        (one("GATHER", (4, 0), [0], (4, 1), axis=1), 'an index lies outside of axis 1 of "input_.*", which has 0'),
        (
            lambda m: m.op("SLICE", [m.input(0), m.const([1], np.int32), m.const([-1], np.int32)], (0,), table=""),
            '-1 from 1 lies outside of axis 0 of "input_.*", which has 0',
        ),
        (lambda m: m.input(1 << 31, type="INT8"), "has 2,147,483,648 bytes, expected less than 2 GiB"),
        (one("TRANSPOSE", (4, 8), [0, 0], (4, 4)), r"permutation \[0, 0\] of 2 axes"),
        (one("TRANSPOSE", (4, 8), [0, 1, 2], (4, 8)), "permutation"),
        (one("TRANSPOSE", (4, 8), [2**31 - 1, 1], (4, 8)), "permutation"),
        (one("PAD", (4, 8), [[0, 0], [-1, 0]], (4, 7)), "amount -1, expected 0 at least"),
        (one("TILE", (4, 8), [1, -2], (4, 8)), "amount -2"),
        (lambda m: m.op("CONCATENATION", [m.input(4, 8)] * 2, (8, 8), table="", axis=3), "axis is 3, expected"),
        (
            lambda m: m.op("CONCATENATION", [m.input(2, 3, 4, 5)] * 2, (2, 3, 4, 9), table="", axis=4),
            "axis is 4, expected -4 to 3",
        ),
        (
            lambda m: m.op("CONCATENATION", [m.input(2, 3, 4, 5)] * 2, (2, 3, 4, 9), table="", axis=-5),
            "axis is -5, expected -4 to 3",
        ),
        (
            lambda m: m.op("SLICE", [m.input(4), m.const([2], np.int32), m.const([3], np.int32)], (3,), table=""),
            '3 from 2 lies outside of axis 0 of "input_.*", which has 4',
        ),
        (lambda m: m.input(1, 1 << 20, 1 << 20), r'"input_.*" has 4,398,046,511,104 bytes, expected less than 2 GiB'),
        (unknown("GATHER", []), "the first input or output is missing"),
        (unknown("UNPACK", [None]), "the first input or output is missing"),
        (unknown("LceQuantize", []), r"op 0 \(LceQuantize\): 0 inputs and 1 outputs, expected 1 and 1 at least"),
    ],
)
def test_what_leads_out_of_bounds_is_refused(build: Build, reason: str) -> None:
    if "Lce" in reason:
        custom = build
        build = lambda m: _as_custom(custom, m)  # noqa: E731
    with pytest.raises(ConversionError, match=reason):
        check(build)


def _as_custom(build: Build, model: FloatModel) -> Tensor:
    result = build(model)
    op = model.graph.ops[0]
    op.code = OpCode("CUSTOM", op.code.builtin)
    return result


@pytest.mark.parametrize(
    "build",
    [
        one("RESHAPE", (4, 8), [-1, 2], (16, 2)),
        one("RESHAPE", (-1, 8), [-1], (-1,)),
        strided_slice([-4, 8], [100, -100], [2, -1]),
        strided_slice([100, 0], [4, 8], [1, 1], begin_mask=1),
        strided_slice([0, 100], [4, 8], [1, 1], begin_mask=2),
        strided_slice([0, 8], [4, 9], [1, 1], shrink_axis_mask=1),
        lambda m: m.op("CONCATENATION", [m.input(2, 3, 4, 5)] * 2, (2, 3, 4, 10), table="", axis=3),
        lambda m: m.op("CONCATENATION", [m.input(2, 3, 4, 5)] * 2, (4, 3, 4, 5), table="", axis=-4),
        lambda m: m.op("SLICE", [m.input(4), m.const([4], np.int32), m.const([-1], np.int32)], (0,), table=""),
        lambda m: m.op("SLICE", [m.input(4), m.const([0], np.int32), m.const([4], np.int32)], (4,), table=""),
        lambda m: m.elementwise("ABS", m.input()),
        strided_slice([0] * 3, [1] * 3, [1] * 3, new_axis_mask=1),
        strided_slice([0, 8], [1, 9], [1, 1], new_axis_mask=1),
        strided_slice([0, 0], [1, 1], [1, 1], new_axis_mask=1, shape=(0, 8)),
        lambda m: m.op(
            "STRIDED_SLICE", [m.input(4), m.input(1, type="INT32"), *(m.const([1], np.int32) for _ in range(2))], (1,)
        ),
        lambda m: m.input((1 << 31) - 1, type="INT8"),
        strided_slice([3, 0], [4, 8], [1, 1], shrink_axis_mask=1),
        strided_slice([100, 0], [4, 8], [1, 1], shape=(-1, 8)),
        one("GATHER", (4, 8), [0, 3], (2, 8), axis=-2),
        one("MEAN", (4, 8), [-2, 1], (1,), keep_dims=False),
        one("TRANSPOSE", (4, 8), [1, 0], (8, 4)),
        one("PAD", (4, 8), [[0, 0], [1, 0]], (4, 9)),
        lambda m: m.op("SLICE", [m.input(4), m.const([2], np.int32), m.const([-1], np.int32)], (2,), table=""),
        unknown("FFT", []),
    ],
)
def test_what_stays_in_bounds_passes(build: Build) -> None:
    check(build)


def test_a_shape_and_its_signature_agree() -> None:
    model = FloatModel()
    x = model.input(4, 8)
    for signature, shape, reason in (
        ((-1, 9), (1, 8), "disagree"),
        ((-2, 8), (1, 8), "has shape"),
        (None, (-1, 8), ""),
    ):
        x.shape, x.shape_signature = shape, signature
        with pytest.raises(ConversionError, match=reason or "has shape"):
            check_model(model.model(x))


def test_what_computes_with_levels_needs_their_scale() -> None:
    model = Int8Model()
    total = model.add8(*(model.input8((1 / 16, 0), 1, 4) for _ in range(2)), (1 / 8, 0))
    whole = model.model(model.reshape8(total, 4))
    check_model(whole)
    total.quantization = None
    with pytest.raises(ConversionError, match=f'"{total.name}" is INT8 without a scale'):
        check_model(whole)


def test_objects_of_the_runtime_are_no_results() -> None:
    model = FloatModel()
    table = Tensor("table", "RESOURCE", (1,))
    model.graph.insert(Op(OpCode("HASHTABLE"), [], [table]))
    with pytest.raises(ConversionError, match='"table", an input or output of the model, is of type RESOURCE'):
        check_model(model.model(table))
