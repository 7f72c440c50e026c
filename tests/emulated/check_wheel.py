"""Reports litebnn's setup and the errors of golden models. It runs in a Python into which a litebnn wheel was
installed.

Usage:

    python check_wheel.py tests/golden

prints the report as one line of JSON.
"""

import importlib.util
import json
import platform
import sys
from pathlib import Path

import numpy as np

import litebnn
from litebnn.runtime import find_runtime

NAMES = ("bn_relu", "bitpacked_chain", "bmaxpool", "grouped", "quant_dense", "residual", "same_zero_relu_bn_s2")


def relative_error(folder: Path, name: str) -> float:
    """The largest difference of a model's output from the golden output, relative to the largest magnitude."""
    golden = np.load(folder / f"{name}.npz")
    found = litebnn.Interpreter(folder / f"{name}.lce.tflite").predict(golden["input"])
    return float(np.abs(found - golden["lce"]).max() / np.abs(golden["lce"]).max())


folder = Path(sys.argv[1])
report = {
    "machine": platform.machine(),
    "library": str(litebnn.find_library().relative_to(Path(litebnn.__file__).parent)),
    "runtime": find_runtime().__name__,
    "tensorflow": importlib.util.find_spec("tensorflow") is not None,
    "relative_errors": {name: relative_error(folder, name) for name in NAMES},
}
print(json.dumps(report))
