"""One class to run a converted model with in LiteRT's CompiledModel."""

import math
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

import numpy as np

from litebnn.graph import NUMPY_TYPES
from litebnn.runtime.delegate import load_delegate
from litebnn.runtime.environment import environment as make_environment
from litebnn.runtime.environment import import_litert
from litebnn.runtime.interpreter import Interpreter
from litebnn.runtime.predictor import FAILURES, Array, Predictor, read_content, reason
from litebnn.unique_names import unique_names

# LiteRT's TensorBuffer for Python copies bytes whatever their type is called, but knows few types.
BYTE = np.int8
# A folder without any: LiteRT would look for those of NPUs, and load them for each model, which here is the CPU's.
NO_LIBRARIES = str(Path(__file__).parent)


class CompiledModel(Predictor):
    """Runs a `.tflite` model with litebnn's ops in LiteRT's CompiledModel, on the CPU.

    It takes and gives what `litebnn.Interpreter` does, and computes the same bits. What LiteRT's CompiledModel does not
    compute, it refuses: shapes that only a run tells, outputs that are inputs too or are listed twice, text, and
    signatures none of which is of the model's first graph.

    Args:
        model: the model's bytes, or the path of its file.
        num_threads: threads for the runtime's own ops and for the binary ones, 1 to 256.
        isa: the instruction set to use, as in `litebnn.load_delegate`.
        environment: what `litebnn.environment` has made, to share it between models; by default a new one. It has its
            own `isa`.

    Raises:
        ValueError: the model cannot be read, or an op in it is refused; the message names it. From `predict` too, where
            only a run shows it.
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
    ) -> None:
        self._name, self._content = read_content(model)
        load_delegate(num_threads, isa=isa, runtime="ai-edge-litert")  # refuses options that are wrong
        if environment is None:
            environment = make_environment(
                isa=isa, compiler_plugin_path=NO_LIBRARIES, dispatch_library_path=NO_LIBRARIES
            )
        elif isa is not None:
            raise ValueError("isa and environment are both given: give isa to litebnn.environment")
        litert = import_litert("compiled_model")
        # It needs the schema, which a runtime's package carries.
        from litebnn.flatbuffer.computed_shapes import find_computed_shape
        from litebnn.flatbuffer.signature import find_signature

        options = litert.Options(
            hardware_accelerators=litert.HardwareAccelerator.CPU, cpu_options=litert.CpuOptions(num_threads=num_threads)
        )
        try:
            self._model = litert.CompiledModel.from_buffer(self._content, environment=environment, options=options)
            self._signature = find_signature(self._content)
            signature = self._model.get_signature_by_index(self._signature)
            self._key = signature["key"]
            # It allocates the tensors, so that an op is refused here and not when the model runs first.
            self._model.get_output_tensor_details(self._key)
            self._input_buffers = self._model.create_input_buffers(self._signature)
            self._output_buffers = self._model.create_output_buffers(self._signature)
            self._inputs = _details(self._content, signature, "Inputs", self._input_buffers)
            self._outputs = _details(self._content, signature, "Outputs", self._output_buffers)
            self._input_names = unique_names(detail["signature_name"] for detail in self._inputs)
            self._output_names = unique_names(detail["signature_name"] for detail in self._outputs)
            _check_distinct([*self._inputs, *self._outputs])
            # LiteRT keeps the output's buffer as it is, and XNNPACK may write past its end.
            if computed := find_computed_shape(self._content):
                raise ValueError(f"the shape of {computed} is known only when it runs")
        except FAILURES as error:
            raise ValueError(_reason(model, self._name, num_threads, isa, error)) from error
        self._shapes_are_known = False

    def _run(self, arrays: list[Array]) -> list[Array]:
        for detail, array in zip(self._inputs, arrays, strict=True):
            detail["buffer"].write(np.ascontiguousarray(array).reshape(-1).view(BYTE))
        try:
            self._model.run_by_index(self._signature, self._input_buffers, self._output_buffers)
            if not self._shapes_are_known:
                self._check_shapes()
        except FAILURES as error:
            raise ValueError(_refusal(self._name, error)) from error
        results = []
        for detail in self._outputs:
            size = math.prod(detail["shape"]) * detail["dtype"].itemsize
            results.append(detail["buffer"].read(size, BYTE).view(detail["dtype"]).reshape(detail["shape"]))
        return results

    def _check_shapes(self) -> None:
        """Refuses an output that the run has given another shape.

        LiteRT leaves its buffer as it was, or fills a part of it, and reports neither.
        """
        # It fails where an output has left its buffer.
        found = self._model.get_output_tensor_details(self._key)
        for detail in self._outputs:
            shape = tuple(found[detail["signature_name"]]["shape"])
            if shape != detail["shape"]:
                raise ValueError(f"output {detail['name']} has shape {detail['shape']}, and {shape} when it runs")
        self._shapes_are_known = True


def _details(content: bytes, signature: dict[str, Any], role: str, buffers: list[Any]) -> list[dict[str, Any]]:
    """What is to be known of each of the signature's "Inputs" or "Outputs", in the order of its graph.

    `buffers` are in the signature's order.
    """
    from litebnn.flatbuffer.signature import read_signature

    names = signature[role.lower()]
    tensors = read_signature(content, signature["key"], role, names)
    details = []
    for tensor, name, buffer in sorted(zip(tensors, names, buffers, strict=True), key=lambda each: each[0].place):
        if tensor.type not in NUMPY_TYPES:
            raise ValueError(f"{role.lower()[:-1]} {tensor.name} is {tensor.type}, expected numbers")
        details.append(
            {
                "index": tensor.tensor,
                "name": tensor.name,
                "signature_name": name,
                "shape": tuple(buffer.get_tensor_details()["shape"]),
                "dtype": np.dtype(NUMPY_TYPES[tensor.type]),
                "quantization": tensor.quantization,
                "buffer": buffer,
            }
        )
    return details


def _check_distinct(details: list[dict[str, Any]]) -> None:
    """Refuses a tensor that is listed twice among inputs and outputs: LiteRT fills one of its buffers only."""
    seen = set()
    for detail in details:
        if detail["index"] in seen:
            raise ValueError(f"{detail['name']} is two of the model's inputs and outputs")
        seen.add(detail["index"])


def _reason(model: bytes | str | Path, name: str, num_threads: int, isa: str | None, error: Exception) -> str:
    """Why a model was refused: LiteRT writes an op's words to stderr only, but the interpreter hands them on."""
    try:
        Interpreter(model, num_threads, runtime="ai-edge-litert", isa=isa)
    except ValueError as refusal:
        return str(refusal)
    return _refusal(name, error)


def _refusal(name: str, error: Exception) -> str:
    """What only the interpreter runs."""
    package = packages_distributions()["ai_edge_litert"][0]
    runtime = f"the CompiledModel of {package} {version(package)}"
    return f"{name} is refused by {runtime}, use litebnn.Interpreter: {reason(error)}"
