"""Conversion of other formats to the bytes of a float .tflite file, by their frameworks' own exporters."""
