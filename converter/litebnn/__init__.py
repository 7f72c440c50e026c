"""litebnn: binarized neural networks in TensorFlow Lite and LiteRT.

Convert a trained model, and run the result in the runtime that is installed::

    import litebnn

    flatbuffer_model = litebnn.convert_keras_model(keras_model)
    probabilities = litebnn.Interpreter(flatbuffer_model).predict(images)

Importing this package imports neither TensorFlow, nor PyTorch, nor a runtime. A function imports what it needs when it
is called.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from litebnn.convert import convert_keras_model, convert_saved_model, convert_tflite, convert_torch_model
    from litebnn.errors import ConversionError
    from litebnn.evaluate.classifier import Classifier
    from litebnn.evaluate.data_set import DataSet
    from litebnn.evaluate.metrics import Evaluation
    from litebnn.evaluate.on_boards import Boards
    from litebnn.evaluate.run import evaluate_models
    from litebnn.micro.export import Export, export_c
    from litebnn.report.arrays import binary_weights, intermediate_tensors
    from litebnn.report.conversion import ConversionReport
    from litebnn.runtime import CompiledModel, Interpreter, environment, find_library, load_delegate, register_ops

__version__ = "0.1.0"

_HOME = {
    "Boards": "litebnn.evaluate.on_boards",
    "Classifier": "litebnn.evaluate.classifier",
    "CompiledModel": "litebnn.runtime",
    "ConversionError": "litebnn.errors",
    "ConversionReport": "litebnn.report.conversion",
    "DataSet": "litebnn.evaluate.data_set",
    "Evaluation": "litebnn.evaluate.metrics",
    "Export": "litebnn.micro.export",
    "Interpreter": "litebnn.runtime",
    "binary_weights": "litebnn.report.arrays",
    "convert_keras_model": "litebnn.convert",
    "convert_saved_model": "litebnn.convert",
    "convert_tflite": "litebnn.convert",
    "convert_torch_model": "litebnn.convert",
    "environment": "litebnn.runtime",
    "evaluate_models": "litebnn.evaluate.run",
    "export_c": "litebnn.micro.export",
    "find_library": "litebnn.runtime",
    "intermediate_tensors": "litebnn.report.arrays",
    "load_delegate": "litebnn.runtime",
    "register_ops": "litebnn.runtime",
}

__all__ = [
    "Boards",
    "Classifier",
    "CompiledModel",
    "ConversionError",
    "ConversionReport",
    "DataSet",
    "Evaluation",
    "Export",
    "Interpreter",
    "binary_weights",
    "convert_keras_model",
    "convert_saved_model",
    "convert_tflite",
    "convert_torch_model",
    "environment",
    "evaluate_models",
    "export_c",
    "find_library",
    "intermediate_tensors",
    "load_delegate",
    "register_ops",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'litebnn' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
