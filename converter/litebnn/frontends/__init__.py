"""Models of other formats -> the bytes of a float .tflite file, by their frameworks' own exporters."""
