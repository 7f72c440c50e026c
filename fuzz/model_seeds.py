"""Makes seeds of the targets conversions and reader, from models that the converter's tests make and read.

Usage:

    python -m fuzz.model_seeds

Each seed reaches code of the converter that the others do not reach. Committed seeds of conversions are
kept as long as that holds.
"""

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import coverage
import pytest

import litebnn.flatbuffer
import litebnn.graph
from fuzz.coverage import CONVERTER
from fuzz.seeds import CORPUS, files, write
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Model, Tensor, check_model
from tests.support.float_models import FloatModel

TESTS = (
    *(f"converter/litebnn/{name}" for name in ("rules", "analysis", "build", "graph", "flatbuffer")),
    "tests/convert/test_hidden_forms.py",
    "tests/convert/test_hidden_int8_forms.py",
)
LARGEST = 20000
# Limit for the reader's seeds, because its tests have models of thousands of parts, which are slow.
LARGEST_READ = 7000
# Limit for a seed's bytes per newly covered step, because large seeds slow every run down.
BYTES_OF_A_STEP = 6000
# Bits of conversions_fuzz.options: none, all compatible ones, and combinations of int8 inputs and outputs.
OPTIONS = (0b00000000, 0b00000011, 0b00011100, 0b00100001, 0b11000010)


def tested() -> tuple[list[bytes], list[bytes]]:
    """The models that the tests make for conversion, and those that they read or check, without duplicates."""
    made: set[bytes] = set()
    given: set[bytes] = set()
    make: Any = FloatModel.model

    def record(model: FloatModel, *outputs: Tensor) -> Model:
        result: Model = make(model, *outputs)
        made.add(write_model(result))
        return result

    def record_read(data: bytes | bytearray | memoryview) -> Model:
        given.add(bytes(data))
        return read_model(data)

    def record_checked(model: Model) -> None:
        with suppress(KeyError):  # an op that no file can name
            given.add(write_model(model))
        check_model(model)

    FloatModel.model = record
    # Replaced before tests are collected, because they import these functions then.
    litebnn.flatbuffer.read_model = record_read
    litebnn.graph.check_model = record_checked
    pytest.main(["-q", *TESTS])
    return sorted(m for m in made if len(m) <= LARGEST), sorted(m for m in given if len(m) <= LARGEST_READ)


def needed(target: Callable[[bytes], None], candidates: list[bytes], known: set[Any]) -> Iterator[tuple[str, bytes]]:
    """Selects, one after the other, the input that reaches most new steps for its size.

    Adds the steps from line to line that these inputs reach to `known`.
    """
    steps = {candidate: _steps(target, candidate) for candidate in candidates if candidate}
    while steps:
        best = max(steps, key=lambda candidate: len(steps[candidate] - known) / len(candidate))
        new = steps.pop(best) - known
        if len(new) * BYTES_OF_A_STEP < len(best):
            break
        known |= new
        yield hashlib.sha1(best).hexdigest()[:16], best


def _steps(target: Callable[[bytes], None], candidate: bytes) -> set[Any]:
    """The pairs of consecutive lines that an input reaches in the converter's files."""
    measured = coverage.Coverage(branch=True, include=[f"{folder}/*" for folder in CONVERTER], data_file=None)
    with measured.collect():
        target(candidate)
    data: Any = measured.get_data()
    return {(file, step) for file in data.measured_files() for step in data.arcs(file) or ()}


def main() -> int:
    """The command line; returns the exit code."""
    made, given = tested()
    from fuzz.targets.conversions_fuzz import converts
    from fuzz.targets.reader_fuzz import reads

    known: set[Any] = set()
    for _, data in files():
        known |= _steps(reads, data)
    write(CORPUS / "reader", needed(reads, given, known))
    conversions = CORPUS / "conversions"
    models = [path.read_bytes() for path in sorted(conversions.iterdir())]
    models += [bytes([options]) + model for options in OPTIONS for model in made]
    chosen = list(needed(converts, models, known))
    for path in conversions.iterdir():
        path.unlink()
    write(conversions, iter(chosen))
    return 0


if __name__ == "__main__":
    sys.exit(main())
