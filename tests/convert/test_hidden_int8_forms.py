"""Tests signs in int8 files that have ops between them and a layer, and forms of signs that the converter evaluates for
each int8 level.
"""

from collections.abc import Callable

import numpy as np
import pytest

import litebnn
from litebnn.analysis.quantization import parameters
from litebnn.graph import Op, OpCode, Options, Tensor
from litebnn.rules.build.int8 import int8_constant
from tests.support.float_models import sign_weights
from tests.support.quantized_models import EXACT_GRID, NO_MINUS_GRID, USUAL_GRID, Grid, Int8Model

SHAPE = (1, 6, 6, 32)
Form = Callable[[Int8Model, Tensor, Grid], Tensor]


def shifted(model: Int8Model, x: Tensor) -> Tensor:
    """Appends the addition of a constant to the tensor x. The sum has the same scale and zero point as x."""
    return model.add8(x, int8_constant("by", np.full((), 0.75), 1 / 64), (1 / 16, 3))


def signs(model: Int8Model, x: Tensor, grid: Grid) -> tuple[Tensor, Tensor]:
    return model.sign8(x, "where", grid), model.sign8(shifted(model, x), "where_gt", grid)


def indices(model: Int8Model, *values: int | list[int]) -> list[Tensor]:
    return [model.const(value, np.int32) for value in values]


def move(model: Int8Model, name: str, inputs: list[Tensor], shape: tuple[int, ...], **options: object) -> Tensor:
    """Appends an op whose output has the same scale and zero point as its inputs."""
    source = next(tensor for tensor in inputs if tensor.quantization is not None)
    return model.as_(source, model.op(name, inputs, shape, **options), 2)


def join(model: Int8Model, x: Tensor, grid: Grid) -> Tensor:
    return move(model, "CONCATENATION", [*signs(model, x, grid)], (1, 6, 6, 64), axis=3, fused_activation_function=0)


def join_requantized(model: Int8Model, x: Tensor, grid: Grid) -> Tensor:
    """Appends a concatenation of two signs. One sign had another scale and zero point before, and was requantized."""
    left = model.quantize8(model.sign8(x, "where", EXACT_GRID), grid)
    right = model.sign8(shifted(model, x), "where", grid)
    return move(model, "CONCATENATION", [left, right], (1, 6, 6, 64), axis=3, fused_activation_function=0)


def split(model: Int8Model, x: Tensor, grid: Grid) -> Tensor:
    sign = model.sign8(x, "where", grid)
    halves = [Tensor(name, "INT8", (1, 6, 6, 16), quantization=sign.quantization) for name in ("left", "right")]
    model.graph.insert(
        Op(OpCode("SPLIT", "", 2), [*indices(model, 3), sign], halves, Options("SplitOptions", num_splits=2))
    )
    return halves[1]


def split_v(model: Int8Model, x: Tensor, grid: Grid) -> Tensor:
    sign = model.sign8(x, "where", grid)
    parts = [Tensor(f"part{n}", "INT8", (1, 6, 6, n), quantization=sign.quantization) for n in (8, 24)]
    inputs = [sign, *indices(model, [8, 24], 3)]
    model.graph.insert(Op(OpCode("SPLIT_V", "", 2), inputs, parts, Options("SplitVOptions", num_splits=2)))
    return parts[1]


def shuffled(model: Int8Model, x: Tensor, grid: Grid) -> Tensor:
    """Appends a sign, and ops that swap the two halves of its channels."""
    sign = model.sign8(x, "where", grid)
    halves = [
        move(model, "SLICE", [sign, *indices(model, [0, 0, 0, at], [1, 6, 6, 16])], (1, 6, 6, 16)) for at in (16, 0)
    ]
    return move(model, "CONCATENATION", halves, SHAPE, axis=3, fused_activation_function=0)


def padded_join(model: Int8Model, x: Tensor, grid: Grid) -> Tensor:
    return model.pad8(model.pool8(join(model, x, grid)), None)


def maximum(model: Int8Model, x: Tensor, grid: Grid) -> Tensor:
    return move(model, "MAXIMUM", [*signs(model, x, grid)], SHAPE)


def minimum(model: Int8Model, x: Tensor, grid: Grid) -> Tensor:
    return move(model, "MINIMUM", [*signs(model, x, grid)], SHAPE)


def product(model: Int8Model, x: Tensor, grid: Grid) -> Tensor:
    left, right = signs(model, x, grid)
    return model.as_(left, model.op("MUL", [left, right], SHAPE, fused_activation_function=0), 2)


def largest(model: Int8Model, x: Tensor, grid: Grid) -> Tensor:
    sign = model.sign8(x, "where", grid)
    return move(model, "REDUCE_MAX", [sign, *indices(model, [2])], (1, 6, 1, 32), keep_dims=True)


def cut(model: Int8Model, x: Tensor, grid: Grid) -> Tensor:
    return move(
        model, "SLICE", [model.sign8(x, "where", grid), *indices(model, [0, 1, 0, 0], [1, 5, 6, 32])], (1, 5, 6, 32)
    )


def gathered(model: Int8Model, x: Tensor, grid: Grid) -> Tensor:
    order = model.const(np.arange(32)[::-1], np.int32)
    return move(model, "GATHER", [model.sign8(x, "where", grid), order], SHAPE, axis=3)


def enlarged(model: Int8Model, x: Tensor, grid: Grid) -> Tensor:
    sizes = indices(model, [12, 12])
    return move(model, "RESIZE_NEAREST_NEIGHBOR", [model.sign8(x, "where", grid), *sizes], (1, 12, 12, 32))


def tiled(model: Int8Model, x: Tensor, grid: Grid) -> Tensor:
    return move(model, "TILE", [model.sign8(x, "where", grid), *indices(model, [1, 2, 1, 1])], (1, 12, 6, 32))


def padded(model: Int8Model, x: Tensor, grid: Grid) -> Tensor:
    return model.pad8(model.sign8(x, "where", grid), None)


MOVES: list[Form] = [
    *(join, join_requantized, split, split_v, shuffled, padded_join, maximum, minimum, largest),
    *(cut, gathered, enlarged, tiled, padded),
]


def layer_of(model: Int8Model, signs: Tensor) -> bytes:
    rng = np.random.default_rng(0)
    weights = sign_weights(rng, 8, 1, 3, signs.channels)
    same = signs.dims[2] < 3
    return model.finish(model.conv8(signs, weights, rng.integers(-9, 9, 8), (0.5, 3), same=same, activation="none"))


def check(source: bytes, tolerance: int) -> None:
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary, str(report)
    x = np.random.default_rng(1).integers(-128, 128, (4, *SHAPE[1:])).astype(np.int8)
    x[0] = np.arange(x[0].size).reshape(x[0].shape)  # every level
    expected, actual = (litebnn.Interpreter(model).predict(x).astype(int) for model in (source, converted))
    assert np.max(np.abs(actual - expected)) <= tolerance
    assert np.unique(expected).size > 5


@pytest.mark.parametrize("grid", [EXACT_GRID, USUAL_GRID, NO_MINUS_GRID])
@pytest.mark.parametrize("form", MOVES)
def test_moved_and_joined_levels_of_signs(form: Form, grid: Grid) -> None:
    model = Int8Model()
    source = layer_of(model, form(model, model.input8((1 / 16, 3), *SHAPE), grid))
    check(source, 0 if grid == EXACT_GRID else 1)


def on(grid: Grid, tensor: Tensor) -> Tensor:
    tensor.quantization = parameters(*grid)
    return tensor


def int8_op(model: Int8Model, name: str, inputs: list[Tensor], grid: Grid) -> Tensor:
    """Appends an elementwise op whose output has another scale and zero point than its input."""
    version = 1 if name == "RELU_N1_TO_1" else 2
    dims = max((tensor.dims for tensor in inputs), key=len)
    return on(grid, model.op(name, inputs, dims, type="INT8", version=version))


def two_casts(model: Int8Model, x: Tensor) -> Tensor:
    """Appends a sign in the form cast(x >= 0) - cast(x < 0)."""
    zero = int8_constant("zero", np.zeros(()), 1 / 16, 3)
    conditions = [model.elementwise(name, x, zero, type="BOOL") for name in ("GREATER_EQUAL", "LESS")]
    left, right = (model.quantize8(model.op("CAST", [each], x.dims), NO_MINUS_GRID) for each in conditions)
    return int8_op(model, "SUB", [left, right], USUAL_GRID)


def cast_times_two(model: Int8Model, x: Tensor, comparison: str) -> Tensor:
    """Appends the product of 2 and a comparison with 0, as ai-edge-quantizer writes it. The product is 0 or 2, with a
    scale of 2/255. With this scale, 1 and -1 lie halfway between two int8 values.
    """
    zero = int8_constant("zero", np.zeros(()), 1 / 16, 3)
    number = model.op("CAST", [model.elementwise(comparison, x, zero, type="BOOL")], x.dims)
    two = int8_constant("two", np.full((), 2), 2 / 255, -128)
    return int8_op(model, "MUL", [model.quantize8(number, NO_MINUS_GRID), two], (2 / 255, -128))


def cast_less_one(model: Int8Model, x: Tensor) -> Tensor:
    """Appends a sign in the form 2 * cast(x >= 0) - 1."""
    one = int8_constant("one", np.ones(()), *NO_MINUS_GRID)
    return int8_op(model, "SUB", [cast_times_two(model, x, "GREATER_EQUAL"), one], USUAL_GRID)


def one_less_cast(model: Int8Model, x: Tensor) -> Tensor:
    """Appends a sign in the form 1 - 2 * cast(x < 0)."""
    one = int8_constant("one", np.ones(()), *NO_MINUS_GRID)
    return int8_op(model, "SUB", [one, cast_times_two(model, x, "LESS")], USUAL_GRID)


def moved_to_another_grid(model: Int8Model, x: Tensor) -> Tensor:
    """Appends a sign that is requantized to another scale. XNNPACK requantizes by a factor with 8 fractional bits."""
    return model.quantize8(model.sign8(x, "where", USUAL_GRID), (0.0152, 5))


def straight_through(model: Int8Model, x: Tensor) -> Tensor:
    """Appends a sign in the form x + (sign(x) - x). For each int8 level of x, the sum is rounded differently."""
    taken_away = int8_op(model, "SUB", [model.sign8(x, "where", USUAL_GRID), x], (18 / 255, 5))
    return int8_op(model, "ADD", [x, taken_away], (2.1 / 255, 0))


def straight_through_a_clip(model: Int8Model, x: Tensor) -> Tensor:
    clipped = int8_op(model, "RELU_N1_TO_1", [x], USUAL_GRID)
    taken_away = int8_op(model, "SUB", [model.sign8(x, "where_gt", USUAL_GRID), clipped], (2 / 255, 0))
    return int8_op(model, "ADD", [clipped, taken_away], USUAL_GRID)


def straight_through_a_float_sign(model: Int8Model, x: Tensor) -> Tensor:
    """Appends a straight-through sign (the sum of x and sign(x) - x) in float, between DEQUANTIZE and QUANTIZE. Its
    threshold is between two levels.
    """
    sign = model.quantize8(model.sign(model.dequantize8(x), "where_ge", 0.3), USUAL_GRID)
    taken_away = int8_op(model, "SUB", [sign, x], (18 / 255, 5))
    return int8_op(model, "ADD", [taken_away, x], (2.1 / 255, 0))


def straight_through_a_float_clip(model: Int8Model, x: Tensor) -> Tensor:
    """Appends a straight-through sign: the sum of clip(x) and sign(x) - clip(x). Both clip and sign are computed in
    float, each after its own DEQUANTIZE, as in int16 files.
    """
    clipped = model.quantize8(model.elementwise("RELU_N1_TO_1", model.dequantize8(x)), USUAL_GRID)
    sign = model.quantize8(model.sign(model.dequantize8(x), "where_gt"), USUAL_GRID)
    taken_away = int8_op(model, "SUB", [sign, clipped], (2 / 255, 0))
    return int8_op(model, "ADD", [clipped, taken_away], USUAL_GRID)


def straight_through_many_clips(model: Int8Model, x: Tensor) -> Tensor:
    """Appends a straight-through sign whose clip is written as six ops in float."""
    clipped = model.dequantize8(x)
    for limit in (2.0, 1.5, 1.0):
        clipped = model.elementwise("MINIMUM", clipped, model.const(limit))
        clipped = model.elementwise("MAXIMUM", clipped, model.const(-limit))
    clipped = model.quantize8(clipped, USUAL_GRID)
    taken_away = int8_op(model, "SUB", [model.sign8(x, "where_gt", USUAL_GRID), clipped], (2 / 255, 0))
    return int8_op(model, "ADD", [clipped, taken_away], USUAL_GRID)


@pytest.mark.parametrize("grid", [EXACT_GRID, USUAL_GRID])
def test_a_product_of_levels_of_signs(grid: Grid) -> None:
    model = Int8Model()
    check(layer_of(model, product(model, model.input8((1 / 16, 3), *SHAPE), grid)), 0 if grid == EXACT_GRID else 1)


@pytest.mark.parametrize(
    "form",
    [
        two_casts,
        straight_through,
        straight_through_a_clip,
        straight_through_a_float_sign,
        straight_through_a_float_clip,
        straight_through_many_clips,
    ],
)
def test_a_sign_that_levels_decide(form: Callable[[Int8Model, Tensor], Tensor]) -> None:
    """The source model computes the sign of `x` by int8 sums, which are rounded. The number that stands for +1 or -1
    then differs a little from one int8 level of `x` to the next.

    In the output of the layer that reads the sign, these differences add up to at most two levels.
    """
    model = Int8Model()
    source = layer_of(model, form(model, model.input8((1 / 16, 3), *SHAPE)))
    check(source, tolerance=0 if form is two_casts else 2)


@pytest.mark.parametrize(("count", "is_binary"), [(4, True), (80, False)])
def test_levels_are_followed_through_a_bounded_count_of_ops(count: int, is_binary: bool) -> None:
    model = Int8Model()
    x = model.input8((1 / 16, 3), *SHAPE)
    moved, nothing = x, int8_constant("nothing", np.zeros(()), 1 / 16)
    for _ in range(count):
        moved = model.add8(moved, nothing, (1 / 16, 3))
    taken_away = int8_op(model, "SUB", [model.sign8(x, "where_gt", EXACT_GRID), moved], (1 / 8, 0))
    source = layer_of(model, int8_op(model, "ADD", [moved, taken_away], EXACT_GRID))
    _, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary == is_binary


@pytest.mark.parametrize("form", [two_casts, cast_less_one, one_less_cast, moved_to_another_grid])
@pytest.mark.parametrize("padding", [None, 0.0, 1.0, -1.0])
def test_signs_that_levels_are_computed_to(form: Callable[[Int8Model, Tensor], Tensor], padding: float | None) -> None:
    """The padding value of int8 signs may be one level off. At a padded border, these errors add up to several levels
    of the layer's output if most weights are +1.
    """
    model, rng = Int8Model(), np.random.default_rng(0)
    signs = form(model, model.input8((1 / 16, 3), *SHAPE))
    grid = signs.per_tensor_quantization
    assert grid is not None
    if padding is not None:
        signs = model.pad8(signs, padding)
    weights = np.where(rng.random((8, 3, 3, 32)) < 0.9, 1.0, -1.0).astype(np.float32)
    step = 2.0
    source = model.finish(model.conv8(signs, weights, rng.integers(-9, 9, 8), (step, 3), same=False, activation="none"))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary, str(report)
    x = rng.integers(-128, 128, (8, *SHAPE[1:])).astype(np.int8)
    expected, actual = (litebnn.Interpreter(model).predict(x).astype(int) for model in (source, converted))
    assert np.unique(expected).size > 5
    difference = np.abs(actual - expected)
    if padding is not None:
        border = 5 * 32  # weights of a corner that lie on what is padded
        assert np.max(difference) <= 1 + border * grid[0] / step
        difference = difference[:, 1:-1, 1:-1]
    assert not np.any(difference)


@pytest.mark.parametrize("detached", [False, True])
def test_a_sign_of_a_float_input_and_of_what_it_is_rounded_to(detached: bool) -> None:
    """The sign has the form where(x == 0, 1, sign(x)). The comparison reads int8 levels, and SIGN reads the floats from
    which they were rounded."""
    model = Int8Model()
    x = model.input(*SHAPE)
    levels = model.quantize8(x, (1 / 16, 3))
    is_zero = model.elementwise("EQUAL", levels, int8_constant("zero", np.zeros(()), 1 / 16, 3), type="BOOL")
    sign = model.op("SELECT_V2", [is_zero, model.const(1), model.elementwise("SIGN", x)], SHAPE)
    signs = model.quantize8(sign, USUAL_GRID)
    if detached:
        taken_away = int8_op(model, "SUB", [signs, levels], (18 / 255, 5))
        signs = int8_op(model, "ADD", [levels, taken_away], (2.1 / 255, 0))
    source = layer_of(model, signs)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary, str(report)
    x = np.random.default_rng(1).uniform(-8, 8, (4, *SHAPE[1:])).astype(np.float32)
    x[0] /= 100  # near the zero point
    expected, actual = (litebnn.Interpreter(each).predict(x).astype(int) for each in (source, converted))
    assert np.max(np.abs(actual - expected)) <= (2 if detached else 1)
    assert np.unique(expected).size > 5


@pytest.mark.parametrize("steps", [8, 40])
def test_what_takes_three_values_is_no_sign_however_near_two_of_them_are(steps: int) -> None:
    """If two values differ by at most twice the coarsest quantization scale, the converter treats them as one value
    that was rounded differently.
    """
    model = Int8Model()
    x = model.input8((1 / 16, 3), *SHAPE)
    level = int8_constant("level", np.full((), 2.0), 1 / 16, 3)
    above = model.elementwise("GREATER", x, level, type="BOOL")
    grid = (1 / 100, 0)
    more, none = (int8_constant(f"more{value}", np.full((), value), *grid) for value in (steps / 100, 0))
    added = on(grid, model.op("SELECT_V2", [above, more, none], SHAPE, type="INT8"))
    signs = int8_op(model, "ADD", [model.sign8(x, "where", grid), added], (1 / 50, 0))
    with pytest.warns(UserWarning, match="no binary layer"):
        _, report = litebnn.convert_tflite(layer_of(model, signs), return_report=True)
    assert not report.layers[0].binary
