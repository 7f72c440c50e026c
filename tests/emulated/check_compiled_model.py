"""Runs golden models in LiteRT's CompiledModel. It runs in a Python into which a litebnn wheel was installed.

Usage:

    python check_compiled_model.py tests/golden

prints one line of JSON: the models with the same bits as in the interpreter, and the others.
"""

import json
import sys
from pathlib import Path

import numpy as np

import litebnn


def same_bits(path: Path) -> bool:
    """True if CompiledModel and Interpreter compute the same bits for a model."""
    x = np.load(path.with_name(path.name.replace(".lce.tflite", ".npz")))["input"]
    expected = litebnn.Interpreter(path, runtime="ai-edge-litert").predict(x)
    found = litebnn.CompiledModel(path).predict(x)
    return bool(found.tobytes() == expected.tobytes())


report: dict[str, list[str]] = {"same": [], "different": []}
for path in sorted(Path(sys.argv[1]).glob("*.lce.tflite")):
    report["same" if same_bits(path) else "different"].append(path.name)
print(json.dumps(report))
