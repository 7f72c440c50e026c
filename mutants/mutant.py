"""Mutants of C++ and Python code, the list of those that are known to be equivalent, and the trial of a random
sample.
"""

import functools
import itertools
import os
import random
import resource
import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeVar

from toolchains.targets import ROOT, read_toml


@dataclass(frozen=True)
class Mutant:
    """One line of a file, numbered from 1, before and after the change."""

    file: str
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before.strip()}  ->  {self.after.strip()}"

    @property
    def is_equivalent(self) -> bool:
        """True if equivalent.toml explains why the mutant computes the same as the original."""
        return (self.file, self.before.strip(), self.after.strip()) in _EQUIVALENTS


_EQUIVALENTS = {
    (row["file"], row["before"], row["after"]): row["why"]
    for row in read_toml(ROOT / "mutants" / "equivalent.toml")["mutant"]
}

Candidate = TypeVar("Candidate")


class Outcome(Enum):
    """The result of a mutant's trial."""

    SURVIVED = "survived"
    FAILED = "a test failed"
    HUNG = "took too long"


Verdict = tuple[Mutant, Outcome]
PATIENCE = 600  # further seconds by the clock; a program that hangs without computing ends too


def outcome_of(command: Sequence[str], folder: Path, seconds: int, **environment: str) -> Outcome:
    """Runs tests in a folder. They hang if they take more than `seconds` of processor time."""
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    variables = {**os.environ, **environment}
    try:
        finished = subprocess.run(
            command, capture_output=True, timeout=PATIENCE + 2 * seconds, preexec_fn=limit, env=variables, cwd=folder
        )
    except subprocess.TimeoutExpired:
        return Outcome.HUNG
    if finished.returncode == -signal.SIGXCPU:
        return Outcome.HUNG
    return Outcome.FAILED if finished.returncode else Outcome.SURVIVED


def survivors(
    candidates: Iterable[Candidate],
    count: int,
    seed: int,
    executor: Executor,
    trial: Callable[[Candidate], Verdict | None],
) -> tuple[int, list[Mutant]]:
    """Tries a random sample of the candidates that are mutants, and prints those for which no test fails.

    A mutant that takes too long counts as killed. Such a mutant is printed too, so that users can check if it would
    have ended.

    `count` is the number of mutants to try; fewer are tried if there are no more. `seed` is the random seed of the
    sample. `executor` runs the trials, with its own degree of parallelism. `trial` tries one candidate, and returns
    None if the candidate is no mutant.

    Returns:
        The number of tried mutants, and the mutants for which no test failed.
    """
    shuffled = list(candidates)
    random.Random(seed).shuffle(shuffled)
    left, tried, alive = iter(shuffled), 0, []
    while wanted := list(itertools.islice(left, count - tried)):
        for mutant, outcome in filter(None, executor.map(trial, wanted)):
            tried += 1
            if outcome is Outcome.SURVIVED:
                alive.append(mutant)
            if outcome is not Outcome.FAILED:
                print(f"{tried - len(alive)} of {tried} killed; {outcome.value}: {mutant}", flush=True)
    return tried, alive
