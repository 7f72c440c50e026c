"""Fuzzes the reader with any bytes as a .tflite file: it must read, check and write the file again, or refuse it."""

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

with atheris.instrument_imports(include=["litebnn"]):
    from litebnn.flatbuffer import read_strictly, write_model
    from litebnn.graph import compact
    from litebnn.safety import check_model

from fuzz.models import fuzz, refusals


def reads(data: bytes) -> None:
    with refusals():
        model = read_strictly(data)
        with refusals():
            check_model(model)
        compact(model)
        read_strictly(write_model(model))


if __name__ == "__main__":
    fuzz(reads)
