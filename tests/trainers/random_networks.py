"""Random small binary networks that every framework can build: their layers and weights."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

SIZE, INPUT_CHANNELS, CLASSES, EPSILON = 16, 3, 10, 1e-5
SEEDS = range(int(os.environ.get("LITEBNN_NETWORKS", "10")))  # test_torch.py sets how many
INPUT_SIGNS = ("ste_sign", "approx_sign", "swish_sign", "reste_sign")
WEIGHT_SIGNS = ("ste_sign", "magnitude_aware_sign", "reste_sign")


@dataclass(frozen=True)
class Conv:
    """A layer of a random network: a binary convolution, a max pool of size `pool`, and a batch norm. If `residual`
    is true, the layer's input is added.
    """

    in_channels: int
    out_channels: int
    kernel: int
    stride: int
    padding: str  # "valid" or "same"
    pad_values: int
    groups: int
    input_sign: str
    weight_sign: str
    weight_scale: bool
    pool: int
    residual: bool


@dataclass(frozen=True)
class Network:
    """A network: a float convolution, binary convolutions, a flatten or a mean over height and width, a binary and a
    float dense layer.

    `weights` has kernels as [outputs, inputs, height, width] and [outputs, inputs], and batch norms as (scale, offset,
    mean, variance), in the order of the layers. A flattened input of a dense layer is channel-first.
    """

    convs: list[Conv]
    flatten: bool
    dense_sign: str
    features: int
    hidden: int
    size: int  # height and width before the flatten
    weights: dict[str, Any] = field(default_factory=dict)


def random_network(seed: int) -> Network:
    """The random network for a seed."""
    rng = np.random.default_rng(seed)
    channels, size, convs = int(rng.choice([32, 64])), SIZE, []
    stem = channels
    for index in range(int(rng.integers(3, 6))):
        groups = int(rng.choice([1, 1, 2])) if channels == 64 else 1
        residual = bool(rng.random() < 0.4)
        out_channels = channels if residual else int(rng.choice([32, 64, 96]))
        out_channels = out_channels if out_channels % (32 * groups) == 0 else 64
        same = residual or size < 6 or bool(rng.random() < 0.7)
        stride = 1 if residual or size < 6 else int(rng.choice([1, 1, 2]))
        kernel = int(rng.choice([1, 3, 3]))
        size = -(-size // stride) if same else (size - kernel) // stride + 1
        pool = 2 if not residual and size >= 6 and rng.random() < 0.4 else 1
        size //= pool
        convs.append(
            Conv(
                channels,
                out_channels,
                kernel,
                stride,
                "same" if same else "valid",
                int(rng.integers(2)) if same else 0,
                groups,
                INPUT_SIGNS[(seed + index) % len(INPUT_SIGNS)],
                WEIGHT_SIGNS[int(rng.integers(len(WEIGHT_SIGNS)))],
                bool(rng.random() < 0.3),
                pool,
                residual,
            )
        )
        channels = out_channels
    flatten = bool(seed % 2)
    features = channels * (size * size if flatten else 1)
    network = Network(convs, flatten, INPUT_SIGNS[seed % len(INPUT_SIGNS)], features, 64, size)
    network.weights.update(_weights(rng, network, stem))
    return network


def _weights(rng: np.random.Generator, network: Network, stem: int) -> dict[str, Any]:
    def kernel(*shape: int) -> Array:
        # The weights are not near zero, so that all frameworks agree on their signs.
        return (rng.uniform(0.1, 1, shape) * rng.choice([-1, 1], shape)).astype(np.float32)

    def norm(channels: int, spread: float) -> tuple[Array, ...]:
        scale = rng.uniform(0.5, 2, channels) * rng.choice([1, 1, 1, -1], channels)
        values = scale, rng.normal(size=channels), rng.normal(size=channels) * spread, rng.uniform(1, 4, channels)
        return tuple(value.astype(np.float32) for value in (*values[:3], values[3] * spread**2))

    return {
        "stem": kernel(stem, INPUT_CHANNELS, 3, 3),
        "stem_norm": norm(stem, 1),
        "convs": [kernel(c.out_channels, c.in_channels // c.groups, c.kernel, c.kernel) for c in network.convs],
        "norms": [norm(c.out_channels, c.kernel * (c.in_channels // c.groups) ** 0.5) for c in network.convs],
        "dense": kernel(network.hidden, network.features),
        "dense_norm": norm(network.hidden, network.features**0.5),
        "last": kernel(CLASSES, network.hidden),
        "last_bias": rng.normal(size=CLASSES).astype(np.float32),
    }


def random_images(seed: int, count: int = 4) -> Array:
    """Images float32 [count, SIZE, SIZE, INPUT_CHANNELS]."""
    return np.random.default_rng([seed, 1]).normal(size=(count, SIZE, SIZE, INPUT_CHANNELS)).astype(np.float32)
