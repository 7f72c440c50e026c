import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Graph, Op, Quantization, Tensor
from litebnn.rules.build.int8 import int8_constant
from litebnn.runtime import find_runtime, load_delegate
from litebnn.runtime.claimed import _KINDS, claimed_ops, joined_in_place
from tests.support.float_models import FloatModel, sign_weights
from tests.support.quantized_models import Int8Model
from toolchains.targets import ROOT

GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.tflite"))
ZOO = sorted((ROOT / "build" / "zoo").glob("*.litebnn.tflite"))


def taken_by_the_library(model: bytes, capfd: pytest.CaptureFixture[str]) -> tuple[int, int]:
    """The number of claimed nodes and the number of all nodes, from the delegate's log."""
    capfd.readouterr()
    delegate = load_delegate(verbose=True)
    find_runtime().Interpreter(model_content=model, experimental_delegates=[delegate])
    found = re.search(r"the delegate takes (\d+) of (\d+) nodes", capfd.readouterr().err)
    assert found is not None
    return int(found[1]), int(found[2])


def taken_by_the_table(model: bytes) -> tuple[int, int]:
    graph = read_model(model).graphs[0]
    return len(claimed_ops(graph)), len(graph.ops)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("path", [*GOLDEN, *ZOO], ids=lambda path: path.stem)
def test_of_models_the_library_takes_what_the_table_says(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = path.read_bytes()
    assert taken_by_the_table(model) == taken_by_the_library(model, capfd)


CHANNELS = 32
KINDS = [
    "bconv",
    "bconv",
    "conv",
    "gate",
    "prelu",
    "sum",
    "broadcast",
    "join",
    "pool",
    "scale",
    "shift",
    "norm",
    "squeeze",
]
RNG = np.random.default_rng(0)


def next_image(model: FloatModel, rng: np.random.Generator, images: list[Tensor]) -> Tensor:
    """Adds a random op that the delegate may claim. The op reads images that the model already has."""
    x = images[-1] if rng.random() < 0.8 else images[int(rng.integers(len(images)))]
    activation = str(rng.choice(["none", "none", "relu", "relu6"]))
    alike = [image for image in images if image.dims == x.dims]
    kind = rng.choice(KINDS)
    values = model.const(rng.choice([-1.5, 0.5, 1.0, 2.0], x.channels))
    if kind in ("bconv", "conv"):
        weights = sign_weights(rng, CHANNELS, 1, 1, x.channels)
        return model.conv(model.sign(x) if kind == "bconv" else x, weights)
    if kind == "gate":
        axes = [[1, 2], [1], []][int(rng.integers(3))]
        mean = model.op(
            "MEAN",
            [x, model.const(axes, np.int32)],
            tuple(1 if axis in axes else size for axis, size in enumerate(x.dims)),
            keep_dims=True,
        )
        op = str(rng.choice(["MUL", "MUL", "MUL", "ADD"]))
        return model.elementwise(op, x, model.op("LOGISTIC", [mean], mean.dims), activation=activation)
    if kind == "squeeze":
        normed = normalized(model, x) if rng.random() < 0.8 else x
        sizes = {"filter_height": x.dims[1], "filter_width": x.dims[2]}
        stride = int(rng.integers(-1, 2))
        options = {"stride_h": x.dims[1] + stride, "stride_w": x.dims[2] + stride, "padding": 1, **sizes}
        average = model.op("AVERAGE_POOL_2D", [normed], (1, 1, 1, x.channels), fused_activation_function=0, **options)
        bits = normed if rng.random() < 0.2 else model.sign(normed)
        result = model.conv(bits, sign_weights(rng, CHANNELS, 1, 1, x.channels))
        if x.channels != CHANNELS:
            return result
        return model.elementwise("MUL", result, model.op("LOGISTIC", [average], average.dims), activation=activation)
    if kind == "prelu":
        return model.op("PRELU", [x, model.const(np.full((1, 1, x.channels), 0.25))], x.dims)
    if kind == "sum":
        return model.elementwise("ADD", x, alike[int(rng.integers(len(alike)))], activation=activation)
    if kind == "broadcast":
        beside = images[int(rng.integers(len(images)))]
        axes = [axis for axis in (1, 2, 3) if rng.random() < 0.4 or beside.dims[axis] != x.dims[axis]]
        dims = (1, *(1 if axis in axes else beside.dims[axis] for axis in (1, 2, 3)))
        reduced = model.op("MEAN", [beside, model.const(axes, np.int32)], dims, keep_dims=True) if axes else beside
        if dims[:2] == (1, 1) and rng.random() < 0.5:
            dims = dims[2:] if dims[2] == 1 and rng.random() < 0.5 else dims[1:]
            reduced = model.op("RESHAPE", [reduced, model.const(dims, np.int32)], dims)
        pair = [x, reduced] if rng.random() < 0.5 else [reduced, x]
        return model.elementwise(str(rng.choice(["ADD", "MUL"])), *pair, activation=activation)
    if kind == "join":
        beside = alike[int(rng.integers(len(alike)))]
        return model.op("CONCATENATION", [x, beside], (*x.dims[:3], 2 * x.channels), axis=3)
    if kind == "pool":
        return model.max_pool(x, 2, int(rng.choice([1, 2])), same=True)
    if kind == "norm":
        return normalized(model, x, activation)
    return model.elementwise("MUL" if kind == "scale" else "ADD", x, values, activation=activation)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("seed", range(200))
def test_of_random_graphs_the_library_takes_what_the_table_says(seed: int, capfd: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(seed)
    model = FloatModel()
    images = [model.input(1, 8, 8, CHANNELS)]
    for _ in range(int(rng.integers(3, 14))):
        images.append(next_image(model, rng, images))
    bits = model.conv(model.sign(images[-1]), sign_weights(rng, CHANNELS, 1, 1, images[-1].channels))
    converted = litebnn.convert_tflite(model.finish(bits, images[int(rng.integers(1, len(images)))]))
    assert taken_by_the_table(converted) == taken_by_the_library(converted, capfd)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("seed", range(40))
def test_of_int8_batch_norms_the_library_takes_what_the_table_says(
    seed: int, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(seed)
    model = FloatModel()
    images = [model.input(1, 8, 8, CHANNELS)]
    for _ in range(int(rng.integers(2, 7))):
        image = images[int(rng.integers(len(images)))]
        bits = model.sign(normalized(model, image) if rng.random() < 0.8 else image)
        images.append(model.conv(bits, sign_weights(rng, CHANNELS, 1, 1, CHANNELS)))
    samples = [rng.normal(size=(1, 8, 8, CHANNELS)).astype(np.float32) for _ in range(2)]
    source = model.finish(*images[1:][-2:])
    converted = litebnn.convert_tflite(source, representative_dataset=samples, inference_input_type="int8")
    assert any(kind in ("int8 scale", "int8 shift") for kind in claimed_ops(read_model(converted).graphs[0]).values())
    assert taken_by_the_table(converted) == taken_by_the_library(converted, capfd)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("axes", [[1], [1, 2], [1, 2, 3]])
@pytest.mark.parametrize("name", ["ADD", "MUL"])
def test_of_what_broadcasts_the_library_takes_what_the_table_says(
    name: str, axes: list[int], capfd: pytest.CaptureFixture[str]
) -> None:
    model = FloatModel()
    x = model.input(1, 8, 8, CHANNELS)
    image = model.conv(model.sign(x), sign_weights(RNG, CHANNELS, 1, 1, CHANNELS))
    dims = [1 if axis in axes else size for axis, size in enumerate(x.dims)]
    mean = model.op("MEAN", [x, model.const(axes, np.int32)], dims, keep_dims=True)
    combined = model.elementwise(name, image, mean)
    converted = litebnn.convert_tflite(model.finish(model.elementwise("ADD", combined, x)))
    assert taken_by_the_table(converted) == taken_by_the_library(converted, capfd)


def normalized(model: FloatModel, x: Tensor, activation: str = "none") -> Tensor:
    values = model.const(RNG.choice([-1.5, 0.5, 1.0, 2.0], x.channels))
    return model.elementwise("ADD", model.elementwise("MUL", x, values), values, activation=activation)


@pytest.mark.parametrize(
    ("reads", "in_place"),
    [
        (lambda model, whole: model.max_pool(whole, 2, 2), True),
        (lambda model, whole: normalized(model, model.max_pool(whole, 2, 2), "relu"), True),
        (lambda model, whole: model.elementwise("ADD", whole, model.max_pool(whole, 1, 1)), False),
        (lambda model, whole: model.conv(whole, RNG.normal(size=(32, 1, 1, 64))), False),
    ],
)
def test_a_concatenation_whose_parts_are_read_in_place_copies_nothing(reads, in_place: bool) -> None:
    model = FloatModel()
    parts = [model.conv(model.sign(model.input(1, 8, 8, 32)), sign_weights(RNG, 32, 1, 1, 32)) for _ in range(2)]
    whole = model.op("CONCATENATION", parts, (1, 8, 8, 64), axis=3)
    graph = read_model(litebnn.convert_tflite(model.finish(reads(model, whole)))).graphs[0]
    joins = {op for op in graph.ops if op.name == "CONCATENATION" and op.output.type == "FLOAT32"}
    assert len(joins) == 1
    assert joined_in_place(graph, claimed_ops(graph)) & joins == (joins if in_place else set())


def test_of_signs_that_are_packed_with_batch_norms_nothing_is_copied() -> None:
    model = FloatModel()
    parts = [normalized(model, model.input(1, 8, 8, 32)) for _ in range(2)]
    whole = model.op("CONCATENATION", [model.sign(part) for part in parts], (1, 8, 8, 64), axis=3)
    graph = read_model(litebnn.convert_tflite(model.finish(model.conv(whole, sign_weights(RNG, 32, 1, 1, 64))))).graphs[
        0
    ]
    joined = {op for op in graph.ops if op.name == "CONCATENATION"}
    assert len(joined) == 1
    assert joined_in_place(graph, claimed_ops(graph)) == joined


@pytest.mark.parametrize(("parts", "joins"), [((0, 1), 2), ((0, 0), 0)])
def test_of_signs_that_are_packed_with_int8_batch_norms_nothing_is_copied(parts, joins: int) -> None:
    grid = (0.05, 3)
    model = Int8Model()
    values = int8_constant("values", np.linspace(-1, 1, 32), *grid)
    packed = [model.packed(model.add8(model.input8(grid, 1, 8, 8, 32), values, grid)) for _ in range(2)]
    whole = model.op("CONCATENATION", [packed[part] for part in parts], (1, 8, 8, 2), type="INT32", axis=3)
    again = model.packed(model.add8(model.input8(grid, 1, 8, 8, 32), values, grid))
    whole = model.op("CONCATENATION", [again, whole], (1, 8, 8, 3), type="INT32", axis=3)
    graph = read_model(model.finish(whole)).graphs[0]
    assert len(joined_in_place(graph, claimed_ops(graph))) == joins


def rows_of_the_library() -> Counter[tuple[object, ...]]:
    """Counts the builtin ops that the library lists, by their properties. The properties are the name, the role in a
    chain of ops that ends in packed signs, and four conditions for claiming the op.
    """
    folder = ROOT / "ops" / "tflite" / "ops"
    listed = re.findall(r"OP\((k\w+OpType)\)", (folder / "op_list.h").read_text())
    sources = "".join(path.read_text() for path in sorted(folder.glob("*.cc")))
    rows: Counter[tuple[object, ...]] = Counter()
    for name in listed:
        [text] = re.findall(rf"^const OpType {name} = \{{(.*?)\}};$", sources, re.DOTALL | re.MULTILINE)
        if "kTfLiteBuiltin" not in text:
            continue
        [op, *_] = re.findall(r"\"(\w+)\"", text)
        role = re.search(r"SignFeed::k(\w+)", text)
        # The C++ code sets the field `follows` of an OpType either by name, or by its position after `computes`. If the
        # field is not set, the delegate claims the op after any claimed op.
        follows = re.search(r"\.follows = |kTfLiteBuiltin\w+,\s*[\w<>]+,\s*(?!nullptr)\w+", text) is not None
        flags = [f".{field} = true" in text for field in ("needs_reader", "is_sole_reader", "stands_alone")]
        rows[(op, role[1] if role else "None", follows, *flags)] += 1
    return rows


def test_the_table_has_the_rows_of_the_library() -> None:
    here = Counter(
        (
            kind.op,
            "Passes" if kind.passes else "Begins" if kind.begins else "None",
            bool(kind.follows),
            kind.needs_reader,
            kind.is_sole_reader,
            kind.stands_alone,
        )
        for kind in _KINDS.values()
    )
    assert here == rows_of_the_library()


def int8_network(rng: np.random.Generator) -> FloatModel:
    """A first convolution, and binary layers whose outputs are added, averaged and joined before the next ones."""
    model = FloatModel()
    channels, groups = int(rng.choice([1, 3, 4, 5, 9])), int(rng.choice([1, 1, 2]))
    image = model.input(1, 12, 12, groups * channels)
    kernel = rng.normal(size=(CHANNELS, int(rng.choice([1, 3, 7])), 3, channels)).astype(np.float32)
    activations = ["none", "relu", "relu6", "relu1"]
    images = [model.conv(image, kernel, np.zeros(CHANNELS), same=True, activation=str(rng.choice(activations)))]
    for _ in range(int(rng.integers(2, 8))):
        x = images[-1]
        alike = [each for each in images if each.dims == x.dims]
        activation = str(rng.choice(activations))
        kind = rng.choice(["bconv", "bconv", "sum", "sum", "average", "max", "conv", "join"])
        if kind == "sum":
            y = model.elementwise("ADD", x, alike[int(rng.integers(len(alike)))], activation=activation)
        elif kind == "average":
            options = {"stride_h": 2, "stride_w": 1, "filter_height": 2, "filter_width": 3, "padding": 0}
            y = model.op("AVERAGE_POOL_2D", [x], (1, (x.dims[1] + 1) // 2, x.dims[2], CHANNELS), **options)
        elif kind == "max":
            y = model.max_pool(x, 2, 1, same=True)
        elif kind == "join":
            whole = model.op("CONCATENATION", [x, alike[0]], (*x.dims[:3], 2 * CHANNELS), axis=3)
            y = model.conv(model.sign(whole), sign_weights(rng, CHANNELS, 1, 1, 2 * CHANNELS))
        else:
            weights = sign_weights(rng, CHANNELS, 1, 1, CHANNELS)
            y = model.conv(model.sign(x) if kind == "bconv" else x, weights, activation=activation)
        images.append(y)
    images.append(model.conv(model.sign(images[-1]), sign_weights(rng, CHANNELS, 1, 1, CHANNELS)))
    model.graph.outputs = [images[-1], images[-2]]
    return model


@pytest.mark.usefixtures("library")
@pytest.mark.filterwarnings("ignore:experimental_default_int8_range")
@pytest.mark.parametrize("seed", range(60))
def test_of_int8_networks_the_library_takes_what_the_table_says(seed: int, capfd: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(seed)
    model = int8_network(rng)
    source = model.finish(*dict.fromkeys(model.graph.outputs))
    limits = float(rng.uniform(0.5, 8))
    converted = litebnn.convert_tflite(source, experimental_default_int8_range=(-limits, limits))
    assert taken_by_the_table(converted) == taken_by_the_library(converted, capfd)


def int8_graph(kind: str) -> tuple[Graph, Op]:
    """A converted int8 network with a first convolution, a binary layer, a sum and a pool, and its op of a kind."""
    model = FloatModel()
    rng = np.random.default_rng(0)
    first = model.conv(model.input(1, 8, 8, 3), rng.normal(size=(CHANNELS, 3, 3, 3)).astype(np.float32), same=True)
    layer = model.conv(model.sign(first), sign_weights(rng, CHANNELS, 3, 3, CHANNELS), same=True)
    total = model.elementwise("ADD", layer, first)
    options = {"stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2, "padding": 1}
    pool = "AVERAGE_POOL_2D" if kind == "int8 average" else "MAX_POOL_2D"
    pooled = model.op(pool, [total], (1, 4, 4, CHANNELS), fused_activation_function=0, **options)
    graph = read_model(litebnn.convert_tflite(model.finish(pooled), experimental_default_int8_range=(-8, 8))).graphs[0]
    [op] = [op for op, found in claimed_ops(graph).items() if found == kind]
    return graph, op


@pytest.mark.filterwarnings("ignore:experimental_default_int8_range")
@pytest.mark.parametrize("kind", ["int8 average", "int8 max pool", "int8 sum"])
@pytest.mark.parametrize("grid", [(np.inf, 0), (np.nan, 0), (0.0, 0), (-1.0, 0), (0.1, 128), (0.1, -129)])
def test_int8_images_with_wrong_scales_or_zero_points_are_not_claimed(kind: str, grid: tuple[float, int]) -> None:
    graph, op = int8_graph(kind)
    for tensor in (op.input(0), op.output):
        tensor.quantization = Quantization(np.array(grid[:1], np.float32), np.array(grid[1:]), 0)
    assert op not in claimed_ops(graph)


@pytest.mark.filterwarnings("ignore:experimental_default_int8_range")
@pytest.mark.parametrize("kind", ["int8 average", "int8 max pool", "int8 stem"])
def test_an_int8_op_with_two_outputs_is_not_claimed(kind: str) -> None:
    graph, op = int8_graph(kind)
    op.outputs = [op.output, op.output]
    assert op not in claimed_ops(graph)


@pytest.mark.filterwarnings("ignore:experimental_default_int8_range")
def test_an_int8_sum_whose_scale_is_too_small_for_fixed_point_is_not_claimed() -> None:
    graph, op = int8_graph("int8 sum")
    op.output.quantization = Quantization(np.array([1e-9], np.float32), np.zeros(1, np.int64), 0)
    assert op not in claimed_ops(graph)
