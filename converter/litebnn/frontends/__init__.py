"""Converts models in other formats to the bytes of a float .tflite file, with the exporters of their frameworks."""
