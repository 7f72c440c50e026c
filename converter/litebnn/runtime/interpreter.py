"""One class to run a converted model with, whatever runtime is installed."""

import importlib.util
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from litebnn.runtime.delegate import load_delegate
from litebnn.runtime.find import RUNTIMES, find_runtime
from litebnn.unique_names import unique_names

Array = npt.NDArray[Any]


def arrays_of(x: Any, names: Sequence[str] = ()) -> list[Array]:
    """One array for each input or output of a model: `x` itself where there is one, or the list of them.

    Raises:
        ValueError: `x` is a dictionary, which is put into the order of `names`, and has other keys.
    """
    if isinstance(x, Mapping):
        if set(x) != set(names):
            raise ValueError(f"inputs {', '.join(map(str, x)) or 'none'} given, expected {', '.join(names)}")
        return [np.asarray(x[name]) for name in names]
    return [np.asarray(array) for array in x] if isinstance(x, list | tuple) else [np.asarray(x)]


class Interpreter:
    """Runs a `.tflite` model with litebnn's ops in an installed TensorFlow Lite runtime.

    The runtime is ai-edge-litert, tflite-runtime or TensorFlow, the first that is installed.

    Args:
        model: the model's bytes, or the path of its file.
        num_threads: threads for the runtime's own ops and for the binary ones, 1 to 256.
        runtime: the name of the runtime to use, as in `litebnn.runtime.find_runtime`.
        isa: the instruction set to use, as in `litebnn.load_delegate`.

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
            self._inputs = self._interpreter.get_input_details()
            self._outputs = self._interpreter.get_output_details()
            self._input_names, self._output_names = _interface_names(self._interpreter)
        # SystemError is what tflite-runtime makes of a signature whose names are no UTF-8.
        except (RuntimeError, ValueError, SystemError) as error:
            raise ValueError(f"{name} is refused: {' '.join(str(error).split())}") from error

    @property
    def input_names(self) -> list[str]:
        """The name of each input in the model's signature; of its tensor where the model has no signature."""
        return list(self._input_names)

    @property
    def output_names(self) -> list[str]:
        """The name of each output in the model's signature; of its tensor where the model has no signature."""
        return list(self._output_names)

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

    def predict(self, x: npt.ArrayLike | Sequence[npt.ArrayLike] | Mapping[str, npt.ArrayLike]) -> Any:
        """Runs the model over a batch of any size, as many samples at a time as the model's own batch size.

        Args:
            x: an array [samples, ...] of the model's input dtype, or a list of one such array per input, or a
                dictionary of them by `input_names`. `samples` must be a multiple of the model's batch size. A model
                whose inputs or outputs do not all begin with the same batch takes exactly its own shapes.

        Returns:
            An array [samples, ...], or a list of one per output where the model has several. For a dictionary a
            dictionary by `output_names`, always.

        Raises:
            ValueError: the number of inputs, a name, a shape or a dtype is not what the model takes.

        Example:
            >>> interpreter.predict({"left": left, "right": right})["disparity"].shape
            (1, 120, 160, 1)
        """
        arrays = self._checked(x)
        if [array.shape for array in arrays] == self.input_shapes:
            results = self._run(arrays)
        else:
            batch = self._check_batches(arrays)
            runs = [
                self._run([array[start : start + batch] for array in arrays])
                for start in range(0, len(arrays[0]), batch)
            ]
            for detail, result in zip(self._outputs, runs[0], strict=True):
                if result.shape[:1] != (batch,):
                    raise ValueError(
                        f"output {detail['name']} has shape {result.shape}, which does not begin with the batch of "
                        f"{batch}: give inputs of exactly {self.input_shapes}"
                    )
            results = [np.concatenate(outputs) for outputs in zip(*runs, strict=True)]
        if isinstance(x, Mapping):
            return dict(zip(self._output_names, results, strict=True))
        return results[0] if len(results) == 1 else results

    def _run(self, arrays: list[Array]) -> list[Array]:
        """The outputs of one run with inputs of the model's own shapes."""
        for detail, array in zip(self._inputs, arrays, strict=True):
            self._interpreter.set_tensor(detail["index"], np.asarray(array, order="C"))
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(detail["index"]) for detail in self._outputs]

    def _checked(self, x: Any) -> list[Array]:
        arrays = arrays_of(x, self._input_names)
        if len(arrays) != len(self._inputs):
            raise ValueError(f"{len(arrays)} inputs given, expected {len(self._inputs)}")
        for detail, array in zip(self._inputs, arrays, strict=True):
            if array.dtype != detail["dtype"]:
                raise ValueError(f"input {detail['name']} is {array.dtype}, expected {np.dtype(detail['dtype'])}")
        return arrays

    def _check_batches(self, arrays: list[Array]) -> int:
        """The model's batch size, where `arrays` hold the same multiple of it."""
        shapes = self.input_shapes
        batch = shapes[0][0] if shapes[0] else 0
        for detail, array, shape in zip(self._inputs, arrays, shapes, strict=True):
            found = f"input {detail['name']} has shape {array.shape}, expected"
            if not batch or any(other[:1] != (batch,) for other in shapes):
                raise ValueError(f"{found} exactly {shape}: the model's inputs have no batch in common")
            if array.ndim != len(shape) or array.shape[1:] != shape[1:] or not len(array) or len(array) % batch:
                raise ValueError(f"{found} {shape} with any multiple of {batch} in front")
            if len(array) != len(arrays[0]):
                raise ValueError(f"input {detail['name']} has {len(array)} samples, the first input {len(arrays[0])}")
        return batch


def _interface_names(interpreter: Any) -> tuple[list[str], list[str]]:
    """What the first signature that names them all calls the inputs and outputs; else the names of the tensors."""
    sides = interpreter.get_input_details(), interpreter.get_output_details()
    for key in interpreter.get_signature_list():
        runner = interpreter.get_signature_runner(key)
        inputs, outputs = map(_names_in, sides, (runner.get_input_details(), runner.get_output_details()))
        if inputs is not None and outputs is not None:
            return inputs, outputs
    inputs, outputs = (unique_names(detail["name"] for detail in details) for details in sides)
    return inputs, outputs


def _names_in(details: list[dict[str, Any]], named: dict[str, dict[str, Any]]) -> list[str] | None:
    """A name in a signature for each tensor, its own where it is listed twice; None where one has none."""
    names = defaultdict(list)
    for name, detail in named.items():
        # A signature may be of another subgraph, where the same number means another tensor.
        names[detail["index"], detail["name"]].append(name)
    try:
        return [names[detail["index"], detail["name"]].pop(0) for detail in details]
    except IndexError:
        return None


def _check_structure(content: bytes) -> None:
    """Refuses a truncated or corrupt file, on which tflite-runtime would crash; the other runtimes look themselves.

    It takes the schema, which comes with ai-edge-litert: there is none on 32-bit Arm, and no check.
    """
    if importlib.util.find_spec("ai_edge_litert"):
        from litebnn.flatbuffer import read_model

        read_model(_Bounded(content))


class _Bounded(bytes):
    """Bytes whose slices end inside them, where Python would quietly cut a string of a corrupt file short."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key.stop is not None and key.stop > len(self):
            raise IndexError(f"byte {key.stop} of {len(self)}")
        return super().__getitem__(key)
