"""Sound graphs that bytes damage: converted or refused."""

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

with atheris.instrument_imports(include=["litebnn"]):
    from litebnn.convert import convert_tflite

from fuzz.models import Decisions, fuzz, refusals
from tests.support.damage import damaged


def converts(data: bytes) -> None:
    model, options = damaged(Decisions(data))
    with refusals():
        convert_tflite(model, **options)


if __name__ == "__main__":
    fuzz(converts)
