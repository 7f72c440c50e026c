"""Helpers of the converter's fuzz targets: they make decisions from atheris's bytes, and let errors pass that are not
findings."""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import atheris

ROOT = Path(__file__).resolve().parents[1]
# Python puts only the folder of the script on its path. This line adds the folder of the project.
sys.path.insert(0, str(ROOT))


class Decisions:
    """A replacement for `random.Random` that takes its numbers from atheris's bytes."""

    def __init__(self, data: bytes) -> None:
        self._provider = atheris.FuzzedDataProvider(data)

    def random(self) -> float:
        return float(self._provider.ConsumeProbability())

    def randrange(self, end: int) -> int:
        return int(self._provider.ConsumeIntInRange(0, end - 1))

    def choice(self, items: Sequence[Any]) -> Any:
        return items[self.randrange(len(items))]


@contextmanager
def refusals() -> Iterator[None]:
    """Accepts the error with which the converter refuses a model. Any other error is a finding."""
    from litebnn.errors import ConversionError, Defect

    try:
        yield
    except Defect:
        raise
    except ConversionError:
        pass


def fuzz(target: Callable[[bytes], None], *flags: str) -> None:
    """Lets libFuzzer call a target with bytes, with the flags on the command line and those in `flags`."""
    warnings.simplefilter("ignore")
    atheris.Setup([*sys.argv, *flags], target)
    atheris.Fuzz()
