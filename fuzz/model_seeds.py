"""Makes the seeds of fuzz/targets/conversions_fuzz.py: models that the converter's tests make, and options for each.

    python -m fuzz.model_seeds

Each of these reaches a line or a branch of the reader or the passes that no smaller one does.
"""

import hashlib
import sys
from collections.abc import Iterator
from typing import Any

import coverage
import pytest

from fuzz.coverage import CONVERTER
from fuzz.seeds import CORPUS, write
from litebnn.flatbuffer import write_model
from litebnn.graph import Model, Tensor
from tests.support.float_models import FloatModel

TESTS = ("converter/litebnn/passes", "converter/litebnn/rewriting", "tests/convert/test_hidden_forms.py")
LARGEST = 20000
# None, all at once that go together, and int8 inside and outside: as the bits of conversions_fuzz.options say.
OPTIONS = (0b00000000, 0b00000011, 0b00011100, 0b00100001, 0b11000010)


def tested_models() -> list[bytes]:
    """The models that the tests make, each once, small ones first."""
    found: set[bytes] = set()
    made: Any = FloatModel.model

    def record(model: FloatModel, *outputs: Tensor) -> Model:
        result: Model = made(model, *outputs)
        found.add(write_model(result))
        return result

    FloatModel.model = record
    pytest.main(["-q", *TESTS])
    return sorted((model for model in found if len(model) <= LARGEST), key=len)


def needed(candidates: Iterator[bytes]) -> Iterator[tuple[str, bytes]]:
    """Those that reach what those before do not."""
    from fuzz.targets.conversions_fuzz import converts

    measured = coverage.Coverage(branch=True, include=[f"{folder}/*" for folder in CONVERTER], data_file=None)
    reached = 0
    for candidate in candidates:
        with measured.collect():
            converts(candidate)
        data: Any = measured.get_data()
        arcs = sum(len(data.arcs(file) or ()) for file in data.measured_files())
        if arcs > reached:
            yield hashlib.sha1(candidate).hexdigest()[:16], candidate
        reached = arcs


def main() -> int:
    """The command line; returns the exit code."""
    models = tested_models()
    write(CORPUS / "conversions", needed(bytes([options]) + model for options in OPTIONS for model in models))
    return 0


if __name__ == "__main__":
    sys.exit(main())
