from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.contract import LITEBNN_UNPACK_WEIGHTS
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Buffer, Graph, Op, Tensor, constant
from litebnn.rules.build.ops import custom_op
from litebnn.runtime.find import find_runtime
from litebnn.safety import check_custom_ops, mistakes
from tests.support import lce_models
from tests.support.float_models import FloatModel, binarized, sign_weights
from tests.support.lce_models import Conv

GOLDEN = Path(__file__).parents[3] / "tests" / "golden"


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.lce.tflite")), ids=lambda file: file.name.split(".")[0])
def test_models_that_load_are_sound(file: Path) -> None:
    for graph in read_model(file.read_bytes()).graphs:
        check_custom_ops(graph)


def converted() -> Graph:
    return read_model(litebnn.convert_tflite(GOLDEN / "bmaxpool.float.tflite")).graphs[0]


def retyped(op: Op) -> None:
    op.output.type = "INT16"


def reshaped(op: Op) -> None:
    op.output.shape = (*op.output.shape[:-1], op.output.shape[-1] + 1)


@pytest.mark.parametrize("name", ["LceQuantize", "LceBconv2d", "LceBMaxPool2d"])
@pytest.mark.parametrize(("damage", "reason"), [(retyped, "is INT16, expected"), (reshaped, "has shape .*, expected")])
def test_what_the_library_refuses_is_named(name: str, damage: Callable[[Op], None], reason: str) -> None:
    graph = converted()
    damage(next(op for op in graph.ops if op.name == name))
    with pytest.raises(ConversionError, match=rf'op \d+ \({name}\): ".*" {reason}'):
        check_custom_ops(graph)


@pytest.mark.parametrize("index", [2, 3])
def test_constants_have_a_value_for_each_channel(index: int) -> None:
    graph = converted()
    op = next(op for op in graph.ops if op.name == "LceBconv2d" and op.optional(index) is not None)
    op.input(index).shape = (op.input(index).shape[0] + 1,)
    with pytest.raises(ConversionError, match="has shape"):
        check_custom_ops(graph)


def unpacking(zeros: bool = True) -> Op:
    signs = constant("signs", np.zeros((2, 4), np.int32))
    inputs = [
        signs,
        constant("scales", np.ones(2, np.float32)),
        *[constant("zeros", np.zeros((2, 4), np.int32))] * zeros,
    ]
    return custom_op(LITEBNN_UNPACK_WEIGHTS, inputs, Tensor("weights", "FLOAT32", (2, 3, 40)))


def test_packed_weights_that_load_are_sound() -> None:
    assert not [*mistakes(unpacking())]
    assert not [*mistakes(unpacking(zeros=False))]
    one_row = unpacking()
    one_row.inputs[:2] = [constant("signs", np.zeros((1, 1), np.int32)), constant("scales", np.ones(8, np.float32))]
    one_row.inputs[2:] = []
    one_row.output.shape = (1, 3, 8)
    assert not [*mistakes(one_row)]


@pytest.mark.parametrize(
    ("index", "changed", "reason"),
    [
        (0, np.zeros((2, 5), np.int32), '"signs" has shape [2, 5], expected [2, 4]'),
        (0, np.zeros(8, np.int32), '"weights" has shape [2, 3, 40] and its signs [8], expected rows of signs'),
        (0, np.zeros((2, 4), np.float32), '"signs" is FLOAT32, expected INT32'),
        (1, np.ones(3, np.float32), '"scales" has shape [3], expected a value for each of 2 channels'),
        (2, np.zeros((2, 3), np.int32), '"zeros" has shape [2, 3], expected [2, 4]'),
        (1, None, '"scales" is not constant'),
    ],
)
def test_packed_weights_that_the_library_refuses(index: int, changed: Any, reason: str) -> None:
    op = unpacking()
    name = op.input(index).name
    op.inputs[index] = Tensor(name, "FLOAT32", (2,)) if changed is None else constant(name, changed)
    assert reason in [*mistakes(op)]


def test_more_dimensions_than_the_library_takes_are_named() -> None:
    graph = converted()
    quantize = next(op for op in graph.ops if op.name == "LceQuantize")
    quantize.input(0).shape = (1,) * 257
    with pytest.raises(ConversionError, match="LceQuantize.* has 257 dimensions, expected at most 256"):
        check_custom_ops(graph)


def test_a_pool_of_another_rank_is_named() -> None:
    graph = converted()
    pool = next(op for op in graph.ops if op.name == "LceBMaxPool2d")
    pool.input(0).shape = (1, *pool.input(0).shape)
    with pytest.raises(ConversionError, match="LceBMaxPool2d.* has shape .*, expected 4 dimensions"):
        check_custom_ops(Graph("", graph.tensors, [pool.input(0)], pool.outputs, [pool]))


def conv(**changed: Any) -> bytes:
    """A model of an LceBconv2d with changed options. If the new value of an option is None, the option is left out."""
    return Conv((1, 4, 4, 64), 6, changed=changed).model()


def packed_conv(channels_in: int, padding: int = 0) -> bytes:
    return Conv((1, 4, 4, channels_in), 6, pad_values=0, padding=padding, output="packed").model()


def conv_of(filter_words: tuple[int, ...], channels_in: int, *, is_constant: bool = True) -> bytes:
    """A model of an LceBconv2d whose filter does not fit its options and tensors."""
    graph = lce_models.Graph()
    source = graph.tensor((1, 4, 4, -(-channels_in // 32)), name="input")
    words = graph.tensor(filter_words, data=np.zeros(filter_words, np.int32) if is_constant else None, name="filter")
    output = graph.tensor((1, 4, 4, filter_words[0]), "float32", name="output")
    graph.custom(
        "LceBconv2d", [source, words], [output], {**Conv((1, 4, 4, 64), 6).options, "channels_in": channels_in}
    )
    return graph.build([source] if is_constant else [source, words], [output])


def pool(**changed: Any) -> bytes:
    return lce_models.bmaxpool_model((1, 4, 4, 2), (2, 2), (2, 2), 1, changed)


def wide_pool(width: int) -> bytes:
    return lce_models.bmaxpool_model((1, 4, 4, 2), (2, 2), (2, 1), 0, {"filter_width": width})


# Models to refuse, each with the op library's message. The messages have the form "litebnn: OP: ...".
REFUSED: dict[str, tuple[bytes, str]] = {
    "zero point above int8": (lce_models.quantize_model((2, 40), "int8", 0.5, 128), "zero point 128, expected"),
    "zero point below int8": (lce_models.quantize_model((2, 40), "int8", 0.5, -129), "zero point -129, expected"),
    "zero point of an output": (lce_models.dequantize_model((2, 40), "int8", 0.5, 200), "zero point 200, expected"),
    "output without a scale": (lce_models.dequantize_model((2, 40), "int8"), "INT8 without a scale"),
    "output of infinite scale": (lce_models.dequantize_model((2, 40), "int8", np.inf), "INT8 without a scale"),
    "33 keys": (conv(**{f"key{i}": i for i in range(25)}), "33 keys"),
    "missing option": (conv(stride_width=None), "option stride_width: .* found none"),
    "fraction": (conv(stride_width=1.0), "option stride_width: .* another type"),
    "boolean": (pool(stride_width=True), "option stride_width: .* another type"),
    "stride of nothing": (conv(stride_height=0), "option stride_height: expected an integer from 1 to 2147483647"),
    "dilation of nothing": (conv(dilation_height_factor=0), "option dilation_height_factor: .* found 0"),
    "no channels": (conv(channels_in=0), "option channels_in: .* found 0"),
    "large option": (conv(stride_height=2**31), "option stride_height: .* found 2147483648"),
    "unknown activation": (conv(fused_activation_function=4), "expected an integer from 0 to 3, found 4"),
    "unknown padding": (conv(padding=2), "option padding: expected an integer from 0 to 1, found 2"),
    "unknown values to pad with": (conv(pad_values=2), "option pad_values: expected an integer from 0 to 1"),
    "explicit padding in part": (conv(padding=None, pad_top=1, pad_bottom=1, pad_left=1), "option pad_right: .* none"),
    "negative padding": (
        conv(padding=None, pad_top=-1, pad_bottom=0, pad_left=0, pad_right=0),
        "option pad_top: expected an integer from 0",
    ),
    "explicit padding of a pool": (pool(padding=None, pad_top=0), "option padding: .* found none"),
    "pool of nothing": (pool(filter_width=0), "option filter_width: .* found 0"),
    "pool's stride of nothing": (pool(stride_height=0), "option stride_height: .* found 0"),
    "pool that does not fit": (pool(filter_height=5), "reaches over 5, expected 4 at most"),
    "pool beyond INT32": (wide_pool(2**31 - 1), "reaches beyond 2147483647"),
    "pool one beyond INT32": (wide_pool(2**31 - 3), "reaches beyond 2147483647"),
    "window that does not fit": (conv(padding=1, dilation_width_factor=2), "reaches over 5, expected 4 at most"),
    "filter of no constant": (conv_of((6, 1, 1, 2), 64, is_constant=False), "is not constant"),
    "words of no group": (conv_of((6, 1, 1, 2), 96), "2 words, expected 3 or a divisor"),
    "words of half a group": (conv_of((6, 1, 1, 1), 80), "1 words, expected 3 or a divisor"),
    "groups that do not divide": (conv_of((5, 1, 1, 1), 64), "5 output channels, expected a multiple of 2 groups"),
    "half a channel": (packed_conv(33), "33 channels a group, expected an even number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_library_refuses(name: str) -> None:
    content, reason = REFUSED[name]
    with pytest.raises(ConversionError, match=rf"^op 0 \(Lce\w+\): .*{reason}"):
        check_custom_ops(read_model(content).graphs[0])


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_library_refuses_is_not_handed_on_as_converted(name: str) -> None:
    content, reason = REFUSED[name]
    with pytest.raises(ConversionError, match=rf"^the model would not load: op 0 \(Lce\w+\): .*{reason}"):
        litebnn.convert_tflite(content)


def test_options_that_are_cut_off_are_not_handed_on_as_converted() -> None:
    model = read_model(conv())
    op = model.graphs[0].ops[0]
    whole = op.custom_options
    for length in range(1, len(whole)):
        op.custom_options = whole[:length]
        with pytest.raises(ConversionError, match=r"^the model would not load: op 0 \(LceBconv2d\): "):
            litebnn.convert_tflite(write_model(model))


TAKEN = [
    lce_models.quantize_model((2, 40), "int8", 0.5, -128),
    lce_models.quantize_model((2, 40), "int8", 0.5, 127),
    lce_models.quantize_model((2, 40), "int8"),
    lce_models.dequantize_model((2, 40), "int8", 0.5, 127),
    conv(**{f"key{i}": i for i in range(24)}),
    conv(pad_top=-1),
    packed_conv(33, padding=1),
    packed_conv(34),
    conv_of((6, 1, 1, 1), 64),
    conv_of((6, 1, 1, 2), 128),
    lce_models.bmaxpool_model((1, 4, 4, 2), (4, 4), (1, 1), 1),
    lce_models.bmaxpool_model((1, 4, 4, 2), (1, 2**31 - 4), (1, 1), 0),
]


@pytest.mark.parametrize("content", TAKEN)
def test_what_the_library_takes(content: bytes) -> None:
    check_custom_ops(read_model(content).graphs[0])


@pytest.mark.usefixtures("library")
def test_the_library_says_the_same() -> None:
    runtime: Any = find_runtime()

    def prepare(content: bytes) -> None:
        delegates = [litebnn.load_delegate()]
        runtime.Interpreter(model_content=content, experimental_delegates=delegates).allocate_tensors()

    for content, _ in REFUSED.values():
        with pytest.raises((RuntimeError, ValueError), match=r"litebnn: Lce\w+"):
            prepare(content)
    for content in TAKEN:
        prepare(content)


def test_of_equal_keys_the_first_counts() -> None:
    graph = read_model(pool()).graphs[0]
    graph.ops[0].custom_options = graph.ops[0].custom_options.replace(b"stride_width", b"filter_width")
    with pytest.raises(ConversionError, match="option stride_width: .* found none"):
        check_custom_ops(graph)


def test_constants_that_no_kernel_can_read() -> None:
    sparse, shifted = read_model(conv()).graphs[0], read_model(conv()).graphs[0]
    sparse.ops[0].input(1).is_sparse = True
    with pytest.raises(ConversionError, match='"filter" is sparse'):
        check_custom_ops(sparse)
    words = shifted.ops[0].input(1)
    assert words.buffer.data is not None
    words.buffer = Buffer(np.concatenate([np.zeros(1, np.uint8), words.buffer.data])[1:])
    with pytest.raises(ConversionError, match='"filter" lies at an address that is no multiple of 4'):
        check_custom_ops(shifted)


def test_more_bits_than_a_sum_holds() -> None:
    graph = read_model(conv_of((1, 1, 1, 2), 64)).graphs[0]
    graph.ops[0].inputs[1] = constant("filter", np.zeros((1, 1 << 13, 1 << 12, 2), np.int32))
    with pytest.raises(ConversionError, match="expected 2147483647 bits at most for a channel"):
        check_custom_ops(graph)


def test_constants_are_shared_only_so_often() -> None:
    graph = read_model(conv_of((2, 64, 64, 64), 2048)).graphs[0]
    [op] = graph.ops
    # The constants have 2 MiB, so the limit on repacked weights is 16 MiB plus 16 times 2 MiB.
    for _ in range(8 + 16 - 1):
        graph.insert(Op(op.code, list(op.inputs), list(op.outputs), op.options, op.custom_options))
    check_custom_ops(graph)
    graph.insert(Op(op.code, list(op.inputs), list(op.outputs), op.options, op.custom_options))
    with pytest.raises(ConversionError, match="op 24 .*its constants are shared more than 16 times"):
        check_custom_ops(graph)


def test_more_values_than_are_counted_whatever_the_batch() -> None:
    for width, is_too_many in ((1 << 15, False), (1 << 16, True)):
        model = FloatModel()
        model.packed(model.input(1, 1 << 10, width, 32, signature=(-1, 1 << 10, width, 32)))
        [op] = model.graph.ops
        assert (
            bool([mistake for mistake in mistakes(op) if "expected 1 to 2147483647 values" in mistake]) is is_too_many
        )


@pytest.mark.parametrize(("dilation", "size"), [(1, 7), (2, 5), (3, 3)])
def test_a_window_reaches_as_far_as_its_taps_are_apart(dilation: int, size: int) -> None:
    model = FloatModel()
    signs, weights = model.sign(model.input(1, 9, 9, 32)), sign_weights(np.random.default_rng(0), 8, 3, 3, 32)
    built, _ = binarized(model, model.conv(signs, weights, dilation=(dilation, dilation)))
    check_custom_ops(built.graphs[0])
    layer = built.graphs[0].ops[-1]
    assert (layer.name, layer.output.dims) == ("LceBconv2d", (1, size, size, 8))
    layer.output.shape = (1, size, size + 1, 8)
    with pytest.raises(ConversionError, match=rf"expected \[1, {size}, {size}, 8\]"):
        check_custom_ops(built.graphs[0])
