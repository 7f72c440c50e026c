import numpy as np
import pytest

from litebnn.contract import Padding, PadValues
from litebnn.passes import BINARY_PHASES, run_phases
from litebnn.rewriting.bconv import bconv_options
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import same_padding
from tests.support.float_models import FloatModel, op_names, sign_weights

WEIGHTS = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)


@pytest.mark.parametrize(
    ("size", "taps", "stride", "dilation", "expected"),
    [
        (10, 3, 1, 1, (1, 10)),
        (10, 3, 2, 1, (0, 5)),
        (9, 3, 2, 1, (1, 5)),
        (10, 5, 1, 2, (4, 10)),
        (10, 2, 1, 1, (0, 10)),
        (10, 1, 3, 1, (0, 4)),
        (1, 3, 2, 1, (1, 1)),
    ],
)
def test_same_padding_splits_as_tensorflow_does(
    size: int, taps: int, stride: int, dilation: int, expected: tuple[int, int]
) -> None:
    assert same_padding(size, taps, stride, dilation) == expected


@pytest.mark.parametrize(
    ("value", "amounts", "stride", "names", "pads"),
    [
        (1.0, [(1, 1), (1, 1)], 1, ["LceQuantize", "LceBconv2d"], PadValues.ONE),
        (None, [(1, 1), (1, 1)], 1, ["LceQuantize", "LceBconv2d"], PadValues.ZERO),
        (0.0, [(1, 1), (1, 1)], 1, ["LceQuantize", "LceBconv2d"], PadValues.ZERO),
        (1.0, [(0, 1), (0, 1)], 2, ["LceQuantize", "LceBconv2d"], PadValues.ONE),
        (1.0, [(1, 1), (1, 1)], 2, ["LceQuantize", "PADV2", "LceBconv2d"], None),
        (1.0, [(2, 0), (1, 1)], 1, ["LceQuantize", "PADV2", "LceBconv2d"], None),
        (-1.0, [(1, 1), (1, 1)], 1, ["LceQuantize", "PADV2", "LceBconv2d"], None),
    ],
)
def test_padding_that_is_same_is_absorbed(
    value: float | None, amounts: list[tuple[int, int]], stride: int, names: list[str], pads: PadValues | None
) -> None:
    model = FloatModel()
    x = model.pad(model.sign(model.input(1, 6, 8, 32)), amounts, value)
    built = model.model(model.conv(x, WEIGHTS, stride=(stride, stride)))
    run_phases(built, BINARY_PHASES, Notes(built))
    assert op_names(built) == names
    options = bconv_options(built.graphs[0].ops[-1])
    assert options.padding == (Padding.VALID if pads is None else Padding.SAME)
    assert pads is None or options.pad_values == pads


@pytest.mark.parametrize(("value", "reason"), [(None, "is not SAME, and 0 is no ±1"), (0.5, "neither 0 nor ±1")])
def test_padding_that_is_no_sign_leaves_the_layer_float(value: float | None, reason: str) -> None:
    model = FloatModel()
    x = model.pad(model.sign(model.input(1, 6, 6, 32)), [(2, 1), (1, 1)], value)
    built = model.model(model.conv(x, WEIGHTS))
    notes = Notes(built)
    run_phases(built, BINARY_PHASES, notes)
    assert "CONV_2D" in op_names(built)
    assert reason in " ".join(notes.layers[0].reasons)


def test_an_unknown_size_is_enough_where_the_stride_is_1() -> None:
    for stride, expected in ((1, Padding.SAME), (2, Padding.VALID)):
        model = FloatModel()
        x = model.input(1, 1, 1, 32, signature=(-1, -1, -1, 32))
        built = model.model(
            model.conv(model.pad(model.sign(x), [(1, 1), (1, 1)], 1.0), WEIGHTS, stride=(stride, stride))
        )
        run_phases(built, BINARY_PHASES, Notes(built))
        assert bconv_options(built.graphs[0].ops[-1]).padding == expected
