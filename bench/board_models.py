"""Makes the models of litebnn-board-benchmark: golden models with inputs and outputs, single layers, and whole
networks.

build/board_models/golden/NAME.tflite, NAME.in, NAME.out
build/board_models/layer/NAME.tflite
build/board_models/network/NAME.tflite
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from litebnn.contract import LCE_BCONV_2D, Padding
from litebnn.convert import convert_tflite
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Graph, Model, Tensor, builtin_op, constant
from toolchains.targets import BUILD, ROOT, VERSION

FOLDER = BUILD / "board_models"
GOLDEN = ROOT / "tests" / "golden"
RELU = 1  # the number of a fused activation

# QuickNet's binary 3×3 layers, and some layers of other shapes: image size, channels, filter width, stride.
LAYERS = (
    (56, 64, 3, 1),
    (28, 128, 3, 1),
    (14, 256, 3, 1),
    (7, 512, 3, 1),
    (14, 256, 1, 1),
    (28, 128, 5, 1),
    (28, 128, 3, 2),
)
# The sections of QuickNet and QuickNetSmall: channels, and the number of binary layers.
NETWORKS = {
    "quicknet": ((64, 4), (128, 4), (256, 4), (512, 4)),
    "quicknet_small": ((32, 4), (64, 4), (256, 4), (512, 4)),
}
SIZE, CLASSES = 224, 1000


def board_models() -> Path:
    """Returns the folder with the models that boards run: golden models, single layers and networks. If the folder is
    missing or was made by another version of litebnn, the function makes it first.
    """
    stamp = FOLDER / "VERSION"
    wanted = f"{VERSION} {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}\n"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return FOLDER
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER.parent, prefix=".board_models.") as temporary:
        work = Path(temporary) / "new"
        for kind in ("golden", "layer", "network"):
            (work / kind).mkdir(parents=True)
        _write_golden(work / "golden")
        for size, channels, taps, stride in LAYERS:
            name = f"{size}x{size}x{channels}_{taps}x{taps}_s{stride}"
            (work / "layer" / f"{name}.tflite").write_bytes(layer(size, channels, taps, stride))
        for name, sections in NETWORKS.items():
            (work / "network" / f"{name}.tflite").write_bytes(network(sections))
        (work / "VERSION").write_text(wanted, encoding="utf-8")
        shutil.rmtree(FOLDER, ignore_errors=True)
        work.rename(FOLDER)
    return FOLDER


def _write_golden(folder: Path) -> None:
    """Writes the golden models with binary layers, their float inputs, and the outputs of Larq Compute Engine."""
    for model in sorted(GOLDEN.glob("*.lce.tflite")):
        name = model.name.removesuffix(".lce.tflite")
        graph, golden = read_model(model.read_bytes()).graphs[0], np.load(GOLDEN / f"{name}.npz")
        is_binary = any(op.name == LCE_BCONV_2D for op in graph.ops)
        # Models with int8 values are left out, because CPUs may round them differently.
        is_exact = not any(tensor.type == "INT8" for op in graph.ops for tensor in op.outputs)
        if is_binary and is_exact and [each.type for each in (*graph.inputs, *graph.outputs)] == ["FLOAT32"] * 2:
            shutil.copy2(model, folder / f"{name}.tflite")
            (folder / f"{name}.in").write_bytes(golden["input"].astype(np.float32).tobytes())
            (folder / f"{name}.out").write_bytes(golden["lce"].astype(np.float32).tobytes())


def layer(size: int, channels: int, taps: int, stride: int) -> bytes:
    """A model of one binary convolution with equal input and output channels, from floats to floats."""
    made = _Builder()
    x = made.input(size, channels)
    return made.finish(x, made.binary_conv(x, channels, taps, stride))


def network(sections: Sequence[tuple[int, int]]) -> bytes:
    """A model of QuickNet's shape with random weights: [1, 224, 224, 3] -> [1, 1000]."""
    made = _Builder()
    x = image = made.input(SIZE, 3)
    x = made.conv(x, sections[0][0] // 4, 3, 2, RELU)
    x = made.conv(made.depthwise(x, 2), sections[0][0], 1, 1)
    for i, (channels, layers) in enumerate(sections):
        if i:
            x = made.depthwise(made.max_pool(x), 2)
            x = made.conv(x, channels, 1, 1)
        for _ in range(layers):
            x = made.arithmetic("ADD", x, made.normalized(made.binary_conv(x, channels, 3, 1)))
    return made.finish(image, made.classes(x))


class _Builder:
    """Builds a float network op by op, in the form that exporters write, with reproducible random weights."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)
        self._graph = Graph("main", [], [], [], [])
        self._count = 0

    def input(self, size: int, channels: int) -> Tensor:
        return Tensor("input", "FLOAT32", (1, size, size, channels))

    def finish(self, x: Tensor, y: Tensor) -> bytes:
        graph = self._graph
        graph.tensors, graph.inputs, graph.outputs = [x], [x], [y]
        return convert_tflite(write_model(Model([graph], [], [], [], None, None, 3, "litebnn")))  # type: ignore[no-any-return]

    def _const(self, values: Any, dtype: Any = np.float32) -> Tensor:
        self._count += 1
        return constant(f"const_{self._count}", np.asarray(values, dtype))

    def _op(
        self, name: str, inputs: Sequence[Tensor], shape: Sequence[int], type: str = "FLOAT32", **options: Any
    ) -> Tensor:
        self._count += 1
        y = Tensor(f"{name.lower()}_{self._count}", type, tuple(shape))
        self._graph.insert(builtin_op(name, inputs, y, **options))
        return y

    def _weights(self, *shape: int) -> Tensor:
        return self._const(self._rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:])))

    def conv(self, x: Tensor, channels: int, taps: int, stride: int, activation: int = 0) -> Tensor:
        weights = self._weights(channels, taps, taps, x.shape[3])
        return self._conv("CONV_2D", x, weights, channels, stride, fused_activation_function=activation)

    def depthwise(self, x: Tensor, stride: int) -> Tensor:
        channels = x.shape[3]
        return self._conv(
            "DEPTHWISE_CONV_2D", x, self._weights(1, 3, 3, channels), channels, stride, depth_multiplier=1
        )

    def _conv(self, name: str, x: Tensor, weights: Tensor, channels: int, stride: int, **options: Any) -> Tensor:
        size = -(-x.shape[1] // stride)
        inputs = [x, weights, self._const(np.zeros(channels))]
        strides: dict[str, Any] = {"stride_h": stride, "stride_w": stride}
        return self._op(name, inputs, (1, size, size, channels), padding=Padding.SAME, **strides, **options)

    def binary_conv(self, x: Tensor, channels: int, taps: int, stride: int) -> Tensor:
        """Adds a convolution of signs by signs with one-padding, and a ReLU."""
        truth = self._op("GREATER_EQUAL", [x, self._const(0)], x.shape, "BOOL")
        y = self._op("SELECT_V2", [truth, self._const(1), self._const(-1)], x.shape)
        if taps > 1:
            size = x.shape[1]
            total = max((-(-size // stride) - 1) * stride + taps - size, 0)
            before, after = total // 2, total - total // 2
            pads = self._const([(0, 0), (before, after), (before, after), (0, 0)], np.int32)
            padded = (1, size + total, size + total, x.shape[3])
            y = self._op("PADV2", [y, pads, self._const(1)], padded)
        weights = self._const(self._rng.choice([-1.0, 1.0], (channels, taps, taps, x.shape[3])))
        size = (y.shape[1] - taps) // stride + 1
        return self._op(
            "CONV_2D",
            [y, weights, self._const(np.zeros(channels))],
            (1, size, size, channels),
            padding=Padding.VALID,
            stride_h=stride,
            stride_w=stride,
            fused_activation_function=RELU,
        )

    def normalized(self, x: Tensor) -> Tensor:
        """Adds a batch normalization in the form that exporters write."""
        channels = x.shape[3]
        x = self.arithmetic("MUL", x, self._const(self._rng.uniform(0.01, 0.03, channels)))
        return self.arithmetic("ADD", x, self._const(self._rng.uniform(-0.5, 0, channels)))

    def arithmetic(self, name: str, x: Tensor, y: Tensor) -> Tensor:
        return self._op(name, [x, y], x.shape, fused_activation_function=0)

    def max_pool(self, x: Tensor) -> Tensor:
        window: dict[str, Any] = {"filter_height": 3, "filter_width": 3, "stride_h": 1, "stride_w": 1}
        return self._op("MAX_POOL_2D", [x], x.shape, padding=Padding.SAME, fused_activation_function=RELU, **window)

    def classes(self, x: Tensor) -> Tensor:
        """Appends the last layers: a mean over the image, and a dense layer whose outputs are the scores of all
        classes."""
        channels = x.shape[3]
        x = self._op("MEAN", [x, self._const([1, 2], np.int32)], (1, channels), keep_dims=False)
        inputs = [x, self._weights(CLASSES, channels), self._const(np.zeros(CLASSES))]
        return self._op("FULLY_CONNECTED", inputs, (1, CLASSES), fused_activation_function=0)


if __name__ == "__main__":
    print(board_models())
