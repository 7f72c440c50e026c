"""The options of a training, for both frameworks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

FRAMEWORKS = ("torch", "keras")
OPTIMIZERS = ("adam", "bop")
PRECISIONS = ("float32", "bfloat16", "float16")


def _about(text: str, *, changes_weights: bool = True, **more: Any) -> dict[str, Any]:
    """Makes the metadata of an option: its help text, further arguments for argparse, and True if the option changes
    the trained weights.
    """
    return {"help": text, "changes_weights": changes_weights, "more": more}


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a training, as the command line takes them."""

    data: Path = field(
        metadata=_about("folder of images, with a folder for each class", changes_weights=False, type=Path)
    )
    output: Path = field(metadata=_about("folder of checkpoints, logs and results", changes_weights=False, type=Path))
    framework: str = field(default=FRAMEWORKS[0], metadata=_about("framework that trains", choices=FRAMEWORKS))
    network: str = field(
        default="quicknet", metadata=_about('network of the zoo, "small", or module:function of (classes, size)')
    )
    weights: str | None = field(default=None, metadata=_about('file of weights to start from, or "imagenet"', type=str))
    validation: Path | None = field(
        default=None, metadata=_about("folder of images to validate on, instead of a part of --data", type=Path)
    )
    validation_share: float = field(default=0.1, metadata=_about("share of --data to validate on"))
    size: int = field(default=224, metadata=_about("height and width of the network's input"))
    epochs: int = field(default=120, metadata=_about("passes over the images"))
    batch: int = field(default=256, metadata=_about("images of one step, in all processes together"))
    optimizer: str = field(
        default=OPTIMIZERS[0],
        metadata=_about(
            "adam trains latent weights; bop flips signs, and leaves the others to adam", choices=OPTIMIZERS
        ),
    )
    learning_rate: float = field(default=1e-3, metadata=_about("adam's rate after the warm-up"))
    bop_gamma: float = field(default=1e-4, metadata=_about("bop's rate after the warm-up"))
    bop_threshold: float = field(default=1e-8, metadata=_about("least mean gradient that flips a sign"))
    warmup: float = field(default=0.05, metadata=_about("share of the training in which the rates rise"))
    crop: float = field(default=0.08, metadata=_about("least share of an image's area that a random crop has"))
    flip: bool = field(default=True, metadata=_about("mirror images at random"))
    teacher: Path | None = field(
        default=None, metadata=_about("network to learn from: a .keras file, or .pt2 for PyTorch", type=Path)
    )
    teacher_share: float = field(
        default=0.5, metadata=_about("share of the loss that is the distance from the teacher")
    )
    temperature: float = field(
        default=4.0, metadata=_about("temperature of the teacher's and the network's probabilities")
    )
    precision: str = field(
        default=PRECISIONS[0], metadata=_about("type of most computations; weights stay float32", choices=PRECISIONS)
    )
    seed: int = field(default=1, metadata=_about("seed of weights, order and crops"))
    save_every: int = field(default=1000, metadata=_about("steps between checkpoints", changes_weights=False))
    log_every: int = field(default=50, metadata=_about("steps between lines of the log", changes_weights=False))
    workers: int = field(default=8, metadata=_about("threads that read images", changes_weights=False))
    convert: bool = field(
        default=True, metadata=_about("convert the network in the end, and compare both", changes_weights=False)
    )

    def __post_init__(self) -> None:
        for name in ("size", "epochs", "batch", "save_every", "log_every", "workers"):
            _check(name, getattr(self, name), getattr(self, name) >= 1, "1 or more")
        for name in ("learning_rate", "temperature"):
            _check(name, getattr(self, name), getattr(self, name) > 0, "a positive number")
        for name in ("bop_gamma", "crop"):
            _check(name, getattr(self, name), 0 < getattr(self, name) <= 1, "more than 0 and at most 1")
        for name in ("warmup", "validation_share"):
            _check(name, getattr(self, name), 0 <= getattr(self, name) < 1, "at least 0 and less than 1")
        _check("teacher_share", self.teacher_share, 0 <= self.teacher_share <= 1, "a number from 0 to 1")
        _check("bop_threshold", self.bop_threshold, self.bop_threshold >= 0, "0 or more")

    def computation(self) -> dict[str, str]:
        """The options on which the trained weights depend, as text."""
        chosen = [field.name for field in fields(self) if field.metadata["changes_weights"]]
        return {name: str(getattr(self, name)) for name in chosen}


def flag(name: str) -> str:
    """The name of an option on the command line."""
    return "--" + name.replace("_", "-")


def _check(name: str, value: object, is_good: bool, expected: str) -> None:
    if not is_good:
        raise ValueError(f"{flag(name)} is {value}, expected {expected}")


def parse(arguments: Sequence[str] | None) -> Options:
    """Parses a command line into options; exits with a message if they are wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.train",
        description="Train a binarized network on a folder of images, and convert it.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for option in fields(Options):
        more = dict(option.metadata["more"])
        if option.default is MISSING:
            more["required"] = True
        elif isinstance(option.default, bool):
            more |= {"action": argparse.BooleanOptionalAction, "default": option.default}
        else:
            more = {"type": type(option.default), "default": option.default, **more}
        parser.add_argument(flag(option.name), help=option.metadata["help"], **more)
    try:
        return Options(**vars(parser.parse_args(arguments)))
    except ValueError as error:
        parser.error(str(error))
