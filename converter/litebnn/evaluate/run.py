"""Evaluates models on a data set: an executor runs its batches; results are counted and kept in a partial file."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litebnn import __version__
from litebnn.errors import check_type, warn, whole_number
from litebnn.evaluate.batches import Array, Batch
from litebnn.evaluate.executors import Executor, executor_of
from litebnn.evaluate.metrics import Counts, Evaluation, ModelCounts
from litebnn.evaluate.partial_file import PartialFile
from litebnn.evaluate.recipes import Recipe, automatic_recipe, open_recipe
from litebnn.evaluate.scoring import Model, Result, Scoring
from litebnn.evaluate.sources import Source, open_source
from litebnn.files import read_content
from litebnn.flatbuffer.metadata import read_metadata

if TYPE_CHECKING:
    from litebnn.evaluate.on_boards import Boards

BATCH_SIZE = 32

Progress = Callable[[int, "int | None"], None]
OnWarning = Callable[[str], None]


def evaluate_models(
    models: bytes | str | os.PathLike[str] | Sequence[bytes | str | os.PathLike[str]],
    data: str | os.PathLike[str] | Callable[[], Iterable[Any]],
    *,
    preprocess: str | Callable[[Array], Any] = "auto",
    batch_size: int = BATCH_SIZE,
    workers: int | None = None,
    scheduler: str | None = None,
    boards: Boards | None = None,
    partial: str | os.PathLike[str] | bool = False,
    progress: Progress = lambda done, total: None,
    on_warning: OnWarning | None = None,
) -> Evaluation:
    """Runs models over a data set of any size, and counts the correct answers.

    Each process reads the samples that it runs. The results depend neither on the process nor on the order. A sample
    that cannot be read is left out with a warning.

    Args:
        models: one or more `.tflite` files, as paths or bytes. Each takes one input, float32, int8 or uint8 [n, ...],
            and gives one output of scores [n, classes].
        data: a folder of class folders with images, or a `.npz` file with the arrays `images` [n, ...] and `labels`
            [n]. A parquet file, or a folder of them, needs the columns `image` and `label`. A function, or its name
            "module:function", yields batches: arrays [n, ...], or pairs of them and labels [n].
        preprocess: "none", "[-1,1]", "[0,1]", "zoo" for larq-zoo's, or "auto". "auto" preprocesses uint8 pixels as the
            models' metadata says, or maps them to [-1, 1], and leaves other numbers unchanged. "MEAN/STD" is in units
            of pixels, such as "127.5/127.5", each one number or numbers for the channels, separated by commas.
            "MEAN/STD/CROP" first crops this share of the shorter side. A function of one sample, or its name
            "module:function", works too.
        batch_size: the number of samples that are run as one task; batches that a function yields keep their size.
        workers: the number of processes of this machine, each with one interpreter of one thread; by default the number
            of cores. 0 runs all batches in this process. Other numbers need Dask, and the calling script needs
            `if __name__ == "__main__":` around its code.
        scheduler: the address of a Dask scheduler, such as "tcp://10.0.0.2:8786", whose workers run the batches
            instead. The workers need litebnn, and the data set's files under the same paths.
        boards: `litebnn.Boards`, which run the batches instead.
        partial: a file that keeps results, so that the same call continues after an interruption. True means a file in
            the current folder, which is named by a hash of the arguments above, and removed after the last batch.
        progress: called after each batch with the number of samples done, including those from a partial file, and
            the total (None if it is unknown).
        on_warning: called with one line for each problem that was recovered from; by default a warning is issued.

    Returns:
        The `Evaluation`: `top_1()`, `top_5()`, `confusion()`, `agreement()`, `to_dict()` and more.

    Raises:
        ValueError: an argument is invalid, a model or a batch cannot be run, or the partial file is another job's.
        TypeError: an argument is of a type that it cannot have; the message names the argument.
        OSError: a file cannot be read, or a scheduler or board cannot be reached.
        ImportError: Dask, Pillow or pyarrow is needed and missing.

    Example:
        >>> found = evaluate_models("model.tflite", lambda: [(images, np.zeros(100, int))], workers=0)
        >>> found.counts.samples, 0 <= found.top_1() <= found.top_5() <= 1
        (100, True)
    """
    batch_size = whole_number("batch_size", batch_size, 1)
    files = _read_models(models)
    source, recipe = _source_and_recipe(files, data, preprocess)
    say = on_warning or (
        lambda line: warn(line, __name__, "litebnn.evaluate.dask_cluster", "litebnn.evaluate.on_boards")
    )
    counts = Counts([ModelCounts() for _ in files])
    job = _job(files, source, recipe, batch_size)
    check_type("partial", partial, "the path of a file, True or False", str, os.PathLike, bool)
    path = _own_name(job) if partial is True else Path(partial) if partial else None
    executor, started = executor_of(workers, scheduler, boards, say), time.perf_counter()
    scored = results(executor, Scoring(files, recipe), source.batches(batch_size), path, job, say)
    kept = _count(scored, counts, source.size, path, progress, say)
    seconds = time.perf_counter() - started
    if path is not None and partial is True:
        path.unlink(missing_ok=True)
    if not counts.samples:
        raise ValueError(f"{source.name} has no sample that can be read")
    names = tuple(model.name for model in files)
    return Evaluation(
        names, source.name, recipe.name, source.classes, counts, seconds, (counts.samples - kept) / seconds
    )


def _read_models(models: Any) -> tuple[Model, ...]:
    several = None if isinstance(models, bytes | str | os.PathLike) else models
    given = list(several) if isinstance(several, Iterable) else [models]
    if not given:
        raise ValueError("no model is given")
    return tuple(Model(*read_content(model)) for model in given)


def _source_and_recipe(files: Sequence[Model], data: Any, preprocess: Any) -> tuple[Source, Recipe]:
    """Opens the data set and the recipe. Class names and the recipe "auto" come from the models' metadata."""
    folder = str(Path.cwd())
    found = [metadata for metadata in (read_metadata(model.content) for model in files) if metadata is not None]
    labels = next((metadata.labels for metadata in found if metadata.labels), ())
    recipe = automatic_recipe(found) if preprocess == "auto" else preprocess
    return open_source(data, folder, labels), open_recipe(recipe, folder)


def _count(
    found: Iterable[tuple[int, Result, bool]],
    counts: Counts,
    total: int | None,
    path: Path | None,
    progress: Progress,
    on_warning: OnWarning,
) -> int:
    """Adds results to the counts; returns the number of samples whose results came from a partial file."""
    kept = done = 0
    try:
        for index, result, is_new in found:
            counts.add(index, result)
            kept += 0 if is_new else len(result["top"][0])
            done = counts.samples + sum(map(len, counts.left_out.values()))
            for name, reason in result["left_out"] if is_new else ():
                on_warning(f"{name} is left out: {reason}")
            if is_new:
                # Results from the partial file take no time. If they counted as progress, the estimate of the remaining
                # time would be too short.
                progress(done, total)
    except BaseException:
        if path is not None and path.exists() and done:
            on_warning(f"the results of {done} samples are kept in {path}, where the same command goes on")
        raise
    return kept


def _job(models: Sequence[Model], source: Source, recipe: Recipe, batch_size: int) -> dict[str, Any]:
    """The strings that identify this evaluation in a partial file, which keeps the results of an interrupted one."""
    return {
        "models": [hashlib.sha256(model.content).hexdigest() for model in models],
        "data": source.fingerprint,
        "preprocess": recipe.fingerprint,
        "batch size": batch_size,
        "litebnn": __version__,
    }


def _own_name(job: dict[str, Any]) -> Path:
    return Path(f"litebnn-evaluate-{hashlib.sha256(json.dumps(job).encode()).hexdigest()[:8]}.partial")


def results(
    executor: Executor,
    work: Any,
    batches: Iterator[Batch],
    partial: Path | None,
    job: dict[str, Any],
    on_warning: OnWarning,
) -> Iterator[tuple[int, Result, bool]]:
    """Yields each batch's number, its result, and True if it ran now. Results from a partial file come first.

    Raises:
        ValueError: the partial file is another job's, or a batch cannot be run.
        OSError: the partial file cannot be read.
    """
    file = None if partial is None else _opened(partial, job, on_warning)
    if file is None:
        for batch, result in executor(work, batches):
            yield batch.index, result, True
        return
    try:
        yield from ((index, result, False) for index, result in file.kept())
        is_kept = True
        for batch, result in executor(work, (batch for batch in batches if not file.has(batch))):
            if is_kept:
                try:
                    file.add(batch, result)
                except OSError as error:
                    is_kept = False
                    on_warning(f"{partial} keeps no more results: {error.strerror}; evaluating goes on without")
            yield batch.index, result, True
    finally:
        file.close()


def _opened(path: Path, job: dict[str, Any], on_warning: OnWarning) -> PartialFile | None:
    """The partial file; None, after a warning, if it cannot be created."""
    try:
        return PartialFile(path, job)
    except OSError as error:
        if path.exists():
            raise
        on_warning(f"{path} cannot keep results: {error.strerror}; evaluating goes on without")
        return None
