"""A class that runs a converted model in the installed runtime."""

import importlib.util
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from litebnn.errors import whole_number
from litebnn.files import read_content
from litebnn.graph import unique_names
from litebnn.runtime.delegate import load_delegate
from litebnn.runtime.find import RUNTIMES, find_runtime
from litebnn.runtime.predictor import FAILURES, Array, Predictor, reason

# The ops of variables that only a new interpreter resets. CALL_ONCE initializes such variables, which may be used only
# inside of WHILE or IF.
_RESOURCE_OPS = ("ASSIGN_VARIABLE", "CALL_ONCE", "VAR_HANDLE")


class Interpreter(Predictor):
    """Runs a `.tflite` model with litebnn's ops in an installed TensorFlow Lite runtime.

    The runtime is the first installed one of ai-edge-litert, tflite-runtime and TensorFlow.

    Args:
        model: the model's bytes, or the path of its file.
        num_threads: the number of threads for the runtime's own ops and for the binary ones, 1 to 256. If the runtime's
            own ops are too small to share, they get one thread.
        runtime: the name of the runtime to use, as in `litebnn.runtime.find_runtime`.
        isa: the instruction set to use, as in `litebnn.load_delegate`.
        keep_state: True to keep the model's variables, such as the state of an LSTM, from one run to the next. It is
            for a stream of samples, which `reset_state()` ends. By default each run starts with the initial values.

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
        keep_state: bool = False,
    ) -> None:
        super().__init__(keep_state)
        self._name, content = read_content(model)
        module = find_runtime(runtime)
        if num_threads is not None:  # as TensorFlow Lite's interpreter has it
            num_threads = whole_number("num_threads", num_threads, 1)
        self._delegate = load_delegate(num_threads, isa=isa, runtime=runtime)
        self._make = partial(module.Interpreter, model_content=content, num_threads=num_threads)
        self._interpreter: Any = None
        self._sizes: list[tuple[int, ...]] | None = None
        try:
            if module.__name__ == RUNTIMES["tflite-runtime"]:
                _check_structure(content)
            plain = self._make()
            self._inputs, self._outputs = plain.get_input_details(), plain.get_output_details()
            self._input_names, self._output_names = _interface_names(plain)
            self._has_resources = any(op["op_name"] in _RESOURCE_OPS for op in plain._get_ops_details())
            if not self._has_unknown_sizes:
                self._outputs = self._fit(self.input_shapes).get_output_details()
        except FAILURES as error:
            raise ValueError(f"{self._name} is refused: {reason(error)}") from error

    def _fit(self, sizes: list[tuple[int, ...]]) -> Any:
        """Returns the runtime's interpreter, with tensors for inputs of these shapes."""
        if sizes == self._sizes:
            return self._interpreter
        # After a failure, the next call begins with a new interpreter.
        interpreter, self._interpreter, self._sizes = self._interpreter, None, None
        if interpreter is None:
            interpreter = load(self._make, [self._delegate], sizes if self._has_unknown_sizes else None)
        else:
            _resize(interpreter, sizes)
            interpreter.allocate_tensors()
        self._interpreter, self._sizes = interpreter, sizes
        return interpreter

    def _reset(self) -> None:
        if self._has_resources:
            self._interpreter = self._sizes = None
        elif self._interpreter is not None:
            self._interpreter.reset_all_variables()

    def _run(self, arrays: list[Array]) -> list[Array]:
        try:
            interpreter = self._fit([array.shape for array in arrays])
            for detail, array in zip(self._inputs, arrays, strict=True):
                interpreter.set_tensor(detail["index"], np.asarray(array, order="C"))
            interpreter.invoke()
            return [interpreter.get_tensor(detail["index"]) for detail in self._outputs]
        except FAILURES as error:
            sizes = f" on {', '.join(str(array.shape) for array in arrays)}" if self._has_unknown_sizes else ""
            raise ValueError(f"{self._name} cannot be run{sizes}: {reason(error)}") from error


def load(make: Callable[..., Any], delegates: list[Any], sizes: Sequence[Sequence[int]] | None = None) -> Any:
    """Makes an interpreter of a runtime with delegates, and allocates its tensors.

    Args:
        make: the runtime's class, with all other arguments.
        delegates: the delegates, in the order in which they claim nodes.
        sizes: the shape of each input; None for those in the file.
    """
    if sizes is None:
        interpreter = make(experimental_delegates=delegates)
    else:
        # Delegates look at the sizes when they are added. With the file's, which are 1 if they are unknown, a layer may
        # have no output.
        interpreter = make()
        _resize(interpreter, sizes)
        interpreter._delegates = delegates
        for delegate in delegates:
            interpreter._interpreter.ModifyGraphWithDelegate(delegate._get_native_delegate_pointer())
    interpreter.allocate_tensors()
    return interpreter


def _resize(interpreter: Any, sizes: Sequence[Sequence[int]]) -> None:
    for detail, size in zip(interpreter.get_input_details(), sizes, strict=True):
        interpreter.resize_tensor_input(detail["index"], size)


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
