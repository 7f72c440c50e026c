"""Keras models, SavedModels and files -> the bytes of a float .tflite file, by TensorFlow's own converter."""
