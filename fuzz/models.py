"""What the targets for the converter share: atheris's bytes as decisions, and what is no finding."""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import atheris

ROOT = Path(__file__).resolve().parents[1]
# A script's own folder is not the project's.
sys.path.insert(0, str(ROOT))


class Decisions:
    """Bytes in the place of `random.Random`."""

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
    """Takes the converter's refusal of a model for a good answer, and a failure of its own for a finding."""
    from litebnn.errors import ConversionError, Defect

    try:
        yield
    except Defect:
        raise
    except ConversionError:
        pass


def fuzz(target: Callable[[bytes], None], *flags: str) -> None:
    """Calls a target with bytes, as libFuzzer's flags on the command line and then `flags` ask."""
    warnings.simplefilter("ignore")
    atheris.Setup([*sys.argv, *flags], target)
    atheris.Fuzz()
