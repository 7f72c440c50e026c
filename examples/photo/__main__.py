"""Classifies a photograph by a pretrained network of the zoo, and draws a picture of the result.

Usage: invoke photo [--network=NAME] [--image=FILE] [--weights=FILE]
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont, UnidentifiedImageError

import litebnn
from litebnn.files import write_whole
from litebnn.zoo.convert import convert_network
from litebnn.zoo.networks import find_network

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "build" / "photo"
PHOTO = Path(__file__).with_name("cat.jpg")  # Stefan van der Walt's cat Chelsea, CC0
RANDOM = "random"
TIMED_RUNS = 10
_WIDTH, _ROW, _MARGIN = 480, 28, 12


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Classify a photograph by a pretrained network.")
    parser.add_argument("--network", default="quicknet", help="name of the network, as litebnn zoo lists it")
    parser.add_argument("--image", type=Path, default=PHOTO, help="the photograph, by default a cat")
    parser.add_argument(
        "--weights", default="imagenet", help="weights file; by default those pretrained on ImageNet; random for none"
    )
    options = parser.parse_args(arguments)
    try:
        photo = open_photo(options.image)
        network = find_network(options.network)
        model = OUTPUT / f"{network.command}.tflite"
        make_model(network.command, options.weights, model)
        picture = OUTPUT / f"{network.command}.png"
        classify(photo, model, picture)
    except (ValueError, OSError, ImportError) as error:
        print(f"photo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("photo: interrupted", file=sys.stderr)
        return 130
    if options.weights == RANDOM:
        print("The weights are random, so the names above mean nothing.")
    print(f"model: {model}\npicture: {picture}")
    return 0


def open_photo(path: Path) -> Image.Image:
    """Reads a photograph from a file.

    Raises:
        ValueError: the file is no image that Pillow knows.
        OSError: the file cannot be read.
    """
    try:
        return Image.open(path).convert("RGB")
    except UnidentifiedImageError:
        raise ValueError(f"{path} is no image that Pillow knows") from None


def make_model(network: str, weights: str, path: Path) -> None:
    """Fetches a network and its weights, and converts it into the file `path`."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    print(f"Converting {network} …", flush=True)
    converted, report = convert_network(network, weights=None if weights == RANDOM else weights, verify=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, converted)
    print(report.summary(), flush=True)


def classify(photo: Image.Image, model: Path, picture: Path) -> None:
    """Classifies a photograph, prints the result, and draws it into the file `picture`."""
    classifier = litebnn.Classifier(model)
    pixels = np.asarray(photo)
    found, seconds = classifier(pixels), []
    for _ in range(TIMED_RUNS):
        start = time.perf_counter()
        classifier(pixels)
        seconds.append(time.perf_counter() - start)
    for label, probability in found:
        print(f"{probability:8.1%}  {label}")
    drawn(photo, f"{classifier.name}: {1000 * min(seconds):.1f} ms with one thread", found).save(picture)


def drawn(photo: Image.Image, title: str, found: list[tuple[str, float]]) -> Image.Image:
    """The photograph with a bar for each class below it."""
    height = round(photo.height * _WIDTH / photo.width)
    picture = Image.new("RGB", (_WIDTH, height + _ROW * (len(found) + 1) + _MARGIN), "white")
    picture.paste(photo.resize((_WIDTH, height)))
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(16)
    draw.text((_MARGIN, height + 6), title, "black", font)
    for row, (label, probability) in enumerate(found, 1):
        top = height + 6 + _ROW * row
        draw.rectangle((0, top - 2, round(_WIDTH * probability), top + _ROW - 6), "#bfe3c0")
        draw.text((_MARGIN, top), f"{probability:.1%}  {label}", "black", font)
    return picture


if __name__ == "__main__":
    sys.exit(main())
