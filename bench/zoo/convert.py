"""Converts networks of larq-zoo."""

from pathlib import Path

from bench.zoo import model_file
from litebnn.convert import convert_tflite


def convert_network(name: str) -> Path:
    """Converts a network and returns the new file, NAME.litebnn.tflite."""
    source = model_file(name, "float")
    path = source.with_name(f"{name}.litebnn.tflite")
    path.write_bytes(convert_tflite(source))
    return path
