"""Evaluates models on a data set: the batches of a source, run somewhere, counted, and kept in a partial file."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litebnn import __version__
from litebnn.errors import warn
from litebnn.evaluate.batches import Array, Batch
from litebnn.evaluate.metrics import Counts, Evaluation, ModelCounts
from litebnn.evaluate.partial_file import PartialFile
from litebnn.evaluate.places import Place, place_of
from litebnn.evaluate.recipes import Recipe, open_recipe
from litebnn.evaluate.scoring import Model, Result, Scoring
from litebnn.evaluate.sources import Source, open_source
from litebnn.runtime.predictor import read_content

if TYPE_CHECKING:
    from litebnn.evaluate.on_boards import Boards

BATCH_SIZE = 32

Progress = Callable[[int, "int | None"], None]
Tell = Callable[[str], None]


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
    tell: Tell | None = None,
) -> Evaluation:
    """Runs models over a data set of any size and counts what they get right.

    Samples are read where they are run, and the results are the same wherever that is and in whatever order. A sample
    that cannot be read is told of and left out.

    Args:
        models: `.tflite` files, or one: paths or bytes. Each takes one input, float32, int8 or uint8 [n, ...], and
            gives one output of scores [n, classes].
        data: a folder of class folders with images; a `.npz` file with the arrays `images` [n, ...] and `labels` [n];
            a parquet file, or a folder of such, with columns `image` and `label`; "module:function" or a function that
            yields batches, arrays [n, ...] or pairs of these and labels [n].
        preprocess: "auto" (pixels, which are uint8, to [-1, 1]; other numbers as they are), "none", "[-1,1]", "[0,1]",
            "zoo" (as larq-zoo does it), "MEAN/STD" in units of pixels such as "127.5/127.5", each one number or one for
            each channel with commas, or a function of one sample, or its name "module:function".
        batch_size: samples that are run as one task; a function's batches stay as they are.
        workers: processes of this machine, each with one interpreter of one thread; by default as many as there are
            cores. 0 runs all in this process. Others than 0 need Dask, and a script that starts them needs
            `if __name__ == "__main__":` around its code.
        scheduler: the address of a Dask scheduler, such as "tcp://10.0.0.2:8786", whose workers run the batches
            instead. They need litebnn, and see the data set's files by the same paths.
        boards: `litebnn.Boards`, which run the batches instead.
        partial: a file that keeps results, so that the same call goes on where another was interrupted. With True it
            is one of the current folder whose name stands for all arguments above, and it goes once all is done.
        progress: is called after each batch that runs with how many samples are done, those of a partial file among
            them, and of how many (None where that is not known).
        tell: is called with a line for what went wrong and was made good; by default a warning.

    Returns:
        The `Evaluation`: `top_1()`, `top_5()`, `confusion()`, `agreement()`, `to_dict()` and more.

    Raises:
        ValueError: an argument is not such, a model or a batch cannot be run, or the partial file is of another job.
        OSError: a file cannot be read, or a scheduler or board cannot be reached.
        ImportError: Dask, Pillow or pyarrow is needed and missing.

    Example:
        >>> found = evaluate_models("model.tflite", lambda: [(images, np.zeros(100, int))], workers=0)
        >>> found.counts.samples, 0 <= found.top_1() <= found.top_5() <= 1
        (100, True)
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}, expected 1 or more")
    given = [models] if isinstance(models, bytes | str | os.PathLike) else list(models)
    if not given:
        raise ValueError("no model is given")
    files = tuple(_model(model) for model in given)
    folder = str(Path.cwd())
    source, recipe = open_source(data, folder), open_recipe(preprocess, folder)
    say = tell or (lambda line: warn(line, __name__, "litebnn.evaluate.dask_cluster", "litebnn.evaluate.on_boards"))
    counts = Counts([ModelCounts() for _ in files])
    job = _job(files, source, recipe, batch_size)
    path = _own_name(job) if partial is True else Path(partial) if partial else None
    place, started = place_of(workers, scheduler, boards, say), time.perf_counter()
    found = results(place, Scoring(files, recipe), source.batches(batch_size), path, job, say)
    kept = _count(found, counts, source.size, path, progress, say)
    seconds = time.perf_counter() - started
    if path is not None and partial is True:
        path.unlink(missing_ok=True)
    if not counts.samples:
        raise ValueError(f"{source.name} has no sample that can be read")
    names = tuple(model.name for model in files)
    return Evaluation(
        names, source.name, recipe.name, source.classes, counts, seconds, (counts.samples - kept) / seconds
    )


def _count(
    found: Iterable[tuple[int, Result, bool]],
    counts: Counts,
    total: int | None,
    path: Path | None,
    progress: Progress,
    tell: Tell,
) -> int:
    """Adds results to the counts; returns how many samples are those of a partial file."""
    kept = done = 0
    try:
        for index, result, is_new in found:
            counts.add(index, result)
            kept += 0 if is_new else len(result["top"][0])
            done = counts.samples + sum(map(len, counts.left_out.values()))
            for name, reason in result["left_out"] if is_new else ():
                tell(f"{name} is left out: {reason}")
            if is_new:
                # What was kept is no measure of how fast it goes on.
                progress(done, total)
    except BaseException:
        if path is not None and path.exists() and done:
            tell(f"the results of {done} samples are kept in {path}, where the same command goes on")
        raise
    return kept


def _model(model: Any) -> Model:
    if isinstance(model, str | os.PathLike):
        return Model(*read_content(Path(model)))
    return Model(*read_content(model))


def _job(models: Sequence[Model], source: Source, recipe: Recipe, batch_size: int) -> dict[str, Any]:
    """What tells these results from others."""
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
    place: Place,
    work: Any,
    batches: Iterator[Batch],
    partial: Path | None,
    job: dict[str, Any],
    tell: Tell,
) -> Iterator[tuple[int, Result, bool]]:
    """The result of each batch once, and whether it is new: first those of a partial file, then those that run now.

    Raises:
        ValueError: the partial file is of another job, or a batch cannot be run.
        OSError: the partial file cannot be read.
    """
    file = None if partial is None else _opened(partial, job, tell)
    if file is None:
        for batch, result in place(work, batches):
            yield batch.index, result, True
        return
    try:
        yield from ((index, result, False) for index, result in file.kept())
        is_kept = True
        for batch, result in place(work, (batch for batch in batches if not file.has(batch))):
            if is_kept:
                try:
                    file.add(batch, result)
                except OSError as error:
                    is_kept = False
                    tell(f"{partial} keeps no more results: {error.strerror}; evaluating goes on without")
            yield batch.index, result, True
    finally:
        file.close()


def _opened(path: Path, job: dict[str, Any], tell: Tell) -> PartialFile | None:
    """The partial file; None where there is none and it cannot be made, without which evaluating goes on."""
    try:
        return PartialFile(path, job)
    except OSError as error:
        if path.exists():
            raise
        tell(f"{path} cannot keep results: {error.strerror}; evaluating goes on without")
        return None
