"""An extension of Google's Model Explorer: `model-explorer model.tflite --extensions=litebnn.model_explorer`."""
