"""A class that runs a converted model in LiteRT's CompiledModel."""

import math
from functools import partial
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

import numpy as np

from litebnn.errors import whole_number
from litebnn.files import read_content
from litebnn.graph import NUMPY_TYPES, unique_names
from litebnn.runtime.delegate import load_delegate
from litebnn.runtime.environment import environment as make_environment
from litebnn.runtime.environment import import_litert
from litebnn.runtime.interpreter import Interpreter
from litebnn.runtime.predictor import FAILURES, Array, Predictor, reason

# The type with which the bytes of every tensor are copied, because LiteRT's TensorBuffer for Python supports few types.
BYTE = np.int8
# LiteRT searches this empty folder for NPU libraries. Without it, LiteRT would search elsewhere, and load such
# libraries for each model.
NO_LIBRARIES = str(Path(__file__).parent)


class CompiledModel(Predictor):
    """Runs a `.tflite` model with litebnn's ops in LiteRT's CompiledModel, on the CPU.

    The class has the same inputs, outputs and bits as `litebnn.Interpreter`. Models that LiteRT's CompiledModel cannot
    compute are refused. Such models have shapes known only at run time, outputs that are inputs or are listed twice,
    text, or no signature of the first graph. Models with tensors that are variables, such as the state of an LSTM, are
    refused too.

    Args:
        model: the model's bytes, or the path of its file.
        num_threads: the number of threads for the runtime's own ops and for the binary ones, 1 to 256.
        isa: the instruction set to use, as in `litebnn.load_delegate`.
        environment: an environment from `litebnn.environment`, which several models can share; by default a new one. An
            environment has its own `isa`.
        keep_state: True to keep the model's variables from one run to the next, as in `litebnn.Interpreter`.

    Raises:
        ValueError: the model cannot be read, or an op in it is refused; the message names the op. `predict` raises this
            error too, for problems that only a run shows.
        TypeError: an argument is of a type that it cannot have; the message names the argument.
        OSError: the model cannot be read, or the op library is not found.
        ImportError: ai-edge-litert is not installed, is older than 2.1.6, or does not run on this CPU.

    Example:
        >>> model = litebnn.CompiledModel("model.tflite")
        >>> model.input_shapes
        [(1, 28, 28, 1)]
        >>> model.predict(images).shape  # images: float32 [100, 28, 28, 1]
        (100, 10)
    """

    def __init__(
        self,
        model: bytes | str | Path,
        num_threads: int = 1,
        *,
        isa: str | None = None,
        environment: Any = None,
        keep_state: bool = False,
    ) -> None:
        super().__init__(keep_state)
        self._name, self._content = read_content(model)
        num_threads = whole_number("num_threads", num_threads, 1)
        load_delegate(num_threads, isa=isa, runtime="ai-edge-litert")  # refuses a wrong isa
        if environment is None:
            environment = make_environment(
                isa=isa, compiler_plugin_path=NO_LIBRARIES, dispatch_library_path=NO_LIBRARIES
            )
        elif not isinstance(environment, import_litert("environment").Environment):
            kind = type(environment).__name__
            raise TypeError(f"environment is {kind}, expected what litebnn.environment has made")
        elif isa is not None:
            raise ValueError("isa and environment are both given: give isa to litebnn.environment")
        litert = import_litert("compiled_model")
        # The import is inside this function, because the module needs the schema, which is part of a runtime's package.
        from litebnn.flatbuffer.accepted import assigns_variables, find_computed_shape, find_signature

        options = litert.Options(
            hardware_accelerators=litert.HardwareAccelerator.CPU, cpu_options=litert.CpuOptions(num_threads=num_threads)
        )
        self._compile = partial(
            litert.CompiledModel.from_buffer, self._content, environment=environment, options=options
        )
        self._sizes: list[tuple[int, ...]] | None = None
        try:
            self._model = self._compile()
            self._signature = find_signature(self._content)
            signature = self._model.get_signature_by_index(self._signature)
            self._key = signature["key"]
            self._inputs = _details(self._content, signature, "Inputs")
            self._outputs = _details(self._content, signature, "Outputs")
            self._input_names = unique_names(detail["signature_name"] for detail in self._inputs)
            self._output_names = unique_names(detail["signature_name"] for detail in self._outputs)
            self._assigns_variables = assigns_variables(self._content)
            if not self._has_unknown_sizes:
                self._fit(self.input_shapes)
            elif not hasattr(self._model, "resize_input_tensor"):
                raise ValueError(f"it knows no inputs of any size, such as {self.input_shapes}")
            _check_distinct([*self._inputs, *self._outputs])
            # If shapes change, LiteRT does not resize the buffer of an output, so XNNPACK may write beyond the end of
            # the buffer.
            if computed := find_computed_shape(self._content):
                raise ValueError(f"the shape of {computed} is known only when it runs")
        except FAILURES as error:
            raise ValueError(_reason(model, self._name, num_threads, isa, error)) from error

    def _fit(self, sizes: list[tuple[int, ...]]) -> None:
        """Allocates the model's tensors for inputs of these shapes, and makes buffers for its inputs and outputs."""
        if sizes == self._sizes:
            return
        self._sizes = None
        for detail, size in zip(self._inputs, sizes, strict=True):
            if -1 in detail["shape_signature"][1:]:
                self._model.resize_input_tensor(detail["place"], list(size), self._signature)
        # The query for output details allocates the tensors. Therefore the error about an op that is refused occurs
        # here, and not in the first run.
        self._model.get_output_tensor_details(self._key)
        self._input_buffers = self._model.create_input_buffers(self._signature)
        self._output_buffers = self._model.create_output_buffers(self._signature)
        for detail in self._outputs:
            detail["shape"] = tuple(self._output_buffers[detail["place"]].get_tensor_details()["shape"])
        self._sizes = sizes
        self._shapes_are_known = False

    def _reset(self) -> None:
        if self._assigns_variables:
            self._model, self._sizes = self._compile(), None

    def _run(self, arrays: list[Array]) -> list[Array]:
        try:
            self._fit([array.shape for array in arrays])
            for detail, array in zip(self._inputs, arrays, strict=True):
                self._input_buffers[detail["place"]].write(np.ascontiguousarray(array).reshape(-1).view(BYTE))
            self._model.run_by_index(self._signature, self._input_buffers, self._output_buffers)
            if not self._shapes_are_known:
                self._check_shapes()
        except FAILURES as error:
            raise ValueError(_refusal(self._name, error)) from error
        results = []
        for detail in self._outputs:
            size = math.prod(detail["shape"]) * detail["dtype"].itemsize
            values = self._output_buffers[detail["place"]].read(size, BYTE)
            results.append(values.view(detail["dtype"]).reshape(detail["shape"]))
        return results

    def _check_shapes(self) -> None:
        """Refuses an output whose shape the run has changed.

        If the shape changes, LiteRT leaves the output's buffer unchanged, or fills a part of it, and reports no error.
        """
        # If an output no longer fits its buffer, LiteRT raises an error when it is asked for the details of the
        # outputs.
        found = self._model.get_output_tensor_details(self._key)
        for detail in self._outputs:
            shape = tuple(found[detail["signature_name"]]["shape"])
            if shape != detail["shape"]:
                raise ValueError(f"output {detail['name']} has shape {detail['shape']}, and {shape} when it runs")
        self._shapes_are_known = True


def _details(content: bytes, signature: dict[str, Any], role: str) -> list[dict[str, Any]]:
    """Returns the details of the signature's "Inputs" or "Outputs", in the order of the graph. `place` is the index in
    the signature.
    """
    from litebnn.flatbuffer.accepted import read_signature

    names = signature[role.lower()]
    tensors = read_signature(content, signature["key"], role, names)
    details = []
    for place, tensor in sorted(enumerate(tensors), key=lambda each: each[1].position):
        if tensor.type not in NUMPY_TYPES:
            raise ValueError(f"{role.lower()[:-1]} {tensor.name} is {tensor.type}, expected numbers")
        details.append(
            {
                "index": tensor.tensor,
                "name": tensor.name,
                "signature_name": names[place],
                "shape": tensor.shape,
                "shape_signature": tensor.shape_signature,
                "dtype": np.dtype(NUMPY_TYPES[tensor.type]),
                "quantization": tensor.quantization,
                "place": place,
            }
        )
    return details


def _check_distinct(details: list[dict[str, Any]]) -> None:
    """Refuses a tensor that is listed twice among inputs and outputs, because LiteRT fills only one of its buffers."""
    seen = set()
    for detail in details:
        if detail["index"] in seen:
            raise ValueError(f"{detail['name']} is two of the model's inputs and outputs")
        seen.add(detail["index"])


def _reason(model: bytes | str | Path, name: str, num_threads: int, isa: str | None, error: Exception) -> str:
    """The reason why a model was refused. It comes from the interpreter, because LiteRT prints an op's message only to
    stderr."""
    try:
        Interpreter(model, num_threads, runtime="ai-edge-litert", isa=isa)
    except ValueError as refusal:
        return str(refusal)
    from litebnn.flatbuffer.accepted import find_variable_tensor

    if variable := find_variable_tensor(read_content(model)[1]):
        error = ValueError(f"it keeps its state in the tensor {variable}")
    return _refusal(name, error)


def _refusal(name: str, error: Exception) -> str:
    """The error message for models that only `litebnn.Interpreter` can run."""
    package = packages_distributions()["ai_edge_litert"][0]
    runtime = f"the CompiledModel of {package} {version(package)}"
    return f"{name} is refused by {runtime}, use litebnn.Interpreter: {reason(error)}"
