"""Finds the networks of larq-zoo in build/zoo, and the Python of the environment that writes them.

That environment does not have litebnn.
"""

import json
from pathlib import Path

from toolchains.targets import BUILD, ToolkitError

ZOO = BUILD / "zoo"
# The Python of the environment with Larq Compute Engine, the runtime that litebnn is compared with.
PEER_PYTHON = BUILD / "peer-venv" / "bin" / "python"


def model_file(name: str, form: str) -> Path:
    """The file of a network: "float" as TensorFlow exported it, "lce" as Larq Compute Engine converted it.

    Raises:
        ToolkitError: the file of the network does not exist.
    """
    path = ZOO / f"{name}.{form}.tflite"
    if not path.is_file():
        raise ToolkitError(f"there is no {path}: bench/zoo/make_models.py writes it, and says how")
    return path


def networks() -> list[str]:
    """The names of the networks in build/zoo.

    Raises:
        ToolkitError: the folder build/zoo has no network.
    """
    names = sorted(path.name.split(".")[0] for path in ZOO.glob("*.float.tflite"))
    if not names:
        raise ToolkitError(f"there is no network in {ZOO}: bench/zoo/make_models.py writes them, and says how")
    return names


def peer_refuses(name: str) -> bool:
    """True if Larq Compute Engine cannot convert a network, according to make_models.py's notes."""
    notes = ZOO / f"{name}.json"
    return notes.is_file() and bool(json.loads(notes.read_text(encoding="utf-8"))["lce_error"])
