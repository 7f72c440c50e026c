"""Fuzzes the converter with random float and quantized graphs, which bytes select and sometimes damage. The converter
must convert or refuse them."""

import importlib
import sys
from pathlib import Path
from random import Random

import atheris
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

with atheris.instrument_imports(include=["litebnn"]):
    from litebnn.convert import convert_tflite
    from litebnn.flatbuffer import read_strictly
    from litebnn.safety import check_model

    # What `convert` imports when a conversion needs it: after the first input, it would not be instrumented.
    for room in ("quantize.calibration", "report.conversion", "safety", "verify.on_request"):
        importlib.import_module(f"litebnn.{room}")

from fuzz.models import fuzz, refusals
from tests.convert.random_graphs import graphs
from tests.convert.random_quantized_graphs import int8_graphs, int16_graphs, trained_graphs
from tests.support.damage import SOURCES, damaged
from tests.support.quantized_models import in_half_precision, with_quantized_weights

AS_FILES = (lambda source: source, in_half_precision, with_quantized_weights)
MODELS = st.one_of(
    st.sampled_from(SOURCES),
    st.builds(lambda case, kind: kind(case.source), graphs(), st.sampled_from(AS_FILES)),
    st.one_of(int8_graphs(), int16_graphs(), trained_graphs()).map(lambda case: case.source),
)


@settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(MODELS, st.randoms(use_true_random=False))
def converts(source: bytes, rng: Random) -> None:
    model, options = damaged(rng, [source], [0, 0, 1, 3])
    with refusals():
        check_model(read_strictly(model))
    with refusals():
        convert_tflite(model, **options)


if __name__ == "__main__":
    fuzz(converts.hypothesis.fuzz_one_input)  # type: ignore[attr-defined]
