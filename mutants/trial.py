"""Tries mutants of Python code with only the tests that execute the changed lines, the quickest first.

The process that imports this module must not import the mutated package itself. Each trial runs in a fork of this
process, which imports the changed package. If only functions have changed, it runs in a fork that has already imported
the package and collected the tests.
"""

import ast
import gc
import importlib
import itertools
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from mutants.mutant import Outcome

FORK = multiprocessing.get_context("fork")
# The limits of a trial: seconds for all tests together, and bytes of memory.
SECONDS, BYTES = 60.0, 8 << 30
# The time limit of a test, and of the import of the package: SLOWER times the normal time, plus MORE seconds.
SLOWER, MORE = 5.0, 20.0
# The Hypothesis profile of trials. It does not search for the smallest failing example, because any failing example
# suffices.
PROFILE = "mutants"


def _pytest(folder: Path, arguments: Sequence[str], plugin: object, *, keep_compiled: bool = False) -> int:
    """Runs pytest and returns its exit code. The process must end afterwards, because pytest leaves changes in it."""
    import hypothesis

    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    sys.path[:0] = [str(folder / "converter"), str(folder)]
    sys.dont_write_bytecode = not keep_compiled
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(PROFILE, deadline=None, database=None, phases=phases)
    flags = ("-x", "-q", "-p", "no:cacheprovider", "-W", "ignore", "--hypothesis-seed=0")
    own = (f"--hypothesis-profile={PROFILE}", f"--basetemp={folder / 'tmp' / str(os.getpid())}")
    return int(importlib.import_module("pytest").main([*flags, *own, *arguments], plugins=[plugin]))


def _outcome(target: Callable[..., object], *arguments: object) -> Outcome:
    """The outcome of a fork that runs `target`, which returns true if a test failed."""
    process = os.fork()
    if process == 0:
        failed = True
        try:
            failed = bool(target(*arguments))
        finally:
            os._exit(failed)
    status = os.waitpid(process, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return Outcome.HUNG
    return Outcome.FAILED if status else Outcome.SURVIVED


def _limit(seconds: float) -> None:
    """Limits the processor time of this process, which is killed when it exceeds the limit. A later call replaces
    the limit. `seconds` is the time that the work normally takes.
    """
    end = time.process_time() + MORE + SLOWER * seconds
    resource.setrlimit(resource.RLIMIT_CPU, (int(end), resource.RLIM_INFINITY))


@dataclass
class Recording:
    """A plugin of pytest that records which lines the tests execute.

    For each file and each of its lines, `tests` has the names of the tests; "" stands for the import. `seconds` has
    each test's duration.
    """

    folder: Path
    tests: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def make(self, sources: Sequence[str], tests: Sequence[str]) -> bool:
        """Records which lines of the sources the tests execute. Returns False if a test fails."""
        ours, theirs = FORK.Pipe(duplex=False)
        process = FORK.Process(target=self._record, args=(theirs, sources, tests))
        process.start()
        theirs.close()
        try:
            self.tests, self.seconds = ours.recv()
        except EOFError:
            return False
        process.join()
        return True

    def _record(self, out: Connection, sources: Sequence[str], tests: Sequence[str]) -> None:
        from coverage import Coverage

        self._coverage = Coverage(data_file=None, source=[str(self.folder / source) for source in sources])
        self._coverage.start()
        code = _pytest(self.folder, tests, self, keep_compiled=True)
        self._coverage.stop()
        data = self._coverage.get_data()
        if code == 0:
            lines = {str(Path(f).relative_to(self.folder)): data.contexts_by_lineno(f) for f in data.measured_files()}
            out.send((lines, self.seconds))
        os._exit(0)

    def pytest_runtest_protocol(self, item: Any) -> None:
        """Begins to record which lines a test executes, and its CPU time."""
        self._coverage.switch_context(item.nodeid)
        self.seconds[item.nodeid] = -time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Ends the recording of a test's lines and CPU time."""
        self.seconds[nodeid] += time.process_time()
        self._coverage.switch_context("")

    def tests_of(self, file: str, lines: range) -> tuple[list[str], bool]:
        """The tests to run if these lines change, in order, and True if an import executes one of the lines.

        The tests of the file's own test module come first, then those of its folder, then all others, each sorted by
        time. A line that an import executes can affect any test of the file. Tests of code near this line may depend on
        it without executing it.
        """
        near = f"{Path(file).with_suffix('')}_test.py::", f"{Path(file).parent}/"
        executed = self.tests.get(file, {})
        found = {test for line in lines for test in executed.get(line, [])}
        imported = "" in found
        if imported:
            found = {test for tests in executed.values() for test in tests}
            found |= {test for test in self.seconds if test.startswith(near)}
        ordered = sorted(found - {""}, key=lambda test: (*(not test.startswith(x) for x in near), self.seconds[test]))
        ends = itertools.accumulate(self.seconds[test] for test in ordered)
        return [test for test, end in zip(ordered, ends, strict=True) if end <= SECONDS], imported


def statement_lines(text: str, line: int) -> range:
    """The lines of the innermost statement that contains `line`; of a compound statement, only the head's lines."""
    found = range(line, line + 1)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            if line <= max(last, node.lineno):
                found = range(node.lineno, max(last, node.lineno) + 1)
    return found


def replaced_code(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yields the pairs of code objects, old and new, that differ between two versions of a module's code, including
    nested ones."""
    if before == after:
        return
    yield before, after
    nested = [[constant for constant in code.co_consts if isinstance(constant, CodeType)] for code in (before, after)]
    for pair in zip(*nested, strict=False):
        yield from replaced_code(*pair)


@dataclass
class Chosen:
    """A plugin of pytest that runs only these tests, in this order."""

    tests: Sequence[str]
    seconds: Mapping[str, float]

    def pytest_runtest_protocol(self, item: Any) -> None:
        """Sets the time limit of a test."""
        _limit(self.seconds[item.nodeid])

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Deselects all tests that are not in the list `tests`, and sorts the others as in this list."""
        rank = {test: position for position, test in enumerate(self.tests)}
        items[:] = sorted((item for item in items if item.nodeid in rank), key=lambda item: rank[item.nodeid])


def try_in_new_process(folder: Path, recording: Recording, tests: Sequence[str]) -> Outcome:
    """Runs the tests in a new process, which imports the changed package from its files."""

    def run() -> int:
        _limit(0)
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        return _pytest(folder, list(files), Chosen(tests, recording.seconds))

    return _outcome(run)


class Collected:
    """A plugin of pytest that collects all tests once, and then tries each mutant in a fork of its process."""

    def __init__(self, folder: Path, recording: Recording, tests: Sequence[str]) -> None:
        self._seconds = recording.seconds
        self._ours, self._theirs = FORK.Pipe()
        self._process = FORK.Process(target=_pytest, args=(folder, tests, self), daemon=True)
        self._process.start()
        self._theirs.close()

    def outcome(self, before: str, after: str, tests: Sequence[str]) -> Outcome:
        """Runs `tests` on a module whose text changes from `before` to `after`. The texts differ only in functions."""
        self._ours.send((before, after, tests))
        return Outcome(self._ours.recv())

    def pytest_runtestloop(self, session: Any) -> None:
        """Answers requests for trials one by one, instead of running the tests."""
        items = {item.nodeid: item for item in session.items}
        while True:
            before, after, tests = self._theirs.recv()
            chosen = [items[test] for test in tests]
            self._theirs.send(_outcome(self._try, before, after, chosen))

    def _try(self, before: str, after: str, items: Sequence[Any]) -> bool:
        from _pytest.runner import runtestprotocol

        pair = (compile(text, "", "exec", dont_inherit=True) for text in (before, after))
        replaced = dict(replaced_code(*pair))
        for function in gc.get_objects():
            if isinstance(function, FunctionType) and function.__code__ in replaced:
                function.__code__ = replaced[function.__code__]
        for item in items:
            _limit(self._seconds[item.nodeid])
            if any(report.failed for report in runtestprotocol(item, log=False, nextitem=None)):
                return True
        return False
