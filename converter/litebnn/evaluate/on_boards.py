"""Runs batches on boards over SSH. The bundle's program run_model runs the models there, and all other work happens on
this machine."""

from __future__ import annotations

import io
import math
import queue
import shlex
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from litebnn.boards.board import Board
from litebnn.boards.host_keys import BoardError
from litebnn.boards.program import Program
from litebnn.errors import shown, whole_number
from litebnn.evaluate.batches import Batch
from litebnn.evaluate.scoring import Model, Result, Scoring
from litebnn.runtime.interpreter import Interpreter
from litebnn.runtime.predictor import Array, Predictor

# The number of batches that each board has at a time, so that no board waits for its next batch.
_AHEAD = 2
# After the last batch, a board that does not answer gets this many seconds to end its program.
_SECONDS_TO_END = 5


@dataclass(frozen=True)
class Boards:
    """Boards that share the work on a data set. Each has the bundle, which `invoke deploy` or the user has unpacked
    there.

    Args:
        hosts: the address [USER@]HOST[:PORT] of each board.
        identity: a private key file; by default what `ssh` would take.
        accept_host_key: fingerprints of the boards' host keys, separated by commas, for boards whose keys are not known
            yet.
        folder: the folder on the boards where the bundle was unpacked; by default the user's home.
        num_threads: the number of threads that run a model.
        seconds: the time in seconds for which a board may be silent, while it loads or runs a model, until it is given
            up.

    Raises:
        ValueError: `num_threads` is less than 1, or `seconds` is no number above 0.
        TypeError: `hosts` is a text, or `num_threads` is no whole number.

    Example:
        >>> boards = Boards(["pi@kitchen", "pi@garden"])
        >>> litebnn.evaluate_models("model.tflite", "images", boards=boards).top_1()  # doctest: +SKIP
        0.583
    """

    hosts: Sequence[str]
    identity: Path | None = None
    accept_host_key: str = ""
    folder: str = "."
    num_threads: int = 1
    seconds: float = 60

    def __post_init__(self) -> None:
        if isinstance(self.hosts, str):
            raise TypeError(f"hosts is {shown(self.hosts)}, expected a list of addresses")
        whole_number("num_threads", self.num_threads, 1)
        if not (isinstance(self.seconds, int | float) and 0 < self.seconds < math.inf):
            raise ValueError(f"seconds is {shown(self.seconds)}, expected a number above 0")

    def executor(
        self, on_warning: Callable[[str], None]
    ) -> Callable[[Scoring, Iterable[Batch]], Iterator[tuple[Batch, Result]]]:
        """Returns the executor of batches on these boards. `on_warning` is called for each board that fails."""
        if not self.hosts:
            raise ValueError("no board is named")
        return lambda work, batches: _Shared(self, work, on_warning).run(batches)

    def connected(self, host: str) -> Board:
        """A connection to one of the boards."""
        return Board(host, self.identity, self.accept_host_key)


class _ModelOnBoard(Predictor):
    """A model that runs on a board. The types of its input and output are read from the file on this machine."""

    def __init__(self, model: Model, program: Program) -> None:
        super().__init__()
        try:
            known = Interpreter(model.content)
        except ValueError as error:
            raise ValueError(f"{model.name}: {error}") from None
        if any(-1 in shape for shape in known.input_shapes):
            raise ValueError(f"{model.name} takes {known.input_shapes}: boards run no model of unknown sizes")
        self._inputs, self._outputs = known._inputs, known._outputs
        self._input_names, self._output_names = known.input_names, known.output_names
        self._program = program

    def _reset(self) -> None:
        """The program resets the model's variables before each run."""

    def _run(self, arrays: list[Array]) -> list[Array]:
        for array in arrays:
            self._program.write(np.ascontiguousarray(array).tobytes())
        outputs = []
        for shape, dtype in zip(self.output_shapes, self.output_types, strict=True):
            content = self._program.read(int(np.prod(shape)) * dtype.itemsize)
            outputs.append(np.frombuffer(content, dtype).reshape(shape))
        return outputs


@dataclass
class _Shared:
    """Batches that several boards take from one queue.

    For each board, a thread puts outcomes into `_done`. An outcome is a batch and its result, a failed
    board and its error, or an error that the user has to fix.
    """

    boards: Boards
    work: Scoring
    on_warning: Callable[[str], None]
    _todo: queue.SimpleQueue[Batch | None] = field(default_factory=queue.SimpleQueue)
    _done: queue.SimpleQueue[tuple[Any, Any]] = field(default_factory=queue.SimpleQueue)
    _is_over: threading.Event = field(default_factory=threading.Event)

    def run(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Result]]:
        """Yields each batch with its result.

        Raises:
            BoardError: every board has failed.
            ValueError: a batch cannot be run on any board.
        """
        left = len(self.boards.hosts)
        threads = [threading.Thread(target=self._serve, args=(host,), daemon=True) for host in self.boards.hosts]
        for thread in threads:
            thread.start()
        under_way, todo = 0, iter(batches)
        try:
            while True:
                while under_way < _AHEAD * left and (batch := next(todo, None)) is not None:
                    self._todo.put(batch)
                    under_way += 1
                if not under_way:
                    return
                what, outcome = self._done.get()
                if isinstance(what, Batch):
                    under_way -= 1
                    yield what, outcome
                elif isinstance(outcome, BoardError):
                    left -= 1
                    if not left:
                        raise BoardError(f"no board is left; {outcome}")
                    self.on_warning(f"{outcome}; the share of {what} goes to the others")
                else:
                    raise outcome
        finally:
            self._is_over.set()
            for _ in threads:
                self._todo.put(None)
            for thread in threads:
                thread.join(_SECONDS_TO_END)

    def _serve(self, host: str) -> None:
        """Takes batches from the queue until it is empty or the board fails."""
        try:
            with _programs(self.boards, host, self.work.models) as programs:
                opened = iter(programs)
                score = self.work.prepared(lambda model: _ModelOnBoard(model, next(opened)))
                try:
                    while (batch := self._todo.get()) is not None and not self._is_over.is_set():
                        self._done.put((batch, score(batch)))
                except Exception as error:
                    # The batch is put back into the queue first, because the next request to this board may hang.
                    if batch is not None and isinstance(error, BoardError):
                        self._todo.put(batch)
                    self._done.put((host, error))
        except Exception as error:
            self._done.put((host, error))


@contextmanager
def _programs(boards: Boards, host: str, models: Sequence[Model]) -> Iterator[list[Program]]:
    """Starts one program for each model on a board. At the end of the block, the programs end and their files are
    removed."""
    board = boards.connected(host)
    try:
        program = _find_program(board, boards.folder)
        place = board.check("mktemp -d", "make a folder").splitlines()[-1]
        try:
            yield [_start(boards, board, program, f"{place}/{i}.tflite", model) for i, model in enumerate(models)]
        finally:
            # If the board can no longer be reached, its temporary files stay there.
            with suppress(BoardError):
                board.run(f"rm -rf {shlex.quote(place)}")
    finally:
        board.close()


def _find_program(board: Board, folder: str) -> str:
    try:
        find = f'cd {shlex.quote(folder)} && ls -d "$PWD"/litebnn-*/run_model'
        return board.check(find, "find the bundle's run_model").splitlines()[-1]
    except BoardError:
        raise BoardError(
            f"{board.host} has no litebnn-*/run_model in {folder}: unpack a bundle there, or `invoke deploy` to it"
        ) from None


def _start(boards: Boards, board: Board, program: str, path: str, model: Model) -> Program:
    board.put_content(io.BytesIO(model.content), path, model.name)
    flags = f"--lcompute=1 --use_xnnpack=1 --num_threads={boards.num_threads}"
    return Program(board, f"{shlex.quote(program)} --graph={shlex.quote(path)} {flags}", boards.seconds)
