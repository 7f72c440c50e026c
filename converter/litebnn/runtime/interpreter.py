"""One class to run a converted model with, whatever runtime is installed."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from litebnn.runtime.delegate import load_delegate
from litebnn.runtime.find import RUNTIMES, find_runtime

Array = npt.NDArray[Any]


class Interpreter:
    """Runs a `.tflite` model with litebnn's ops in an installed TensorFlow Lite runtime.

    The runtime is ai-edge-litert, tflite-runtime or TensorFlow, the first that is installed.

    Args:
        model: the model's bytes, or the path of its file.
        num_threads: threads for the runtime's own ops and for the binary ones, at least 1.
        runtime: the name of the runtime to use, as in `litebnn.runtime.find_runtime`.
        isa: the kernels to use, as in `litebnn.load_delegate`.

    Raises:
        ValueError: the model cannot be read, or an op in it is refused; the message names it.
        FileNotFoundError: the model or the op library is not found.
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
        if isinstance(model, str | Path):
            name, content = str(model), Path(model).read_bytes()
        else:
            name, content = "the model", bytes(model)
        if content[4:8] != b"TFL3":
            raise ValueError(f"{name} is no .tflite file: it lacks the identifier TFL3")
        module = find_runtime(runtime)
        delegate = load_delegate(num_threads, isa=isa, runtime=runtime)
        try:
            if module.__name__ == RUNTIMES["tflite-runtime"]:
                _check_structure(content)
            self._interpreter = module.Interpreter(
                model_content=content, num_threads=num_threads, experimental_delegates=[delegate]
            )
            self._interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"{name} is refused: {' '.join(str(error).split())}") from error
        self._inputs = self._interpreter.get_input_details()
        self._outputs = self._interpreter.get_output_details()

    @property
    def input_shapes(self) -> list[tuple[int, ...]]:
        """The shape of each input, batch first."""
        return [tuple(int(size) for size in detail["shape"]) for detail in self._inputs]

    @property
    def output_shapes(self) -> list[tuple[int, ...]]:
        """The shape of each output, batch first."""
        return [tuple(int(size) for size in detail["shape"]) for detail in self._outputs]

    @property
    def input_types(self) -> list[np.dtype[Any]]:
        """The dtype of each input."""
        return [np.dtype(detail["dtype"]) for detail in self._inputs]

    @property
    def output_types(self) -> list[np.dtype[Any]]:
        """The dtype of each output."""
        return [np.dtype(detail["dtype"]) for detail in self._outputs]

    @property
    def input_quantization(self) -> list[tuple[float, int]]:
        """(scale, zero_point) of each input; (0.0, 0) where it is not quantized."""
        return [detail["quantization"] for detail in self._inputs]

    @property
    def output_quantization(self) -> list[tuple[float, int]]:
        """(scale, zero_point) of each output; (0.0, 0) where it is not quantized."""
        return [detail["quantization"] for detail in self._outputs]

    def predict(self, x: npt.ArrayLike | Sequence[npt.ArrayLike]) -> Any:
        """Runs the model over a batch of any size, as many samples at a time as the model's own batch size.

        Args:
            x: an array [samples, ...] of the model's input dtype, or a list of one such array per input. `samples`
                must be a multiple of the model's batch size.

        Returns:
            An array [samples, ...], or a list of one per output where the model has several.

        Raises:
            ValueError: the number of inputs, a shape or a dtype is not what the model takes.
        """
        arrays = self._checked(x)
        batch = self._inputs[0]["shape"][0]
        results: list[list[Array]] = [[] for _ in self._outputs]
        for start in range(0, len(arrays[0]), batch):
            for detail, array in zip(self._inputs, arrays, strict=True):
                self._interpreter.set_tensor(detail["index"], np.ascontiguousarray(array[start : start + batch]))
            self._interpreter.invoke()
            for detail, result in zip(self._outputs, results, strict=True):
                result.append(self._interpreter.get_tensor(detail["index"]))
        stacked = [np.concatenate(result) for result in results]
        return stacked[0] if len(stacked) == 1 else stacked

    def _checked(self, x: npt.ArrayLike | Sequence[npt.ArrayLike]) -> list[Array]:
        arrays = [np.asarray(array) for array in x] if isinstance(x, list | tuple) else [np.asarray(x)]
        if len(arrays) != len(self._inputs):
            raise ValueError(f"{len(arrays)} inputs given, expected {len(self._inputs)}")
        for detail, array in zip(self._inputs, arrays, strict=True):
            shape = tuple(int(size) for size in detail["shape"])
            if array.dtype != detail["dtype"]:
                raise ValueError(f"input {detail['name']} is {array.dtype}, expected {np.dtype(detail['dtype'])}")
            if array.shape[1:] != shape[1:] or not len(array) or len(array) % shape[0]:
                raise ValueError(
                    f"input {detail['name']} has shape {array.shape}, expected {shape} with any multiple of "
                    f"{shape[0]} in front"
                )
            if len(array) != len(arrays[0]):
                raise ValueError(f"input {detail['name']} has {len(array)} samples, the first input {len(arrays[0])}")
        return arrays


def _check_structure(content: bytes) -> None:
    """Refuses a truncated or corrupt file, on which tflite-runtime would crash; the other runtimes look themselves.

    It takes the schema, which comes with ai-edge-litert: there is none on 32-bit Arm, and no check.
    """
    if importlib.util.find_spec("ai_edge_litert"):
        from litebnn.flatbuffer import read_model

        read_model(content)
