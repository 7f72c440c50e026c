"""litebnn: binarized neural networks in TensorFlow Lite and LiteRT.

Convert a trained model, and run the result in the runtime that is installed::

    import litebnn

    flatbuffer_model = litebnn.convert_keras_model(keras_model)
    probabilities = litebnn.Interpreter(flatbuffer_model).predict(images)

Importing this package imports neither TensorFlow, nor PyTorch, nor a runtime. A function imports what it needs when it
is called.
"""

import importlib
import sys
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from litebnn.convert import convert_keras_model as convert_keras_model
    from litebnn.convert import convert_saved_model as convert_saved_model
    from litebnn.convert import convert_tflite as convert_tflite
    from litebnn.convert import convert_torch_model as convert_torch_model
    from litebnn.errors import ConversionError as ConversionError
    from litebnn.evaluate.classifier import Classifier as Classifier
    from litebnn.evaluate.data_set import DataSet as DataSet
    from litebnn.evaluate.metrics import Evaluation as Evaluation
    from litebnn.evaluate.on_boards import Boards as Boards
    from litebnn.evaluate.run import evaluate_models as evaluate_models
    from litebnn.micro.export import Export as Export
    from litebnn.micro.export import export_c as export_c
    from litebnn.report.arrays import binary_weights as binary_weights
    from litebnn.report.arrays import intermediate_tensors as intermediate_tensors
    from litebnn.report.conversion import ConversionReport as ConversionReport
    from litebnn.runtime import CompiledModel as CompiledModel
    from litebnn.runtime import Interpreter as Interpreter
    from litebnn.runtime import environment as environment
    from litebnn.runtime import find_library as find_library
    from litebnn.runtime import load_delegate as load_delegate
    from litebnn.runtime import register_ops as register_ops

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

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'litebnn' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


class _Moved:
    """Finds modules by the names that they had in earlier versions."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith("litebnn.") or name == "litebnn.moved":
            return None
        return importlib.import_module("litebnn.moved").spec_of(name)  # type: ignore[no-any-return]


sys.meta_path.append(_Moved)
