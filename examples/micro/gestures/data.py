"""Makes gestures that a hand draws in the air, as an accelerometer at the wrist would measure them. They are computed,
not recorded.

A gesture is a path of the hand in a vertical plane. The sensor is held at a slight angle, and measures the acceleration
of the path and gravity. The measurements are sampled and rounded as cheap sensors do.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

NAMES = ("wing", "ring", "slope", "other")
SAMPLES, HERTZ = 64, 25
# The int8 levels for the acceleration of gravity. The sensor's range is 4 times this acceleration.
LEVELS = 32
GRAVITY = 9.81
# The number of positions of the hand that are computed for each sample.
FINE = 8

Array = npt.NDArray[Any]
Rng = np.random.Generator


class Gestures(NamedTuple):
    """Gestures: traces int8 [n, 64, 3, 1] in 1/32 of the acceleration of gravity, and labels int64 [n], which are
    indices of `NAMES`."""

    traces: npt.NDArray[np.int8]
    labels: npt.NDArray[np.int64]


def made_gestures(count: int, seed: int) -> Gestures:
    """Makes `count` gestures, of all kinds in turn. Equal seeds make equal gestures."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % len(NAMES)
    return Gestures(np.stack([_trace(rng, _KINDS[label]) for label in labels])[..., None], labels)


def _trace(rng: Rng, path: Callable[[Rng], Array]) -> npt.NDArray[np.int8]:
    """One trace [samples, 3] of a hand that rests before and after the gesture."""
    seconds, rest = rng.uniform(1.0, 1.8), rng.uniform(0.2, 0.7)
    fine = SAMPLES * FINE
    time = np.arange(fine) / (HERTZ * FINE)
    along = np.clip((time - rest) / seconds, 0, 1)
    points = path(rng)
    drawn = np.stack([np.interp(along, np.linspace(0, 1, len(points)), axis) for axis in points.T], axis=1)
    # The path is smoothed, as a hand rounds corners, and noise is added, as a hand trembles.
    rounded = _smoothed(drawn * rng.uniform(0.3, 0.55), rng.uniform(0.05, 0.08))
    force = _smoothed(rng.standard_normal((fine, 3)), 0.04) * 2.5
    force[:, [0, 2]] += np.gradient(np.gradient(rounded, axis=0), axis=0) * (HERTZ * FINE) ** 2
    force[:, 2] += GRAVITY
    measured = (force @ _askew(rng).T)[::FINE] / GRAVITY + rng.normal(0, 0.02, (SAMPLES, 3))
    return np.clip(np.round(measured * LEVELS), -128, 127).astype(np.int8)


def _smoothed(values: Array, seconds: float) -> Array:
    """Averages values along the first axis, with the weights of a bell curve that is `seconds` wide."""
    width = seconds * HERTZ * FINE
    reach = int(4 * width)
    bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    padded = np.pad(values, ((reach, reach), (0, 0)), "edge")
    return np.stack([np.convolve(axis, bell / bell.sum(), "valid") for axis in padded.T], axis=1)


def _askew(rng: Rng) -> Array:
    """The random rotation of a sensor that is tilted by up to 20 degrees about each axis."""
    rotation = np.eye(3)
    for axis, angle in enumerate(rng.normal(0, 0.17, 3)):
        one, other = (axis + 1) % 3, (axis + 2) % 3
        turn = np.eye(3)
        turn[one, one] = turn[other, other] = np.cos(angle)
        turn[one, other], turn[other, one] = -np.sin(angle), np.sin(angle)
        rotation = rotation @ turn
    return rotation


def _wing(rng: Rng) -> Array:
    """The path of the gesture "wing", which is the letter W."""
    corners = np.array([[-1, 1], [-0.5, -1], [0, 0.6], [0.5, -1], [1, 1]], float)
    return corners + rng.normal(0, 0.12, corners.shape)


def _ring(rng: Rng) -> Array:
    """The path of the gesture "ring", which is a circle from the top on, with the irregularity of a hand."""
    angles = rng.normal(np.pi / 2, 0.3) - np.linspace(0, 2 * np.pi * rng.uniform(0.95, 1.1), 40)
    return np.stack([np.cos(angles) * rng.uniform(0.8, 1.2), np.sin(angles)], axis=1)


def _slope(rng: Rng) -> Array:
    """The path of the gesture "slope", which has the form of an angle sign: down to the left, then to the right."""
    corners = np.array([[0.7, 1], [-1, -1], [1, -1]], float)
    return corners + rng.normal(0, 0.12, corners.shape)


def _other(rng: Rng) -> Array:
    """The path of another movement: a random scribble, a hand that rests or waves to and fro, or a single stroke."""
    kind = rng.integers(4)
    if kind == 0:
        return np.zeros((2, 2))
    if kind == 1:
        swings = np.array([1, -1] * int(rng.integers(2, 5)))
        return np.outer(swings, rng.normal(0, 0.7, 2))
    if kind == 2:
        return rng.uniform(-1, 1, (2, 2))
    return rng.uniform(-1, 1, (int(rng.integers(4, 8)), 2))


_KINDS = (_wing, _ring, _slope, _other)
