"""Trains and converts a small binarized network. Compares the converted network in the runtime with two others: the
trainer's own network and a float .tflite file.

Usage: invoke demo [--trainer=NAME] [--mnist=DIR]
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import litebnn
from examples.mnist.data import Digits, bundled_digits, mnist
from examples.mnist.trainers import TRAINERS, Predict, first_installed, load_trainer
from litebnn.files import write_whole

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "build" / "demo"
TIMED_RUNS = 201


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Train, convert and run a small binarized network.")
    parser.add_argument("--trainer", choices=TRAINERS, default=first_installed(), help="what trains the network")
    parser.add_argument("--mnist", type=Path, help="folder of MNIST's t10k IDX files; by default scikit-learn's digits")
    parser.add_argument("--epochs", type=int, help="training epochs (default: 50, or 20 on MNIST)")
    options = parser.parse_args(arguments)
    if options.epochs is not None and options.epochs < 1:
        parser.error(f"--epochs is {options.epochs}, expected at least 1")
    console = Console()
    try:
        digits = mnist(options.mnist) if options.mnist else bundled_digits()
        run(options.trainer, digits, options.epochs or (20 if options.mnist else 50), console)
    except (ValueError, OSError, ImportError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        return 130
    return 0


class Result(NamedTuple):
    """Results of one form of the network on the test images."""

    name: str
    accuracy: float
    same_class: int  # test images with the same class as in the trainer's framework
    bytes: int
    latency: float  # median seconds for one image


def run(trainer_name: str, digits: Digits, epochs: int, console: Console, output: Path = OUTPUT) -> list[Result]:
    """Trains, converts and runs the network, writes the models into `output`, and prints the table."""
    console.print(f"Importing {trainer_name} …")
    trainer = load_trainer(trainer_name)
    with Progress(
        TextColumn("Training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("epochs, training accuracy {task.fields[accuracy]:.1%}"),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
        bar = progress.add_task("training", total=epochs, accuracy=0.0)
        network = trainer.train(
            digits, epochs, lambda done, accuracy: progress.update(bar, completed=done, accuracy=accuracy)
        )

    console.print("Converting …")
    output.mkdir(parents=True, exist_ok=True)
    float_path, binary_path = (output / name for name in ("float.tflite", "binary.tflite"))
    trained_path = trainer.save(network, output)
    write_whole(float_path, trainer.convert_float(network))
    write_whole(binary_path, trainer.convert(network))
    write_whole(output / "labels.txt", "".join(f"{digit}\n" for digit in range(10)).encode())

    console.print("Running …\n")
    forms: list[tuple[str, Path, Predict]] = [
        (trainer.FRAMEWORK, trained_path, trainer.predict(network)),
        ("float .tflite", float_path, litebnn.Interpreter(float_path).predict),
        ("binary .tflite", binary_path, litebnn.Interpreter(binary_path).predict),
    ]
    classes = [predict(digits.test_images).argmax(axis=-1) for _, _, predict in forms]
    results = [
        Result(
            name,
            float(np.mean(found == digits.test_labels)),
            int(np.sum(found == classes[0])),
            path.stat().st_size,
            median_latency(predict, digits.test_images[:1]),
        )
        for (name, path, predict), found in zip(forms, classes, strict=True)
    ]
    console.print(as_table(results, len(digits.test_labels)))
    console.print(f"\nLatency: one image, one thread for .tflite. Models: {output}", highlight=False, soft_wrap=True)
    return results


def as_table(results: list[Result], images: int) -> Table:
    """The results as a printable table; `images` is the number of images in the test set."""
    table = Table("", "test accuracy", f"same class as {results[0].name}", "file size", "median latency")
    for result in results:
        table.add_row(
            result.name,
            f"{result.accuracy:.2%}",
            f"{result.same_class} of {images}",
            f"{result.bytes / 1024:.1f} KiB",
            f"{result.latency * 1e6:.0f} µs",
        )
    return table


def median_latency(predict: Predict, image: npt.NDArray[Any]) -> float:
    """Median seconds of one call of `predict` with one image, after a warm-up."""
    times = []
    for _ in range(TIMED_RUNS):
        start = time.perf_counter()
        predict(image)
        times.append(time.perf_counter() - start)
    return float(np.median(times[TIMED_RUNS // 10 :]))


if __name__ == "__main__":
    sys.exit(main())
