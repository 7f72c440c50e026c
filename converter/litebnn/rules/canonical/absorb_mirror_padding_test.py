import numpy as np
import pytest

from litebnn.flatbuffer import read_model
from litebnn.rules.canonical.absorb_mirror_padding import absorb_mirror_padding
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from litebnn.rules.thresholds.work_on_bits import work_on_bits
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, run_pass

REFLECT, SYMMETRIC = 0, 1


def mirrored_pool(size: int, taps: int, stride: int, pads: tuple[int, int], mode: int) -> bytes:
    model = FloatModel()
    x = model.sign(model.input(1, size, size, 32))
    sizes = (1, size + sum(pads), size + sum(pads), 32)
    padded = model.op("MIRROR_PAD", [x, model.const([(0, 0), pads, pads, (0, 0)], np.int32)], sizes, mode=mode)
    return model.finish(model.max_pool(padded, taps, stride))


@pytest.mark.parametrize(
    ("size", "taps", "stride", "pads", "mode"),
    [
        (8, 2, 1, (0, 1), SYMMETRIC),
        (9, 2, 2, (0, 1), SYMMETRIC),
        (10, 3, 2, (0, 1), SYMMETRIC),
        (9, 3, 2, (1, 1), REFLECT),
        (9, 4, 1, (1, 2), SYMMETRIC),
        (9, 5, 1, (2, 2), REFLECT),
    ],
)
def test_pooling_of_repeated_edges_is_same_pooling(
    size: int, taps: int, stride: int, pads: tuple[int, int], mode: int
) -> None:
    source = mirrored_pool(size, taps, stride, pads, mode)
    result = rewritten(source, recognize_signs, absorb_mirror_padding, work_on_bits)
    assert op_names(result)[-2:] == ["LceBMaxPool2d", "LceDequantize"]
    assert_same_values(source, result)


@pytest.mark.parametrize(
    ("size", "taps", "stride", "pads", "mode"),
    [
        (10, 3, 2, (1, 0), SYMMETRIC),  # SAME pads on the other side
        (9, 2, 2, (1, 1), SYMMETRIC),
        (8, 2, 1, (0, 1), REFLECT),  # the last window has one value and the one before it
        (9, 4, 1, (1, 2), REFLECT),
        (9, 2, 2, (0, 0), SYMMETRIC),
    ],
)
def test_other_padding_stays(size: int, taps: int, stride: int, pads: tuple[int, int], mode: int) -> None:
    model = read_model(mirrored_pool(size, taps, stride, pads, mode))
    assert not run_pass(absorb_mirror_padding, model)[0]


@pytest.mark.parametrize(
    "case", ["another op", "already SAME", "computed amounts", "amounts of three axes", "batch unknown", "other height"]
)
def test_what_is_no_mirror_around_one_pooling_stays(case: str) -> None:
    model = FloatModel()
    x = model.input(1, 8, 8, 32, signature=(-1, 8, 8, 32) if case == "batch unknown" else None)
    amounts = model.const([(0, 0), (0, 1), (0, 1), (0, 0)], np.int32)
    if case == "computed amounts":
        amounts = model.input(4, 2, type="INT32")
    elif case == "amounts of three axes":
        amounts = model.const([(0, 0), (0, 1), (0, 1)], np.int32)
    name = "PAD" if case == "another op" else "MIRROR_PAD"
    padded = model.op(name, [x, amounts], (x.dims[0], 9, 9, 32), **({} if name == "PAD" else {"mode": SYMMETRIC}))
    pooled = model.max_pool(padded, 2, 1, same=case == "already SAME")
    if case == "other height":
        pooled.shape = (1, 7, 8, 32)
    assert not run_pass(absorb_mirror_padding, model.model(pooled))[0]


def test_height_and_width_are_padded_each_for_itself() -> None:
    """The windows and strides are 2, so SAME pads the odd height, and not the even width."""
    model = FloatModel()
    x = model.sign(model.input(1, 9, 8, 32))
    amounts = model.const([(0, 0), (0, 1), (0, 0), (0, 0)], np.int32)
    padded = model.op("MIRROR_PAD", [x, amounts], (1, 10, 8, 32), mode=SYMMETRIC)
    assert run_pass(absorb_mirror_padding, model.model(model.max_pool(padded, 2, 2)))[0]
