"""Finds what is installed: a TensorFlow Lite runtime for Python, and the op library."""

import importlib
import importlib.util
import os
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from litebnn.errors import shown
from litebnn.system import HERE

LIBRARY_NAME = HERE.library
LIBRARY_VARIABLE = "LITEBNN_LIBRARY"

# For each package that can be installed, the module with its `Interpreter` and `load_delegate`. The first installed
# package is used. TensorFlow comes last, because importing it takes seconds.
RUNTIMES = {
    "ai-edge-litert": "ai_edge_litert.interpreter",
    "tflite-runtime": "tflite_runtime.interpreter",
    "tensorflow": "tensorflow.lite.python.interpreter",
}

# The last release of tflite-runtime that was compiled for NumPy 1.
LAST_FOR_NUMPY_1 = (2, 14)


def find_runtime(name: str | None = None) -> ModuleType:
    """Imports a TensorFlow Lite runtime.

    Args:
        name: "ai-edge-litert", "tflite-runtime" or "tensorflow"; by default the first of them that is installed.

    Returns:
        The module with the runtime's `Interpreter` and `load_delegate`.

    Raises:
        ValueError: `name` is none of these three names.
        ImportError: this runtime, or any of the three, is not installed, or does not work with the installed NumPy.

    Example:
        >>> find_runtime().__name__
        'ai_edge_litert.interpreter'
    """
    if name is not None and name not in [*RUNTIMES]:
        raise ValueError(f"runtime is {shown(name)}, expected one of {', '.join(RUNTIMES)}")
    for package in [name] if name else RUNTIMES:
        if importlib.util.find_spec(RUNTIMES[package].partition(".")[0]):
            _check_numpy(package)
            return importlib.import_module(RUNTIMES[package])
    wanted = name or " or ".join(RUNTIMES)
    raise ImportError(f"no TensorFlow Lite runtime found: pip install {wanted}")


def _check_numpy(package: str) -> None:
    """Refuses NumPy 2 with a tflite-runtime that was compiled for NumPy 1, because the runtime's own error message is
    misleading."""
    if package == "tflite-runtime" and int(version("numpy").partition(".")[0]) >= 2:
        found = version(package)
        if tuple(map(int, found.split(".")[:2])) <= LAST_FOR_NUMPY_1:
            raise ImportError(f"{package} {found} works with NumPy 1 only: pip install 'numpy<2'")


def find_library() -> Path:
    """Finds the op library: liblitebnn.so, on macOS liblitebnn.dylib, on Windows litebnn.dll.

    The search order is the environment variable LITEBNN_LIBRARY (a file), the installed package, and, in a source
    checkout, the result of `invoke build --target=host`.

    Returns:
        The library's path.

    Raises:
        FileNotFoundError: the library is in none of these places, or the environment variable does not name a file.

    Example:
        >>> find_library().name
        'liblitebnn.so'
    """
    if named := os.environ.get(LIBRARY_VARIABLE):
        if not Path(named).is_file():
            raise FileNotFoundError(f"{LIBRARY_VARIABLE} names {named}, which is no file")
        return Path(named).resolve()
    package = Path(__file__).resolve().parents[1]
    places = [package / "lib" / LIBRARY_NAME, package.parents[1] / "build" / "host" / LIBRARY_NAME]
    for place in places:
        if place.is_file():
            return place
    looked = ", ".join(map(str, places))
    raise FileNotFoundError(
        f"{LIBRARY_NAME} not found (looked for {looked}): install a litebnn wheel, run `invoke build --target=host` "
        f"in a checkout, or set {LIBRARY_VARIABLE}"
    )
