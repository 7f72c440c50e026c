"""Makes the network in its four forms. Each framework has a module here, which runs in that framework's own
environment.

Usage:

    python -m examples.compare.makers FRAMEWORK FOLDER [--mnist=DIR] [--epochs=N]

The command writes FOLDER/FRAMEWORK-FORM.tflite for each of `FORMS`, and prints its progress as lines of JSON. The
network is that of a public walkthrough, from 28×28 digits to 10 classes. It has three 3×3 convolutions without padding,
the first two with max pooling, and two dense layers. No layer has a bias; each has a batch norm without a scale.
"""

from collections.abc import Callable

FRAMEWORKS = ("keras", "torch")
FORMS = ("float32", "int8", "int8 trained", "1-bit")

CONVOLUTIONS = (32, 64, 64)  # output channels
DENSE = (64, 10)  # output features

BATCH = 64
LEARNING_RATE = 0.01
LEARNING_RATE_INT8 = 1e-4  # quantization-aware training continues from the float network
EPOCHS_INT8 = 3
CALIBRATION_IMAGES = 200

OnProgress = Callable[[str, float], None]  # takes a form of FORMS, and the share of its work that is done


def file_name(framework: str, form: str) -> str:
    """The name of the file with one form of the network, such as "keras-int8-trained.tflite"."""
    return f"{framework}-{form.replace(' ', '-')}.tflite"
