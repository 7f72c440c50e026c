"""Fuzzes the converter with any bytes as a .tflite file, with options that the first byte selects. The converter must
convert or refuse the file."""

import importlib
import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

with atheris.instrument_imports(include=["litebnn"]):
    from litebnn.convert import convert_tflite
    from litebnn.options import ConvertOptions

    # What `convert` imports when a conversion needs it: after the first input, it would not be instrumented.
    for room in ("quantize.calibration", "report.conversion", "safety", "verify.on_request"):
        importlib.import_module(f"litebnn.{room}")

from fuzz.models import fuzz, refusals


def options(choice: int) -> ConvertOptions:
    """The conversion options that the bits of a byte stand for."""
    weights = (None, "int4", "int2", "int4")[choice >> 5 & 3]
    chosen: ConvertOptions = {
        "larq_compatible": bool(choice & 1),
        "assume_nonzero": bool(choice & 2),
        "experimental_default_int8_range": (-3.0, 3.0) if choice & 4 else None,
        "inference_input_type": "int8" if choice & 8 else "float32",
        "inference_output_type": "int8" if choice & 16 else "float32",
        "low_bit_weights": weights,
        "dynamic_range": weights is not None and bool(choice & 128),
    }
    return chosen


def converts(data: bytes) -> None:
    if data:
        with refusals():
            convert_tflite(data[1:], **options(data[0]))


if __name__ == "__main__":
    fuzz(converts)
