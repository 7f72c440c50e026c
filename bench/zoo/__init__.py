"""The networks of larq-zoo as files in build/zoo, and the Python of the environment that writes them."""

from pathlib import Path

from toolchains.targets import BUILD, ToolkitError

ZOO = BUILD / "zoo"
# Larq Compute Engine, the peer that litebnn is measured against, needs an environment of its own.
PEER_PYTHON = BUILD / "peer-venv" / "bin" / "python"


def model_file(name: str, form: str) -> Path:
    """The file of a network: "float" as TensorFlow has exported it, "lce" as Larq Compute Engine has converted it.

    Raises:
        ToolkitError: it is not there.
    """
    path = ZOO / f"{name}.{form}.tflite"
    if not path.is_file():
        raise ToolkitError(f"there is no {path}: bench/zoo/make_models.py writes it, and says how")
    return path
