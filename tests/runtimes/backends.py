"""A common interface for all runtimes: it runs a model with the ops registered in some way, or reports that the runtime
refuses the model.

This module imports only the standard library, NumPy and the runtime, because each runtime has its own environment.
"""

import ctypes
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import litebnn
from litebnn.contract import CUSTOM_OPS
from litebnn.runtime.find import RUNTIMES, find_library, find_runtime

# NumPy's types by the number of TfLiteType.
TYPES: dict[int, Any] = {1: np.float32, 2: np.int32, 6: np.bool_, 9: np.int8}
DELEGATE, REGISTRATION, COMPILED = "delegate", "registration", "compiled model"


class Refused(Exception):
    """The runtime refuses to load or run a model. The message comes from the runtime's error reporter."""


class PythonRuntime:
    """A runtime that is installed as a Python package."""

    def __init__(self, package: str | None = None) -> None:
        self.module = find_runtime(package)
        needed = [f"ai_edge_litert.{name}" for name in ("compiled_model", "environment")]
        compiles = self.module.__name__ == RUNTIMES["ai-edge-litert"] and all(map(importlib.util.find_spec, needed))
        self.interfaces = (DELEGATE, REGISTRATION, COMPILED) if compiles else (DELEGATE, REGISTRATION)

    def interpreter(self, model: bytes, interface: str, num_threads: int) -> Any:
        if interface == DELEGATE:
            delegate = litebnn.load_delegate(num_threads=num_threads)
            return self.module.Interpreter(model_content=model, experimental_delegates=[delegate])
        return self.module.InterpreterWithCustomOps(
            model_content=model, num_threads=num_threads, custom_op_registerers=[litebnn.register_ops]
        )

    def session(self, model: bytes, interface: str, num_threads: int = 1) -> Callable[[Any], Any]:
        """Returns a function from an input of any batch size to the output. All calls use one interpreter."""
        if interface == COMPILED:
            compiled = self._guarded(lambda: litebnn.CompiledModel(model, num_threads))
            return lambda x: self._guarded(lambda: compiled.predict(x))
        interpreter = self._guarded(lambda: self.interpreter(model, interface, num_threads))

        def run(x: Any) -> Any:
            source, result = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
            interpreter.resize_tensor_input(source["index"], x.shape)
            interpreter.allocate_tensors()
            interpreter.set_tensor(source["index"], x)
            interpreter.invoke()
            return interpreter.get_tensor(result["index"])

        return lambda x: self._guarded(lambda: run(x))

    def prepare(self, model: bytes, interface: str) -> None:
        """Loads a model and allocates its tensors, without running the model."""
        if interface == COMPILED:
            self._guarded(lambda: litebnn.CompiledModel(model))
            return
        self._guarded(lambda: self.interpreter(model, interface, 1).allocate_tensors())

    @staticmethod
    def _guarded(action: Callable[[], Any]) -> Any:
        try:
            return action()
        except (RuntimeError, ValueError) as error:
            raise Refused(str(error)) from None


class CLibrary:
    """A runtime that is the C library libtensorflowlite_c.so."""

    interfaces = (DELEGATE, REGISTRATION)

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        self.ops = ctypes.CDLL(str(find_library()))
        pointers = (
            "TfLiteModelCreate TfLiteInterpreterOptionsCreate TfLiteInterpreterCreate TfLiteInterpreterGetInputTensor "
            "TfLiteInterpreterGetOutputTensor TfLiteTensorData"
        )
        for name in pointers.split():
            getattr(self.library, name).restype = ctypes.c_void_p
        self.library.TfLiteTensorByteSize.restype = ctypes.c_size_t
        for name in ("litebnn_registration", "tflite_plugin_create_delegate"):
            getattr(self.ops, name).restype = ctypes.c_void_p
        self.format = ctypes.CDLL(None).vsnprintf

    def session(self, model: bytes, interface: str, num_threads: int = 1) -> Callable[[Any], Any]:
        """Returns a function from an input of any batch size to the output. All calls use one interpreter."""
        return _CSession(self, model, interface, num_threads).run

    def prepare(self, model: bytes, interface: str) -> None:
        """Loads a model and allocates its tensors, without running the model."""
        _CSession(self, model, interface, 1).allocate()


class _CSession:
    """One interpreter of TensorFlow Lite's C library, libtensorflowlite_c.so."""

    REPORTER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

    def __init__(self, runtime: CLibrary, model: bytes, interface: str, num_threads: int) -> None:
        self.runtime, self.library = runtime, runtime.library
        self.messages: list[str] = []
        self.interpreter = self.delegate = None
        # The runtime does not copy the model, so this buffer must live as long as the interpreter.
        self.content = ctypes.create_string_buffer(model, len(model))
        self.model = ctypes.c_void_p(self.library.TfLiteModelCreate(self.content, ctypes.c_size_t(len(model))))
        self.options = ctypes.c_void_p(self.library.TfLiteInterpreterOptionsCreate())
        self.reporter = self.REPORTER(self._report)
        self.library.TfLiteInterpreterOptionsSetErrorReporter(self.options, self.reporter, None)
        self.library.TfLiteInterpreterOptionsSetNumThreads(self.options, num_threads)
        if interface == DELEGATE:
            keys, values = (ctypes.c_char_p * 1)(b"num_threads"), (ctypes.c_char_p * 1)(b"%d" % num_threads)
            create = runtime.ops.tflite_plugin_create_delegate
            self.delegate = ctypes.c_void_p(create(keys, values, ctypes.c_size_t(1), None))
            self.library.TfLiteInterpreterOptionsAddDelegate(self.options, self.delegate)
        else:
            for op in CUSTOM_OPS:
                name = op.encode()
                registration = ctypes.c_void_p(runtime.ops.litebnn_registration(name))
                self.library.TfLiteInterpreterOptionsAddCustomOp(self.options, name, registration, 1, 1)
        self.interpreter = ctypes.c_void_p(self.library.TfLiteInterpreterCreate(self.model, self.options))
        if not self.interpreter:
            raise Refused(self._reported())

    def __del__(self) -> None:
        if self.interpreter:
            self.library.TfLiteInterpreterDelete(self.interpreter)
        if self.delegate:
            self.runtime.ops.tflite_plugin_destroy_delegate(self.delegate)
        self.library.TfLiteInterpreterOptionsDelete(self.options)
        self.library.TfLiteModelDelete(self.model)

    def _report(self, _: Any, message: bytes, arguments: Any) -> None:
        text = ctypes.create_string_buffer(1024)
        self.runtime.format(text, ctypes.c_size_t(len(text)), message, ctypes.c_void_p(arguments))
        self.messages.append(text.value.decode())

    def _reported(self) -> str:
        return "\n".join(self.messages)

    def _check(self, status: int) -> None:
        if status:
            raise Refused(self._reported())

    def allocate(self) -> None:
        self._check(self.library.TfLiteInterpreterAllocateTensors(self.interpreter))

    def run(self, x: Any) -> Any:
        library = self.library
        shape = (ctypes.c_int * x.ndim)(*x.shape)
        self._check(library.TfLiteInterpreterResizeInputTensor(self.interpreter, 0, shape, x.ndim))
        self.allocate()
        source = ctypes.c_void_p(library.TfLiteInterpreterGetInputTensor(self.interpreter, 0))
        content = np.ascontiguousarray(x)
        size = ctypes.c_size_t(content.nbytes)
        self._check(library.TfLiteTensorCopyFromBuffer(source, ctypes.c_void_p(content.ctypes.data), size))
        self._check(library.TfLiteInterpreterInvoke(self.interpreter))
        result = ctypes.c_void_p(library.TfLiteInterpreterGetOutputTensor(self.interpreter, 0))
        dims = [library.TfLiteTensorDim(result, i) for i in range(library.TfLiteTensorNumDims(result))]
        output = np.empty(dims, TYPES[library.TfLiteTensorType(result)])
        size = ctypes.c_size_t(output.nbytes)
        self._check(library.TfLiteTensorCopyToBuffer(result, ctypes.c_void_p(output.ctypes.data), size))
        return output


def backend() -> Any:
    """The runtime that the environment variable LITEBNN_RUNTIME names: a package, or the C library's path."""
    named = os.environ["LITEBNN_RUNTIME"]
    return CLibrary(Path(named)) if named.endswith(".so") else PythonRuntime(named)
