"""Draws images of shapes from a random seed, as a data set that small networks learn in seconds.

python -m tests.trainers.shapes FOLDER COUNT
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

SIZE = 40
CLASSES = ("circle", "cross", "square", "triangle")


def _polygon(name: str, radius: float) -> list[tuple[float, float]]:
    corners = {"square": 4, "triangle": 3}[name]
    angles = np.arange(corners) * 2 * np.pi / corners - np.pi / 2 + (np.pi / 4 if corners == 4 else 0)
    return [(radius * np.cos(angle), radius * np.sin(angle)) for angle in angles]


def shape(name: str, random: np.random.Generator) -> Image.Image:
    """An image of a shape with a random position, size and colour on a noisy background."""
    ground, colour = random.integers(0, 110, 3), random.integers(145, 256, 3)
    image = Image.fromarray((ground + random.integers(0, 30, (SIZE, SIZE, 3))).astype(np.uint8))
    draw, fill = ImageDraw.Draw(image), tuple(map(int, colour))
    radius = random.uniform(9, 14)
    x, y = random.uniform(SIZE / 2 - 4, SIZE / 2 + 4, 2)
    if name == "circle":
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)
    elif name == "cross":
        thin = radius / 3
        draw.rectangle((x - radius, y - thin, x + radius, y + thin), fill=fill)
        draw.rectangle((x - thin, y - radius, x + thin, y + radius), fill=fill)
    else:
        draw.polygon([(x + dx, y + dy) for dx, dy in _polygon(name, radius)], fill=fill)
    return image


def write_shapes(folder: Path, count: int, seed: int = 0) -> None:
    """Writes `count` images into a folder for each class."""
    random = np.random.default_rng(seed)
    for number in range(count):
        name = CLASSES[number % len(CLASSES)]
        path = folder / name / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        shape(name, random).save(path)


if __name__ == "__main__":
    write_shapes(Path(sys.argv[1]), int(sys.argv[2]))
