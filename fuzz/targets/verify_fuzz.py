"""Fuzzes the converter's function `verify_apart` with two models, of which one or both are damaged. The function must
compare the models in a separate process, or refuse them."""

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

with atheris.instrument_imports(include=["litebnn.runtime.isolated", "litebnn.verify"]):
    from litebnn.verify.verification import verify_apart

from fuzz.models import Decisions, fuzz, refusals
from tests.support.damage import SOURCES, damaged

# The time limit of an input. Each input starts a process, which takes a second or two, and more on a busy machine.
PATIENCE = "-timeout=240"


def verifies(data: bytes) -> None:
    decisions = Decisions(data)
    sound = decisions.choice(SOURCES)
    model, _ = damaged(decisions)
    with refusals():
        verify_apart(*decisions.choice([(model, sound), (sound, model), (model, model)]))


if __name__ == "__main__":
    fuzz(verifies, PATIENCE)
