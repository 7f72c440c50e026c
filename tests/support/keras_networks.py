"""Makes random binary networks with larq or with litebnn.keras, with the same weights, and writes their outputs and
converted files.

The script is a separate program, because a process has only one version of Keras, with one backend. For each seed it
writes `SEED.tflite` and `SEED.npz`. In the latter, `x` and `y` are inputs and the trainer's outputs. `binary` has a
bool for each layer, true if the conversion made it binary. `expected` is the number of layers that must be binary.
`named` and `layers` are the layers' names in the report and in the trainer.

Usage:

    python -m tests.support.keras_networks larq|keras FOLDER FIRST_SEED SEEDS
"""

import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

SIGNS = ["ste_sign", "approx_sign", "swish_sign"]
KERNEL_SIGNS = [*SIGNS, "magnitude_aware_sign"]
SAMPLES = 4


class Builder:
    """Draws a random sequence of layers. The same seed gives the same network in larq and in litebnn.keras."""

    def __init__(self, bnn: Any, keras: Any, seed: int) -> None:
        self.bnn, self.layers, self.keras = bnn.layers, keras.layers, keras
        self.rng = np.random.default_rng(seed)
        self.binary = 0

    def draw(self, choices: list[Any]) -> Any:
        return choices[self.rng.integers(len(choices))]

    def signs(self) -> dict[str, Any]:
        self.binary += 1
        return {
            "input_quantizer": self.draw(SIGNS),
            "kernel_quantizer": self.draw(KERNEL_SIGNS),
            "kernel_constraint": "weight_clip",
            "use_bias": self.draw([True, False]),
        }

    def norm(self, x: Any) -> Any:
        return self.layers.BatchNormalization(scale=self.draw([True, False]))(x)

    def conv(self, x: Any, filters: int, strides: int = 1, padding: str = "same") -> Any:
        return self.bnn.QuantConv2D(
            filters,
            self.draw([1, 3, (3, 2)]),
            strides=strides,
            padding=padding,
            pad_values=self.draw([0.0, 1.0, -1.0]) if padding == "same" else 0.0,
            groups=self.draw([1, math.gcd(x.shape[-1], filters) // 32]),
            **self.signs(),
        )(x)

    def plain(self, x: Any) -> Any:
        padding = self.draw(["same", "valid"])
        return self.norm(self.conv(x, self.draw([32, 64, 96]), self.draw([1, 2]), padding))

    def dilated(self, x: Any) -> Any:
        conv = self.bnn.QuantConv2D(64, 3, padding="same", dilation_rate=2, **self.signs())
        return self.norm(conv(x))

    def residual(self, x: Any) -> Any:
        return self.layers.add([x, self.norm(self.conv(x, x.shape[-1]))])

    def narrowed(self, x: Any) -> Any:
        """A residual block that halves height and width. Its shortcut has a pool and a float convolution."""
        filters = self.draw([64, 96])
        shortcut = self.layers.AveragePooling2D(2, padding="same")(x)
        shortcut = self.layers.Conv2D(filters, 1, use_bias=False)(shortcut)
        return self.layers.add([self.norm(shortcut), self.norm(self.conv(x, filters, 2))])

    def pooled(self, x: Any) -> Any:
        x = self.conv(x, 64)
        x = self.layers.MaxPooling2D(self.draw([2, 3]), self.draw([1, 2]), padding=self.draw(["same", "valid"]))(x)
        return self.norm(x)

    def activated(self, x: Any) -> Any:
        return self.norm(self.layers.ReLU()(self.conv(x, 64)))

    def joined(self, x: Any) -> Any:
        return self.layers.concatenate([self.norm(self.conv(x, 32)), x])

    def transposed(self, x: Any) -> Any:
        return self.norm(self.bnn.QuantConv2DTranspose(32, 2, strides=2, **self.signs())(x))

    def model(self) -> Any:
        """A model from images of up to 13×13 to scores. The first layer reads floats, all others read signs."""
        size = int(self.rng.integers(9, 14))
        inputs = self.keras.Input((size, size, 3))
        x = self.bnn.QuantConv2D(64, 3, padding="same", kernel_quantizer="ste_sign", kernel_constraint="weight_clip")(
            inputs
        )
        x = self.norm(x)
        blocks = [self.plain, self.dilated, self.residual, self.narrowed, self.pooled, self.activated, self.joined]
        for _ in range(5):
            x = self.draw(blocks)(x) if x.shape[1] >= 4 else self.transposed(x)
        x = self.draw([self.layers.Flatten, self.layers.GlobalAveragePooling2D])()(x)
        x = self.norm(self.bnn.QuantDense(64, **self.signs())(x))
        x = self.bnn.QuantDense(10, **self.signs())(x)
        return self.keras.Model(inputs, self.norm(x))


def set_random_weights(model: Any, rng: np.random.Generator) -> None:
    """Sets weights as training would leave them. The statistics of each batch norm match the size of its layer's
    sums."""
    weights = []
    for layer in model.layers:
        for weight in layer.weights:
            name, shape = weight.name.split("/")[-1].split(":")[0], tuple(weight.shape)
            value = rng.normal(size=shape)
            if name == "moving_variance":
                value = rng.uniform(20, 400, shape)
            elif name in ("moving_mean", "bias"):
                value = value * 5
            elif name == "gamma":
                value = rng.uniform(0.5, 2, shape) * rng.choice([-1, 1, 1, 1], shape)
            weights.append(value.astype(np.float32))
    model.set_weights(weights)


def write(bnn: Any, keras: Any, seed: int, folder: Path) -> None:
    import litebnn

    builder = Builder(bnn, keras, seed)
    model = builder.model()
    set_random_weights(model, builder.rng)
    x = builder.rng.normal(size=(SAMPLES, *model.inputs[0].shape[1:])).astype(np.float32)
    y = np.asarray(model.predict(x, verbose=0))
    converted, report = litebnn.convert_keras_model(model, return_report=True)
    (folder / f"{seed}.tflite").write_bytes(converted)
    binary = [layer.binary for layer in report.layers]
    named = [layer.name for layer in report.layers]
    layers = [layer.name for layer in model.layers]
    np.savez(folder / f"{seed}.npz", x=x, y=y, binary=binary, expected=builder.binary, named=named, layers=layers)


def main() -> None:
    kind, folder, first, count = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:])
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    if kind == "larq":
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        import larq as bnn
        from tensorflow import keras
    else:
        import keras

        import litebnn.keras as bnn
    for seed in range(first, first + count):
        write(bnn, keras, seed, folder)


if __name__ == "__main__":
    main()
