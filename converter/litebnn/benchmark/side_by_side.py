"""Measures models side by side. Each runs in a process of its own, and they take turns, so that a change of the
machine's speed affects all alike."""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from litebnn.errors import ConversionError, printable
from litebnn.files import read_file
from litebnn.flatbuffer import read_model
from litebnn.graph import Graph
from litebnn.runtime.predictor import fits

LITEBNN, XNNPACK = "litebnn", "xnnpack"
# The names that select the runtime of Larq Compute Engine, with its fastest options and with its default options.
LARQ, LARQ_DEFAULT = "larq-compute-engine", "larq-compute-engine-default"
# The duration of a turn in seconds. At the beginning of a turn, the caches hold the data of other contenders. The turn
# is so long that refilling the caches matters little.
_SECONDS_OF_A_TURN = 0.1
_START = (
    "import json, runpy, sys; file, path = sys.argv[1:3]; del sys.argv[1:3]; sys.path[:] = json.loads(path) or "
    "sys.path[1:]; runpy.run_path(file, run_name='__main__')"
)


@dataclass(frozen=True)
class Contender:
    """A model with the runtime and options to measure it with."""

    model: Path
    # The runtime: "litebnn"; "xnnpack" for the same runtime without litebnn's delegate; "larq-compute-engine" with its
    # fastest options; or "larq-compute-engine-default".
    runtime: str = LITEBNN
    threads: int = 1
    isa: str = ""  # of litebnn; "" for the best one
    python: str = ""  # executable that runs the model; "" for this one
    # The shape of each input; () for those of the file, which must then have no unknown sizes.
    input_shapes: tuple[tuple[int, ...], ...] = ()

    @property
    def is_larq(self) -> bool:
        """True if the contender runs in Larq Compute Engine's runtime."""
        return self.runtime in (LARQ, LARQ_DEFAULT)


@dataclass(frozen=True)
class OpTime:
    """The time of an op, or of several ops that cannot run separately."""

    ops: tuple[int, ...]  # in the first subgraph; empty if the runtime does not report them
    names: tuple[str, ...]  # their kinds, such as ("CONV_2D", "ADD")
    output: str  # name of the last op's output
    seconds: float  # in one run


@dataclass(frozen=True)
class Measurement:
    """The measured times and memory of a contender (a model file with a runtime and options)."""

    contender: Contender
    runs: int
    best: float  # seconds of the fastest run
    # The 50th, 90th and 99th percentile of the run time in seconds. The keys are 50, 90 and 99.
    percentiles: dict[int, float]
    load_seconds: float  # until the model is ready to run
    peak_memory_bytes: int  # of the process, including Python and the runtime
    model_memory_bytes: int | None  # the model's part of the peak memory; None if unknown
    # The times of the ops, in order of execution; empty if the runtime reports none. Together with `runtime_seconds`
    # they add up to the median run. On a board they do not, because ops are timed one by one there.
    ops: tuple[OpTime, ...]

    @property
    def median(self) -> float:
        """The median time of a run, in seconds."""
        return self.percentiles[50]

    @property
    def runtime_seconds(self) -> float | None:
        """The runtime's own share of the median run, outside all ops, in seconds; None if the runtime reports no
        ops."""
        return max(0.0, self.median - sum(op.seconds for op in self.ops)) if self.ops else None

    def to_dict(self) -> dict[str, Any]:
        """The measurement as plain numbers, strings, lists and dicts, for JSON."""
        found = asdict(self)
        seconds = {"best": found.pop("best")} | {f"p{key}": value for key, value in found.pop("percentiles").items()}
        found |= {"model": str(self.contender.model), "seconds": seconds, "runtime_seconds": self.runtime_seconds}
        return {**found.pop("contender"), **found}


def percentiles_of(seconds: Sequence[float]) -> dict[int, float]:
    """The 50th, 90th and 99th percentile, with linear interpolation.

    Example:
        >>> percentiles_of([1.0, 2.0, 3.0])
        {50: 2.0, 90: 2.8, 99: 2.98}
    """
    ordered = sorted(seconds)
    if len(ordered) == 1:
        return dict.fromkeys((50, 90, 99), ordered[0])
    cuts = statistics.quantiles(ordered, n=100, method="inclusive")
    return {percent: round(cuts[percent - 1], 9) for percent in (50, 90, 99)}


def measure(
    contenders: Sequence[Contender],
    *,
    runs: int = 50,
    turns: int = 1,
    ops: bool = True,
    progress: Callable[[str], None] = lambda step: None,
) -> list[Measurement]:
    """Measures contenders side by side.

    Args:
        contenders: the models that take turns, each in a process of its own.
        runs: the least number of runs of each contender.
        turns: the least number of turns of each contender; a turn takes 0.1 s.
        ops: True to time ops too, which doubles the duration.
        progress: called with a description of each step.

    Returns:
        One measurement for each contender.

    Raises:
        ConversionError: a file is not a model, or cannot be run; the message names it.
        ValueError: a model needs other shapes of its inputs than the contender has.
        OSError: a file cannot be read.

    Example:
        >>> [one] = measure([Contender(Path("model.tflite"))])
        >>> 0 < one.median < 1  # in seconds
        True
    """
    graphs = graphs_of(contenders)
    for contender in contenders:
        _check_shapes(contender, graphs[contender.model])
    with ExitStack() as stack:
        workers = []
        for contender in contenders:
            progress(f"loading {contender.model.name}")
            workers.append(stack.enter_context(_Worker(contender)))
        for worker in workers:
            worker.warm_up()
        turn = 0
        while turn < turns or any(len(worker.seconds) < runs for worker in workers):
            turn += 1
            progress(f"running: {min(len(worker.seconds) for worker in workers)} of {runs} runs")
            for worker in workers:
                worker.take_turn(ops)
        return [worker.end(graphs[worker.contender.model]) for worker in workers]


def graphs_of(contenders: Sequence[Contender]) -> dict[Path, Graph]:
    """The main graph of each model.

    Raises:
        ConversionError: a file is not a model; the message names it.
        OSError: a file cannot be read.
    """
    graphs = {}
    for path in dict.fromkeys(contender.model for contender in contenders):
        try:
            graphs[path] = read_model(read_file(path)).graphs[0]
        except ConversionError as error:
            raise ConversionError(str(error) if str(path) in str(error) else f"{path}: {error}") from error
    return graphs


def _check_shapes(contender: Contender, graph: Graph) -> None:
    taken = [tensor.shape_of_runs for tensor in graph.inputs]
    given = [*contender.input_shapes]
    if contender.is_larq:
        return
    if not given and any(-1 in shape for shape in taken):
        raise ValueError(f"{contender.model} takes inputs of any size, {taken}: give their shapes (--input-shape)")
    if given and (len(given) != len(taken) or not all(map(fits, given, taken))):
        raise ValueError(f"{contender.model} takes inputs {taken}, not {given}")


class _Worker:
    """The process that runs the model of one contender."""

    def __init__(self, contender: Contender) -> None:
        self.seconds: list[float] = []
        self.contender = contender
        path = json.dumps([] if contender.is_larq else sys.path)
        file = Path(__file__).with_name("worker.py")
        shapes = json.dumps(contender.input_shapes)
        words = contender.runtime, contender.model, contender.threads, contender.isa, shapes
        python = contender.python or sys.executable
        try:
            self._process = subprocess.Popen(
                [python, "-c", _START, str(file), path, *map(str, words)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except OSError as error:
            raise ConversionError(f"{python} cannot be started: {error.strerror}") from None

    def __enter__(self) -> _Worker:
        try:
            self._load_seconds = self._answer()["load_seconds"]
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            # Closing a pipe to the contender's process writes buffered data, which fails if the process has ended.
            with suppress(BrokenPipeError):
                assert stream is not None
                stream.close()

    def _ask(self, *request: Any) -> Any:
        assert self._process.stdin is not None
        # If the contender's process has ended, writing to it fails. The reason is in the last answer of the process,
        # which is read next.
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        try:
            answer = json.loads(line)
        except ValueError:
            code = self._process.wait()
            ending = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise ConversionError(f"{self._name()} ends the runtime's process with {ending}") from None
        if isinstance(answer, dict) and "error" in answer:
            raise ConversionError(f"{self._name()} cannot be run: {answer['error']}")
        return answer

    def _name(self) -> str:
        where = "" if self.contender.runtime == LITEBNN else f" in {self.contender.runtime}"
        return f"{printable(self.contender.model)}{where}"

    def warm_up(self) -> None:
        self._ask("run", _SECONDS_OF_A_TURN)

    def take_turn(self, ops: bool) -> None:
        self.seconds += self._ask("run", _SECONDS_OF_A_TURN)
        if ops and not self.contender.is_larq:
            self._ask("watch", _SECONDS_OF_A_TURN)

    def end(self, graph: Graph) -> Measurement:
        found = self._ask("end")
        ops = []
        percentiles = percentiles_of(self.seconds)
        for indices, share in found["ops"]:
            several = [graph.ops[index] for index in indices]
            outputs = [tensor.name for op in several[-1:] for tensor in op.outputs[:1]]
            names = tuple(op.name for op in several)
            ops.append(OpTime(tuple(indices), names, "".join(outputs), share * percentiles[50]))
        return Measurement(
            contender=self.contender,
            runs=len(self.seconds),
            best=min(self.seconds),
            percentiles=percentiles,
            load_seconds=self._load_seconds,
            peak_memory_bytes=found["peak_memory_bytes"],
            model_memory_bytes=found["model_memory_bytes"],
            ops=tuple(ops),
        )
