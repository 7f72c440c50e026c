"""Runs a suite's cases in the interpreter of the package tflite-micro, with the ops of a shared library.

Usage:

    python run_tflm.py PACKAGE LIBRARY CASES OUTPUTS

PACKAGE is the folder of an unpacked wheel, CASES a folder that tests/runtimes/cases.py wrote. The results are written
to the file OUTPUTS, each under the case's name. A case that the interpreter refuses has no output.
"""

import ctypes
import sys
from pathlib import Path

import numpy as np


def main(package: str, library: str, cases: str, outputs: str) -> None:
    sys.path.insert(0, package)
    ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    from tflite_micro.python.tflite_micro import runtime

    found = {}
    for path in sorted(Path(cases).glob("*.tflite")):
        recorded = path.with_suffix(".npz")
        print(f"== {path.stem}", file=sys.stderr, flush=True)
        try:
            interpreter = runtime.Interpreter.from_bytes(
                path.read_bytes(), custom_op_registerers=["litebnn_register_micro"], arena_size=4_000_000
            )
            values = np.load(recorded)["input"] if recorded.exists() else None
            if values is not None:
                interpreter.set_input(values, 0)
                interpreter.invoke()
            found[path.stem] = interpreter.get_output(0) if values is not None else np.zeros(0)
        except (RuntimeError, ValueError) as error:
            print(error, file=sys.stderr, flush=True)
    np.savez(outputs, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
