"""The steps of a training that Keras and PyTorch have in common, in their order."""

from __future__ import annotations

import math
import time
from pathlib import Path

import litebnn
from examples.train import checkpoint
from examples.train.engines import Engine, load_engine
from examples.train.images import Images, open_images
from examples.train.log import Log
from examples.train.options import Options
from litebnn.files import write_whole

NETWORK = "network.tflite"
LABELS = "labels.txt"


def train(options: Options) -> None:
    """Trains to the end, from the last checkpoint if there is one. Then converts the network, and compares the
    accuracies.

    Raises:
        ValueError: an option, the images or the checkpoint are not as expected.
        OSError: a file cannot be read or written.
        ImportError: a package is missing.
    """
    images = open_images(options)
    engine = load_engine(options, len(images.classes))
    if options.batch % engine.processes:
        raise ValueError(f"--batch is {options.batch}, expected a multiple of the {engine.processes} processes")
    options.output.mkdir(parents=True, exist_ok=True)
    log = Log(options.output, is_silent=engine.process != 0)
    _train(options, images, engine, log)
    accuracy = _accuracy(images, engine)
    if accuracy is not None:
        log.line(f"accuracy on {len(images.validation)} images: {accuracy:.2%}")
    if engine.process == 0:
        engine.save_weights(options.output)
        if options.convert:
            _convert(options, images, engine, log)


def factor(step: int, steps: int, warmup: float) -> float:
    """The factor of all learning rates, for step 0 to `steps` - 1. It rises from near 0 to 1, and then falls to
    0 by half a cosine.

    `warmup` is the share of all steps in which the factor rises. `step` is the number of steps that are done.

    >>> [round(factor(step, 10, 0.2), 3) for step in (0, 1, 2, 6, 9)]
    [0.5, 1.0, 1.0, 0.5, 0.038]
    """
    rising = round(steps * warmup)
    if step < rising:
        return (step + 1) / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / (steps - rising)))


def _train(options: Options, images: Images, engine: Engine, log: Log) -> None:
    """Trains for the remaining steps. Writes a checkpoint after some steps and after the last one."""
    steps = options.epochs * images.steps_of_an_epoch
    computation = {**options.computation(), "data": f"{len(images.training)} images of {len(images.classes)} classes"}
    loaded = checkpoint.load(options.output, computation)
    first = 0
    if loaded is not None:
        first, state = loaded
        engine.load_state(state)
        log.line(f"continuing after step {first} of {steps}")
    log.start(first)
    part, started = slice(engine.process, None, engine.processes), time.perf_counter()
    for step, batch in enumerate(images.training_batches(first, steps, part), first):
        rate = factor(step, steps, options.warmup)
        engine.step(batch.images, batch.labels, rate, step)
        done = step + 1
        if done % options.log_every == 0 or done == steps:
            # The loss is averaged over all processes, so each process has to call this method.
            seconds, started = time.perf_counter() - started, time.perf_counter()
            log.scalars(done, steps, {"loss": engine.loss(), "rate": rate}, seconds)
        if done % options.save_every == 0 or done == steps:
            state = engine.state()
            if engine.process == 0:
                checkpoint.save(options.output, done, computation, state)
        if done % images.steps_of_an_epoch == 0 and done < steps:
            accuracy = _accuracy(images, engine)
            if accuracy is not None:
                log.scalars(done, steps, {"accuracy": accuracy})


def _accuracy(images: Images, engine: Engine) -> float | None:
    """The share of the validation images that the network classifies correctly; None if there are no validation
    images.
    """
    if not images.validation:
        return None
    return engine.accuracy(images.validation_batches(slice(engine.process, None, engine.processes)))


def _convert(options: Options, images: Images, engine: Engine, log: Log) -> None:
    """Writes the converted network and its labels. Compares it with the framework's network, image by image."""
    path = options.output / NETWORK
    write_whole(path, engine.convert())
    write_whole(options.output / LABELS, "".join(f"{name}\n" for name in images.classes).encode())
    log.line(f"converted: {path}, {path.stat().st_size / 1024:.0f} KiB")
    if images.validation:
        log.line(compared(path, images, engine))


def compared(path: Path, images: Images, engine: Engine) -> str:
    """One line with the accuracies of the framework's network and of the file in the runtime, on the same images."""
    interpreter = litebnn.Interpreter(path)
    right = same = right_in_runtime = 0
    for batch in images.validation_batches(slice(None)):
        given, labels = batch.images[: batch.count], batch.labels[: batch.count]
        expected, found = engine.predict(given).argmax(axis=-1), interpreter.predict(given).argmax(axis=-1)
        right += int((expected == labels).sum())
        right_in_runtime += int((found == labels).sum())
        same += int((expected == found).sum())
    count = len(images.validation)
    return f"{right} of {count} images right before, {right_in_runtime} in the runtime; {same} have the same class"
