"""What a mutant is, in either language, which of them are known to compute the same, and how a sample is tried."""

import itertools
import random
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from toolchains.targets import ROOT, read_toml


@dataclass(frozen=True)
class Mutant:
    """One line of a file, its number from 1, as it is and as it is changed."""

    file: str
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before.strip()}  ->  {self.after.strip()}"

    @property
    def is_equivalent(self) -> bool:
        """Whether equivalent.toml says why it computes the same."""
        return (self.file, self.before.strip(), self.after.strip()) in _EQUIVALENTS


_EQUIVALENTS = {
    (row["file"], row["before"], row["after"]): row["why"]
    for row in read_toml(ROOT / "mutants" / "equivalent.toml")["mutant"]
}

Candidate = TypeVar("Candidate")


class Outcome(Enum):
    """What comes of trying a mutant."""

    SURVIVED = "survived"
    FAILED = "a test failed"
    HUNG = "took too long"


Verdict = tuple[Mutant, Outcome]


def survivors(
    candidates: Iterable[Candidate],
    count: int,
    seed: int,
    executor: Executor,
    trial: Callable[[Candidate], Verdict | None],
) -> tuple[int, list[Mutant]]:
    """Tries a random sample of the candidates that are mutants, and prints those for which no test fails.

    What only takes too long is killed too, and printed, so that one can tell whether it would have ended.

    Args:
        count: how many to try; fewer where there are no more.
        seed: of the sample.
        executor: runs the trials, as many at once as it likes.
        trial: tries one; None says that it is no mutant.

    Returns:
        How many were tried, and those of them that no test noticed.
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
