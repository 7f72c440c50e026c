import numpy as np
import pytest

from litebnn.graph import Tensor
from litebnn.rules.build.bconv import bconv_options
from litebnn.rules.build.notes import Notes
from litebnn.rules.canonical.raise_layouts import raise_layouts
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from litebnn.rules.canonical.sink_layouts import sink_layouts
from tests.support.float_models import FloatModel, binarized, op_names, run_pass, sign_weights
from tests.support.quantized_models import Int8Model

WEIGHTS = sign_weights(np.random.default_rng(0), 8, 1, 3, 32)


@pytest.mark.parametrize("size", [10, -1])
def test_a_causal_convolution_pads_before(size: int) -> None:
    model = FloatModel()
    x = model.input(1, 10, 32, signature=(-1, size, 32))
    built, _ = binarized(model, model.conv(model.expand(model.pad(model.sign(x), [(2, 0)]), 1), WEIGHTS))
    assert "CONV_2D" not in op_names(built)
    options = bconv_options(next(op for op in built.graphs[0].ops if op.name == "LceBconv2d"))
    assert options.explicit_padding == ((0, 0), (2, 0))


def test_axes_move_to_the_ends() -> None:
    model = FloatModel()
    x = model.space_to_batch(model.pad(model.input(1, 10, 32), [(4, 0)]), [2], [(0, 0)])
    y = model.conv(model.expand(x, 1), WEIGHTS)
    y = model.op("SQUEEZE", [y], (y.dims[0], y.dims[2], 8), squeeze_dims=np.asarray([1], np.int32))
    built = model.model(model.batch_to_space(y, [2], [(0, 0)]))
    while run_pass(raise_layouts, built)[0] or run_pass(sink_layouts, built)[0]:
        pass
    remove_dead_ops(built.graphs[0], Notes(built))
    assert op_names(built) == ["RESHAPE", "PAD", "SPACE_TO_BATCH_ND", "CONV_2D", "BATCH_TO_SPACE_ND", "RESHAPE"]
    block = next(op for op in built.graphs[0].ops if op.name == "BATCH_TO_SPACE_ND").input(1).array
    np.testing.assert_array_equal(block, [1, 2])


@pytest.mark.parametrize("axis", [0, 3])
def test_an_axis_before_the_batch_or_after_the_channels_stays(axis: int) -> None:
    model = FloatModel()
    built = model.model(model.expand(model.pad(model.input(10, 4, 32), [(1, 1)]), axis))
    assert run_pass(raise_layouts, built) == (False, ["PAD", "EXPAND_DIMS"])


def test_other_reshapes_stay() -> None:
    model = FloatModel()
    padded = model.pad(model.input(1, 8, 32), [(1, 1)])
    built = model.model(model.reshape(padded, 1, 2, 5, 32))
    assert run_pass(raise_layouts, built) == (False, ["PAD", "RESHAPE"])


def test_int8_tensors_keep_their_grid() -> None:
    model = Int8Model()
    x = model.input8((0.5, 3), 1, 10, 32)
    padded = model.pad(x, [(2, 0)])
    expanded = model.expand(padded, 1)
    for tensor in (padded, expanded):
        tensor.type, tensor.quantization = "INT8", x.quantization
    built = model.model(expanded)
    assert run_pass(raise_layouts, built)[0]
    expanded = next(op.output for op in built.graphs[0].ops if op.name == "RESHAPE")
    assert expanded.per_tensor_quantization == (0.5, 3)


def test_an_axis_after_the_channels_is_no_place() -> None:
    model = FloatModel()
    built = model.model(model.expand(model.pad(model.input(1, 8, 32), [(1, 1)]), 3))
    assert run_pass(raise_layouts, built) == (False, ["PAD", "EXPAND_DIMS"])


def test_the_second_axis_is_a_place_too() -> None:
    model = FloatModel()
    blocks = model.space_to_batch(model.input(1, 10, 32), [2], [(2, 4)])
    built = model.model(model.expand(blocks, 2))
    assert run_pass(raise_layouts, built)[0]
    op = next(op for op in built.graphs[0].ops if op.name == "SPACE_TO_BATCH_ND" and op.input(0).dims == (1, 10, 1, 32))
    np.testing.assert_array_equal(op.input(1).array, [2, 1])
    np.testing.assert_array_equal(op.input(2).array, [[2, 4], [0, 0]])


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_blocks_of_images_that_lack_an_axis_stay(axis: int) -> None:
    """A damaged file may have an image op whose input lacks an axis. No runtime accepts such an op."""
    model = FloatModel()
    blocks = model.op("SPACE_TO_BATCH_ND", [model.input(1, 10, 4, 32), *_one_block(model)], (2, 5, 4, 32))
    built = model.model(model.expand(blocks, axis))
    assert run_pass(raise_layouts, built) == (False, ["SPACE_TO_BATCH_ND", "EXPAND_DIMS"])

    model = FloatModel()
    larger = model.input(*np.insert((2, 5, 4, 32), axis, 1).tolist())
    squeezed = model.op("SQUEEZE", [larger], (2, 5, 4, 32), squeeze_dims=np.asarray([axis], np.int32))
    built = model.model(model.op("BATCH_TO_SPACE_ND", [squeezed, *_one_block(model)], (1, 10, 4, 32)))
    assert run_pass(sink_layouts, built) == (False, ["SQUEEZE", "BATCH_TO_SPACE_ND"])


def _one_block(model: FloatModel) -> list[Tensor]:
    """Returns the constant operands of a SPACE_TO_BATCH_ND over one axis that has no effect: a block size of one, and
    padding of zero."""
    return [model.const([2], np.int32), model.const([[0, 0]], np.int32)]
