"""The network in its four forms, made by a module for each framework, which is run in that framework's own environment.

    python -m examples.compare.makers FRAMEWORK FOLDER [--mnist=DIR] [--epochs=N]

writes FOLDER/FRAMEWORK-FORM.tflite for each of `FORMS`, and prints a line of JSON whenever it has come further. The
network is that of a public walkthrough, 28×28 digits to 10 classes: three convolutions of 3×3 without padding, of which
the first two have max pooling behind, and two dense layers; none has a bias, and each a batch norm without a scale.
"""

from collections.abc import Callable

FRAMEWORKS = ("keras", "torch")
FORMS = ("float32", "int8", "int8 trained", "1-bit")

CONVOLUTIONS = (32, 64, 64)  # output channels
DENSE = (64, 10)  # output features

BATCH = 64
LEARNING_RATE = 0.01
LEARNING_RATE_INT8 = 1e-4  # training with quantization goes on from the float network
EPOCHS_INT8 = 3
CALIBRATION_IMAGES = 200

OnProgress = Callable[[str, float], None]  # a form of FORMS, and the share of the work on it that is done


def file_name(framework: str, form: str) -> str:
    """The name of a form's file, such as "keras-int8-trained.tflite"."""
    return f"{framework}-{form.replace(' ', '-')}.tflite"
