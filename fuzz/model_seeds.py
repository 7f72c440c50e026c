"""Makes seeds of the targets conversions and reader, from models that the converter's tests make and read.

Usage:

    python -m fuzz.model_seeds

Each seed reaches code of the converter that the other seeds do not reach. A committed seed of the target `conversions`
is kept as long as no other seed reaches the same code.
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
import litebnn.safety
from fuzz.coverage import CONVERTER
from fuzz.seeds import CORPUS, files, write
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Model, Tensor
from litebnn.safety import check_model
from tests.support.float_models import FloatModel

TESTS = (
    *(f"converter/litebnn/{name}" for name in ("rules", "analysis", "build", "graph", "flatbuffer")),
    "tests/convert/test_hidden_forms.py",
    "tests/convert/test_hidden_int8_forms.py",
)
LARGEST = 20000
# The largest seed of the target `reader`, in bytes. Some tests of the reader have models of thousands of parts, which
# would be slow seeds.
LARGEST_READ = 7000
# A seed may have this many bytes for each step (pair of consecutive lines) of the converter that only this seed
# executes. Large seeds slow down every run.
BYTES_OF_A_STEP = 6000
# The options to try, as bits of `options` in conversions_fuzz.py: none, all compatible ones, and combinations of int8
# inputs and outputs.
OPTIONS = (0b00000000, 0b00000011, 0b00011100, 0b00100001, 0b11000010)


def tested() -> tuple[list[bytes], list[bytes]]:
    """The models that the converter's tests convert, and the models that they only read or check, without
    duplicates.
    """
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
    # The functions read_model and check_model are replaced by recording ones before pytest collects the tests, because
    # test modules import the functions when they are collected.
    litebnn.flatbuffer.read_model = record_read
    litebnn.safety.check_model = record_checked
    pytest.main(["-q", *TESTS])
    return sorted(m for m in made if len(m) <= LARGEST), sorted(m for m in given if len(m) <= LARGEST_READ)


def needed(target: Callable[[bytes], None], candidates: list[bytes], known: set[Any]) -> Iterator[tuple[str, bytes]]:
    """Selects inputs one by one: next is always the input that reaches the most new steps per byte. A step is a pair of
    consecutive lines that the converter executes.

    The function adds to `known` the steps that the selected inputs reach.
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
    """The steps (pairs of consecutive lines) that an input executes in the converter's files."""
    measured = coverage.Coverage(branch=True, include=[f"{folder}/*" for folder in CONVERTER], data_file=None)
    with measured.collect():
        target(candidate)
    data: Any = measured.get_data()
    return {(file, step) for file in data.measured_files() for step in data.arcs(file) or ()}


def main() -> int:
    """Runs the command line and returns the exit code."""
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
