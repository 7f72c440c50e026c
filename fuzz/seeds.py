"""Makes the committed seeds, which are the inputs that fuzzing starts from.

The seeds are golden models, their options and graphs, small images, options of the delegate, and random bytes. From
random bytes, a fuzz target decides which model or layer it tests, and what it damages.

python -m fuzz.seeds
"""

import io
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from fuzz.__main__ import Target, build, targets
from litebnn.analysis.quantization import parameters
from litebnn.contract import (
    CUSTOM_OPS,
    LCE_BCONV_2D,
    LCE_BMAXPOOL_2D,
    LCE_DEQUANTIZE,
    LCE_QUANTIZE,
    LITEBNN_UNPACK_WEIGHTS,
    BConv2DOptions,
    Padding,
    PadValues,
)
from litebnn.flatbuffer import read_model
from litebnn.flatbuffer.round_trip_test import everything, pack
from litebnn.graph import Graph, Op, Quantization, Tensor
from litebnn.rules.build.bconv import bconv_of
from tests.support.float_models import FloatModel
from tests.support.quantized_models import Int8Model
from toolchains.targets import ROOT

CORPUS = ROOT / "fuzz" / "corpus"
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.lce.tflite"))
# Tensor types and ops, in the order in which fuzz/targets/graphs_fuzz.cc numbers them.
TYPES = ["FLOAT32", "INT32", "INT8", "BOOL", "INT64"]
OPS = [
    *(LCE_QUANTIZE, LCE_DEQUANTIZE, LCE_BMAXPOOL_2D, LCE_BCONV_2D, LITEBNN_UNPACK_WEIGHTS),
    *("ADD", "MUL", "MAX_POOL_2D", "CONCATENATION", "CONV_2D", "AVERAGE_POOL_2D", "PRELU"),
]
# The options of the builtin ops. Pools have TfLitePoolParams with SAME padding, CONV_2D has TfLiteConvParams with SAME
# padding, and CONCATENATION has the last axis. Other ops have zeros.
BUILTIN_OPTIONS = {
    "MAX_POOL_2D": (1, 2, 2, 2, 2, 0),
    "AVERAGE_POOL_2D": (1, 2, 2, 2, 2, 0),
    "CONV_2D": (1, 1, 1, 0, 1, 1),
    "CONCATENATION": (-1,),
}
NO_TENSOR = 255
# The maximum size of a seed in bytes. Larger seeds would slow down every run.
LARGEST = 8192


def options() -> Iterator[tuple[str, bytes]]:
    """The options of each custom op in the golden models, with a name for the seed."""
    for path in GOLDEN:
        for graph in read_model(path.read_bytes()).graphs:
            for index, op in enumerate(graph.ops):
                if op.custom_options:
                    yield f"{path.name.split('.')[0]}-{index}", bytes(op.custom_options)


def graphs() -> Iterator[tuple[str, bytes]]:
    """The golden models' ops that the delegate claims, in the format of fuzz/targets/graphs_fuzz.cc."""
    for path in GOLDEN:
        graph = read_model(path.read_bytes()).graphs[0]
        data = graph_bytes(graph) + b"\0"
        if len(data) <= LARGEST:
            yield path.name.split(".")[0], data
    yield "joined", graph_bytes(joined()) + b"\0"
    yield "gated", graph_bytes(gated()) + b"\0"
    yield "unpacked", graph_bytes(unpacked()) + b"\0"
    yield "stem", graph_bytes(stem("AVERAGE_POOL_2D")) + b"\0"
    yield "stem-max", graph_bytes(stem("MAX_POOL_2D")) + b"\0"


def joined() -> Graph:
    """A graph with a concatenation of unpacked signs and an image. A batch norm follows, with a max pool between its
    MUL and ADD, and then a packing of signs.
    """
    model = FloatModel()
    signs = model.op(LCE_DEQUANTIZE, [model.packed(model.input(1, 3, 3, 3))], (1, 3, 3, 3), table=None)
    whole = model.op("CONCATENATION", [signs, model.input(1, 3, 3, 2)], (1, 3, 3, 5), axis=3)
    scaled = model.elementwise("MUL", whole, model.const([0.5, -1, 2, 0, 1]))
    shifted = model.elementwise("ADD", model.max_pool(scaled, 2, 2, same=True), model.const([1, 0, -1, 2, 0.5]))
    graph: Graph = model.model(model.packed(shifted)).graphs[0]
    return graph


def gated() -> Graph:
    """A graph that multiplies unpacked signs by a gate. A PRELU, the addition of an image and a packing of signs
    follow."""
    model, shape = FloatModel(), (2, 3, 3, 3)
    signs = model.op(LCE_DEQUANTIZE, [model.packed(model.input(*shape))], shape, table=None)
    product = model.elementwise("MUL", model.input(2, 1, 1, 3), signs)
    leaked = model.op("PRELU", [product, model.const([0.5, -1, 2])], shape, table=None)
    graph: Graph = model.model(model.packed(model.elementwise("ADD", model.input(*shape), leaked))).graphs[0]
    return graph


def unpacked() -> Graph:
    """A graph that unpacks weights of ±1 and 0 for three channels, and adds them to an image. A packing of signs
    follows."""
    model, rng, shape = FloatModel(), np.random.default_rng(6), (3, 2, 2, 10)
    words = [model.const(rng.integers(-(2**31), 2**31, (3, 2)), np.int32) for _ in range(2)]
    weights = model.op(LITEBNN_UNPACK_WEIGHTS, [words[0], model.const([0.5, 1, 2]), words[1]], shape, table=None)
    graph: Graph = model.model(model.packed(model.elementwise("ADD", model.input(*shape), weights))).graphs[0]
    return graph


def stem(pool: str) -> Graph:
    """A graph with a convolution of an int8 image, a binary layer to int8, the sum of both, and a pool of the sum."""
    model, rng, shape = Int8Model(), np.random.default_rng(5), (1, 4, 3, 6)
    weights, bias = rng.normal(size=(6, 3, 3, 3)), rng.normal(size=6)
    image = model.conv8(model.input8((0.02, -5), 1, 4, 3, 3), weights, bias, (0.1, 3), same=True, activation="none")
    convolved = Tensor("convolved", "INT8", shape)
    convolved.quantization = parameters(0.75, -7)
    layer = BConv2DOptions(channels_in=6, padding=Padding.SAME, pad_values=PadValues.ONE)
    negative, ones = rng.random((6, 3, 3, 6)) < 0.5, np.ones(6, np.float32)
    model.graph.insert(bconv_of(model.packed(image), convolved, "binary", negative, ones, 0 * ones, layer))
    total = model.add8(image, convolved, (0.8, 2))
    sizes = {"stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}
    options = {"padding": Padding.SAME, "fused_activation_function": 0}
    pooled = model.op(pool, [total], (1, 2, 2, 6), type="INT8", **sizes, **options)
    graph: Graph = model.model(model.as_(total, pooled, 2)).graphs[0]
    return graph


def graph_bytes(graph: Graph) -> bytes:
    """Encodes a graph for the target `graphs`, with the ops in OPS only. Tensors that left-out ops write become inputs
    of the encoded graph, and tensors that left-out ops read become outputs."""
    ops = [op for op in graph.ops if op.name in OPS]
    tensors: list[Tensor] = []
    for op in ops:
        tensors += [tensor for tensor in (*op.inputs, *op.outputs) if tensor is not None and tensor not in tensors]
    written = [tensor for op in ops for tensor in op.outputs]
    read = [tensor for op in ops for tensor in op.inputs]
    inputs = [tensor for tensor in tensors if tensor not in written and not tensor.is_constant]
    outputs = [tensor for tensor in written if tensor not in read or tensor in graph.outputs]

    def indices(some: Sequence[Tensor | None]) -> bytes:
        return bytes([len(some), *(NO_TENSOR if tensor is None else tensors.index(tensor) for tensor in some)])

    parts = [bytes([len(tensors)]), *map(tensor_bytes, tensors), bytes([len(ops)])]
    for op in ops:
        parts += [bytes([OPS.index(op.name)]), indices(op.inputs), indices(op.outputs), option_bytes(op)]
    return b"".join([*parts, indices(inputs), indices(outputs)])


def tensor_bytes(tensor: Tensor) -> bytes:
    scale, zero_point = tensor.per_tensor_quantization or (0.0, 0)
    # The ops read arrays of scales only of constant int8 tensors, so the seeds have no such arrays for other tensors.
    grids = tensor.quantization if tensor.is_constant and tensor.type == "INT8" else None
    data = b"" if tensor.buffer.data is None else tensor.buffer.data.tobytes()
    return (
        bytes([TYPES.index(tensor.type), len(tensor.shape)])
        + struct.pack(f"<{len(tensor.shape)}i", *tensor.shape)
        + struct.pack("<fiB", scale, zero_point, bool(data) + 4 * (grids is not None))
        + (struct.pack("<I", len(data)) + data if data else b"")
        + (b"" if grids is None else grid_bytes(grids))
    )


def grid_bytes(grids: Quantization) -> bytes:
    count = grids.scale.size
    return (
        struct.pack(f"<B{count}f", count, *grids.scale)
        + struct.pack(f"<B{count}i", count, *grids.zero_point)
        + bytes([grids.axis])
    )


def option_bytes(op: Op) -> bytes:
    if op.name in CUSTOM_OPS:
        data = bytes(op.custom_options or b"")
        return struct.pack("<H", len(data)) + data
    # A seed does not contain the options that a builtin op has in the model, because fuzzing needs only the op's
    # tensors. Six integers take the place of the options: those that BUILTIN_OPTIONS has for the op, then zeros.
    return struct.pack("<6i", *(*BUILTIN_OPTIONS.get(op.name, ()), *(0,) * 6)[:6])


def images() -> Iterator[tuple[str, bytes]]:
    """A picture in every format of label_image, after a byte that selects 1 or 3 channels."""
    picture = Image.fromarray(np.random.default_rng(3).integers(0, 256, (9, 13, 3), np.uint8))
    formats = {
        "8-bit.bmp": ("L", "BMP"),
        "1-bit.bmp": ("1", "BMP"),
        "24-bit.bmp": ("RGB", "BMP"),
        "color.png": ("RGB", "PNG"),
        "palette.png": ("P", "PNG"),
        "baseline.jpg": ("RGB", "JPEG"),
        "progressive.jpg": ("RGB", "JPEG"),
        "color.ppm": ("RGB", "PPM"),
        "grey.pgm": ("L", "PPM"),
    }
    for name, (mode, kind) in formats.items():
        file = io.BytesIO()
        picture.convert(mode).save(file, kind, **({"progressive": True} if name.startswith("progressive") else {}))
        yield name, bytes([len(mode) % 2]) + file.getvalue()


def files() -> Iterator[tuple[str, bytes]]:
    """The small golden models themselves, as files."""
    for path in sorted(GOLDEN[0].parent.glob("*.tflite")):
        data = path.read_bytes()
        if len(data) <= LARGEST // 2:
            yield path.stem, data
    # The seed with the name `everything` contains the parts of the .tflite schema that no golden model contains.
    yield "everything", pack(everything())


def decisions(count: int, size: int) -> Iterator[tuple[str, bytes]]:
    """Random bytes, each of which selects a model and its damage; fuzzing discovers better inputs."""
    for seed in range(count):
        yield f"{seed:02}", np.random.default_rng(seed).bytes(size)


def delegate_options() -> Iterator[tuple[str, bytes]]:
    """Valid and invalid options in the format of fuzz/targets/delegate_fuzz.cc."""
    lines = {
        "none": "",
        "all": "\nnum_threads 2\nisa portable\nverbose 0",
        "environment": "portable\nnum_threads 1",
        "unknown_isa": "none",
        "wrong_isa": "\nisa none",
        "wrong_number": "\nnum_threads 2x",
        "too_large": "\nnum_threads 99999999999999999999",
        "wrong_verbose": "\nverbose 2",
        "unknown": "\nthreads 2",
    }
    yield from ((name, text.encode()) for name, text in lines.items())


def needed(target: Target, seeds: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Selects, by libFuzzer's merge, few of a C++ target's seeds that together reach the same code as all seeds."""
    build([target])
    with tempfile.TemporaryDirectory() as folder:
        given, kept = Path(folder) / "given", Path(folder) / "kept"
        write(given, seeds)
        kept.mkdir()
        merge = ["-merge=1", "-set_cover_merge=1", "-use_counters=0", str(kept), str(given)]
        subprocess.run([str(target.program(covering=False)), *merge], check=True, stderr=subprocess.DEVNULL)
        yield from ((path.name, path.read_bytes()) for path in sorted(kept.iterdir()))


def write(folder: Path, seeds: Iterator[tuple[str, bytes]]) -> None:
    """Writes each distinct seed to a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    known: set[bytes] = set()
    for name, data in seeds:
        if data not in known:
            (folder / name).write_bytes(data)
        known.add(data)


def main() -> int:
    """Runs the command line and returns the exit code."""
    made = {
        "options": options(),
        "delegate": delegate_options(),
        "graphs": graphs(),
        "images": images(),
        "reader": files(),
    }
    made |= {"passes": decisions(40, 3072), "verify": decisions(2, 64)}
    for name, seeds in made.items():
        write(CORPUS / name, seeds)
    write(CORPUS / "layers", needed(targets()["layers"], decisions(2500, 64)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
