from typing import Any

import numpy as np
import pytest

from litebnn.graph import Model, constant
from litebnn.rules.build.bconv import bconv_options
from litebnn.rules.build.notes import Notes
from litebnn.rules.phases import BINARY_PHASES, run_phases
from tests.support.float_models import FloatModel, binarized, op_names, sign_weights
from tests.support.quantized_models import EXACT_GRID, Int8Model

WEIGHTS = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)


def dilated(pads: Any, crops: Any, *, sign: bool = True) -> Model:
    """Makes a 3×3 convolution of an 8×8 image, with a dilation of 2 written as SPACE_TO_BATCH_ND."""
    model = FloatModel()
    x = model.input(1, 8, 8, 32)
    x = model.sign(x) if sign else x
    height, width = (8 + sum(p) for p in pads)
    blocks = model.const([2, 2], np.int32)
    x = model.op(
        "SPACE_TO_BATCH_ND",
        [x, blocks, model.const(pads, np.int32)],
        (4, height // 2, width // 2, 32),
    )
    x = model.conv(x, WEIGHTS)
    rows, columns = (2 * size - sum(c) for size, c in zip(x.dims[1:3], crops, strict=True))
    x = model.op(
        "BATCH_TO_SPACE_ND",
        [x, blocks, model.const(crops, np.int32)],
        (1, rows, columns, 8),
    )
    return model.model(x)


@pytest.mark.parametrize(
    ("pads", "crops", "padding"),
    [
        ([(0, 0), (0, 0)], [(0, 0), (0, 0)], 1),
        ([(2, 2), (2, 2)], [(0, 0), (0, 0)], 0),
        ([(2, 4), (2, 4)], [(0, 2), (0, 2)], 0),
    ],
)
def test_the_pair_becomes_a_dilation(pads: Any, crops: Any, padding: int) -> None:
    model, _ = binarized(dilated(pads, crops))
    assert op_names(model) == ["LceQuantize", "LceBconv2d"]
    options = bconv_options(model.graphs[0].ops[-1])
    assert (options.dilation_height_factor, options.dilation_width_factor, options.padding) == (2, 2, padding)


@pytest.mark.parametrize(
    ("pads", "crops", "explicit"),
    [
        ([(4, 0), (2, 2)], [(0, 0), (0, 0)], ((4, 0), (2, 2))),
        ([(2, 2), (2, 2)], [(1, 1), (0, 0)], ((1, 1), (2, 2))),
    ],
)
def test_padding_and_crops_that_are_not_same_are_explicit(pads: Any, crops: Any, explicit: Any) -> None:
    model, _ = binarized(dilated(pads, crops))
    assert op_names(model) == ["LceQuantize", "LceBconv2d"]
    assert bconv_options(model.graphs[0].ops[-1]).explicit_padding == explicit


def test_a_pair_around_a_quantized_layer_becomes_a_dilation() -> None:
    model = Int8Model()
    x = model.sign8(model.input8((1 / 16, 3), 1, 8, 8, 32), "where", EXACT_GRID)
    x = model.as_(x, model.space_to_batch(x, [2, 2], [(2, 2), (2, 2)]), 2)
    x = model.conv8(x, WEIGHTS, np.zeros(8), (1.0, 5), same=False, activation="none")
    built = model.model(model.as_(x, model.batch_to_space(x, [2, 2], [(0, 0), (0, 0)]), 2))
    run_phases(built, (*BINARY_PHASES, "int8"), Notes(built))
    assert op_names(built) == ["LceQuantize", "LceBconv2d"]
    assert (built.graphs[0].outputs[0].dims, built.graphs[0].outputs[0].type) == ((1, 8, 8, 8), "INT8")


def test_to_crop_more_than_is_padded_is_to_crop_the_bits() -> None:
    model, _ = binarized(dilated([(2, 0), (0, 0)], [(0, 1), (2, 1)]))
    assert op_names(model) == ["LceQuantize", "STRIDED_SLICE", "LceBconv2d"]
    assert bconv_options(model.graphs[0].ops[-1]).explicit_padding == ((2, 0), (0, 0))


def test_padding_that_is_computed_is_named() -> None:
    model = FloatModel()
    x = model.sign(model.input(1, 8, 8, 32))
    pads = model.input(2, 2, type="INT32")
    x = model.op("SPACE_TO_BATCH_ND", [x, model.const([2, 2], np.int32), pads], (4, 6, 6, 32))
    _, notes = binarized(model, model.batch_to_space(model.conv(x, WEIGHTS), [2, 2], [(0, 0), (0, 0)]))
    assert "its space-to-batch padding is computed when the model runs" in notes.layers[0].reasons


def test_a_float_pair_stays() -> None:
    model, _ = binarized(dilated([(0, 0), (0, 0)], [(0, 0), (0, 0)], sign=False))
    assert op_names(model) == ["SPACE_TO_BATCH_ND", "CONV_2D", "BATCH_TO_SPACE_ND"]


@pytest.mark.parametrize("is_joined", [True, False])
def test_a_convolution_of_blocks_that_others_see_stays(is_joined: bool) -> None:
    model = dilated([(2, 2), (2, 2)], [(0, 0), (0, 0)])
    graph = model.graphs[0]
    blocks = next(op.output for op in graph.ops if op.name == "CONV_2D")
    graph.outputs = [blocks, *graph.outputs] if is_joined else [blocks]
    if not is_joined:
        graph.remove(graph.ops[-1])
    run_phases(model, BINARY_PHASES, Notes(model))
    assert op_names(model).count("SPACE_TO_BATCH_ND") == 1
    assert op_names(model).count("BATCH_TO_SPACE_ND") == is_joined


@pytest.mark.parametrize(("place", "block"), [("SPACE_TO_BATCH_ND", [2, 1]), ("BATCH_TO_SPACE_ND", [1, 2])])
def test_blocks_that_differ_are_no_dilation(place: str, block: list[int]) -> None:
    model = dilated([(2, 2), (2, 2)], [(0, 0), (0, 0)])
    graph = model.graphs[0]
    for op in [op for op in graph.ops if op.name == place]:
        graph.set_input(op, 1, constant("block", np.asarray(block, np.int32)))
    notes = Notes(model)
    run_phases(model, BINARY_PHASES, notes)
    assert "LceBconv2d" not in op_names(model)
    assert "space-to-batch pair with a stride, or with blocks that differ" in notes.layers[0].reasons


def test_bits_of_a_size_that_is_not_known_are_cropped_to_another() -> None:
    model = FloatModel()
    x = model.sign(model.input(1, 8, 8, 32, signature=(1, -1, 8, 32)))
    x = model.op(
        "SPACE_TO_BATCH_ND",
        [x, model.const([2, 2], np.int32), model.const([(0, 0), (0, 0)], np.int32)],
        (4, -1, 4, 32),
    )
    x = model.conv(x, sign_weights(np.random.default_rng(0), 8, 1, 1, 32))
    crops = model.const([(2, 0), (0, 0)], np.int32)
    built, _ = binarized(model, model.op("BATCH_TO_SPACE_ND", [x, model.const([2, 2], np.int32), crops], (1, -1, 8, 8)))
    [cropped] = [op.output for op in built.ops() if op.name == "STRIDED_SLICE"]
    assert cropped.dims == (1, -1, 8, 1)
