"""A class that runs a converted model in the installed runtime."""

import importlib.util
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from litebnn.errors import whole_number
from litebnn.model_files import read_content
from litebnn.runtime.delegate import load_delegate
from litebnn.runtime.find import RUNTIMES, find_runtime
from litebnn.runtime.predictor import FAILURES, Array, Predictor, reason
from litebnn.unique_names import unique_names


class Interpreter(Predictor):
    """Runs a `.tflite` model with litebnn's ops in an installed TensorFlow Lite runtime.

    The runtime is the first installed one of ai-edge-litert, tflite-runtime and TensorFlow.

    Args:
        model: the model's bytes, or the path of its file.
        num_threads: the number of threads for the runtime's own ops and for the binary ones, 1 to 256. If the runtime's
            own ops are too small to share, they get one thread.
        runtime: the name of the runtime to use, as in `litebnn.runtime.find_runtime`.
        isa: the instruction set to use, as in `litebnn.load_delegate`.

    Raises:
        ValueError: the model cannot be read, or an op in it is refused; the message names the op. `predict` raises this
            error too, for problems that only a run shows.
        TypeError: an argument is of a type that it cannot have; the message names the argument.
        OSError: the model cannot be read, or the op library is not found.
        ImportError: no runtime is installed.

    Example:
        >>> interpreter = litebnn.Interpreter("model.tflite")
        >>> interpreter.input_shapes
        [(1, 28, 28, 1)]
        >>> interpreter.predict(images).shape  # images: float32 [100, 28, 28, 1]
        (100, 10)
    """

    def __init__(
        self,
        model: bytes | str | Path,
        num_threads: int = 1,
        *,
        runtime: str | None = None,
        isa: str | None = None,
    ) -> None:
        self._name, content = read_content(model)
        module = find_runtime(runtime)
        if num_threads is not None:  # as TensorFlow Lite's interpreter has it
            num_threads = whole_number("num_threads", num_threads, 1)
        delegate = load_delegate(num_threads, isa=isa, runtime=runtime)
        try:
            if module.__name__ == RUNTIMES["tflite-runtime"]:
                _check_structure(content)
            self._interpreter = module.Interpreter(
                model_content=content, num_threads=num_threads, experimental_delegates=[delegate]
            )
            self._interpreter.allocate_tensors()
            self._inputs = self._interpreter.get_input_details()
            self._outputs = self._interpreter.get_output_details()
            self._input_names, self._output_names = _interface_names(self._interpreter)
        except FAILURES as error:
            raise ValueError(f"{self._name} is refused: {reason(error)}") from error

    def _run(self, arrays: list[Array]) -> list[Array]:
        try:
            for detail, array in zip(self._inputs, arrays, strict=True):
                self._interpreter.set_tensor(detail["index"], np.asarray(array, order="C"))
            self._interpreter.invoke()
            return [self._interpreter.get_tensor(detail["index"]) for detail in self._outputs]
        except FAILURES as error:
            raise ValueError(f"{self._name} cannot be run: {reason(error)}") from error


def _interface_names(interpreter: Any) -> tuple[list[str], list[str]]:
    """The names of the inputs and outputs in the first signature that names all of them. If there is none, the names
    of the tensors.
    """
    sides = interpreter.get_input_details(), interpreter.get_output_details()
    for key in interpreter.get_signature_list():
        runner = interpreter.get_signature_runner(key)
        inputs, outputs = map(_names_in, sides, (runner.get_input_details(), runner.get_output_details()))
        if inputs is not None and outputs is not None:
            return inputs, outputs
    inputs, outputs = (unique_names(detail["name"] for detail in details) for details in sides)
    return inputs, outputs


def _names_in(details: list[dict[str, Any]], named: dict[str, dict[str, Any]]) -> list[str] | None:
    """Returns the name of each tensor in `details`, by the signature `named`. If `details` lists a tensor twice, each
    entry gets another one of the tensor's names. None if a tensor has fewer names than entries.
    """
    names = defaultdict(list)
    for name, detail in named.items():
        # A tensor is found by its index and its name together. In the signature of another subgraph, the same index
        # means another tensor.
        names[detail["index"], detail["name"]].append(name)
    try:
        return [names[detail["index"], detail["name"]].pop(0) for detail in details]
    except IndexError:
        return None


def _check_structure(content: bytes) -> None:
    """Refuses a truncated or corrupt file, on which tflite-runtime would crash. Other runtimes check files
    themselves.

    The check needs the schema from ai-edge-litert. It is skipped on 32-bit Arm, for which ai-edge-litert does not
    exist.
    """
    if importlib.util.find_spec("ai_edge_litert"):
        from litebnn.flatbuffer import read_strictly

        read_strictly(content)
