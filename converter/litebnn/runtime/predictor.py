"""The base class of Interpreter and CompiledModel: the model's inputs and outputs, and `predict`."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from litebnn.errors import printable

Array = npt.NDArray[Any]

# The exceptions that runtimes raise because of a model. tflite-runtime raises SystemError for names that are not UTF-8.
FAILURES = (RuntimeError, ValueError, SystemError, MemoryError, LookupError, TypeError, OverflowError)

# The pairs of types whose levels differ by 128. A uint8 level n and the int8 level n - 128 stand for the same real
# number.
_BYTES = {np.dtype(np.uint8), np.dtype(np.int8)}


def reason(error: Exception) -> str:
    """The message of a runtime's exception in one line."""
    return printable(" ".join(str(error).split())) or "the runtime does not say why"


def arrays_of(x: Any, names: Sequence[str] = ()) -> list[Array]:
    """Makes a list of arrays, one for each input or output of a model, from an array, a list, or a dictionary by
    `names`.

    Raises:
        ValueError: `x` is a dictionary with keys other than `names`.
    """
    if isinstance(x, Mapping):
        if set(x) != set(names):
            raise ValueError(printable(f"inputs {', '.join(map(str, x)) or 'none'} given, expected {', '.join(names)}"))
        return [np.asarray(x[name]) for name in names]
    return [np.asarray(array) for array in x] if isinstance(x, list | tuple) else [np.asarray(x)]


class Predictor(ABC):
    """A model that is ready to run. Several threads may share it; they run one after the other.

    A derived class sets `_inputs` and `_outputs`. They have a mapping for each tensor with `name`, `shape`, `dtype` and
    `quantization`, as the runtimes' own interpreters return them. The derived class also sets the names in the model's
    signature.
    """

    _inputs: Sequence[Any]
    _outputs: Sequence[Any]
    _input_names: list[str]
    _output_names: list[str]

    def __init__(self, keep_state: bool = False) -> None:
        self._keeps_state = keep_state
        self._lock = threading.Lock()

    @abstractmethod
    def _run(self, arrays: list[Array]) -> list[Array]:
        """Runs the model once and returns its outputs. The inputs must have the model's own shapes."""

    @abstractmethod
    def _reset(self) -> None:
        """Gives the model's variables their initial values."""

    def reset_state(self) -> None:
        """Gives the model's variables, such as the state of an LSTM, their initial values.

        `predict` does so before each run, unless the model was loaded with `keep_state=True`.
        """
        with self._lock:
            self._reset()

    def _run_next(self, arrays: list[Array]) -> list[Array]:
        if not self._keeps_state:
            self._reset()
        return self._run(arrays)

    @property
    def input_names(self) -> list[str]:
        """The name of each input in the model's signature; the tensor's name if the model has no signature."""
        return list(self._input_names)

    @property
    def output_names(self) -> list[str]:
        """The name of each output in the model's signature; the tensor's name if the model has no signature."""
        return list(self._output_names)

    @property
    def input_shapes(self) -> list[tuple[int, ...]]:
        """The shape of each input, batch first; -1 for a height, width or other size that each call may choose."""
        return [_shape_of(detail) for detail in self._inputs]

    @property
    def output_shapes(self) -> list[tuple[int, ...]]:
        """The shape of each output, batch first; -1 for a size that follows from an input's."""
        if self._has_unknown_sizes:
            return [_shape_of(detail) for detail in self._outputs]
        return [tuple(int(size) for size in detail["shape"]) for detail in self._outputs]

    @property
    def _has_unknown_sizes(self) -> bool:
        return any(-1 in shape for shape in self.input_shapes)

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
        """The pair (scale, zero_point) of each input; (0.0, 0) for an input that is not quantized."""
        return [detail["quantization"] for detail in self._inputs]

    @property
    def output_quantization(self) -> list[tuple[float, int]]:
        """The pair (scale, zero_point) of each output; (0.0, 0) for an output that is not quantized."""
        return [detail["quantization"] for detail in self._outputs]

    def predict(self, x: npt.ArrayLike | Sequence[npt.ArrayLike] | Mapping[str, npt.ArrayLike]) -> Any:
        """Runs the model over a batch of any size, in portions of the model's own batch size.

        Each run starts with the initial values of the model's variables, such as the state of an LSTM, unless the model
        was loaded with `keep_state=True`. Calls of several threads run one after the other.

        Args:
            x: an array [samples, ...] of the model's input dtype, a list with one such array for each input, or a
                dictionary of them by `input_names`. `samples` must be a multiple of the model's batch size. If the
                inputs and outputs differ in their batch size, `x` must have exactly the model's shapes. Where
                `input_shapes` has -1, any size fits. An int8 input also takes uint8 levels, which are 128 higher, and a
                uint8 input takes int8 levels.

        Returns:
            An array [samples, ...], or a list of arrays if the model has several outputs. A dictionary as input always
            gives a dictionary by `output_names`.

        Raises:
            ValueError: the number of inputs, a name, a shape or a dtype does not match the model.

        Example:
            >>> interpreter = litebnn.Interpreter("model.tflite")
            >>> interpreter.output_names
            ['output_0']
            >>> interpreter.predict({interpreter.input_names[0]: images})["output_0"].shape
            (100, 10)
        """
        arrays = self._checked(x)
        with self._lock:
            results = self._run_all(arrays)
        if isinstance(x, Mapping):
            return dict(zip(self._output_names, results, strict=True))
        return results[0] if len(results) == 1 else results

    def _run_all(self, arrays: list[Array]) -> list[Array]:
        if all(fits(array.shape, shape) for array, shape in zip(arrays, self.input_shapes, strict=True)):
            return self._run_next(arrays)
        batch = self._check_batches(arrays)
        runs = [
            self._run_next([array[start : start + batch] for array in arrays])
            for start in range(0, len(arrays[0]), batch)
        ]
        for name, result in zip(self._output_names, runs[0], strict=True):
            if result.shape[:1] != (batch,):
                found = f"output {printable(name)} has shape {result.shape}"
                raise ValueError(
                    f"{found}, which does not begin with the batch of {batch}: give inputs of exactly "
                    f"{self.input_shapes}"
                )
        return [np.concatenate(outputs) for outputs in zip(*runs, strict=True)]

    def _checked(self, x: Any) -> list[Array]:
        arrays = arrays_of(x, self._input_names)
        if len(arrays) != len(self._inputs):
            raise ValueError(f"{len(arrays)} inputs given, expected {len(self._inputs)}")
        pairs = list(zip(arrays, self.input_types, strict=True))
        for name, (array, dtype) in zip(self._input_names, pairs, strict=True):
            if array.dtype != dtype and not {array.dtype, dtype} <= _BYTES:
                raise ValueError(f"input {printable(name)} is {array.dtype}, expected {dtype}")
        return [array if array.dtype == dtype else (array.view(np.uint8) ^ 128).view(dtype) for array, dtype in pairs]

    def _check_batches(self, arrays: list[Array]) -> int:
        """Checks that all `arrays` hold the same multiple of the model's batch size, and returns the batch size."""
        shapes = self.input_shapes
        batch = shapes[0][0] if shapes[0] else 0
        for name, array, shape in zip(self._input_names, arrays, shapes, strict=True):
            found = f"input {printable(name)} has shape {array.shape}, expected"
            if not batch or any(other[:1] != (batch,) for other in shapes):
                raise ValueError(f"{found} exactly {shape}: the model's inputs have no batch in common")
            if array.ndim != len(shape) or not fits(array.shape[1:], shape[1:]) or not len(array) or len(array) % batch:
                any_size = ", and any size for -1" if -1 in shape else ""
                raise ValueError(f"{found} {shape} with any multiple of {batch} in front{any_size}")
            if len(array) != len(arrays[0]):
                found = f"input {printable(name)} has {len(array)} samples"
                raise ValueError(f"{found}, the first input {len(arrays[0])}")
        return batch


def _shape_of(detail: Any) -> tuple[int, ...]:
    """The shape of an input or output; -1 for an unknown size. A batch of unknown size is the one in the file."""
    shape, signature = (tuple(int(size) for size in detail[key]) for key in ("shape", "shape_signature"))
    return (*shape[:1], *signature[1:]) if len(signature) == len(shape) else shape


def fits(shape: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    """True if `shape` has the sizes of `expected`, which is -1 for any size."""
    return len(shape) == len(expected) and all(n == m or m < 0 < n for n, m in zip(shape, expected, strict=True))
