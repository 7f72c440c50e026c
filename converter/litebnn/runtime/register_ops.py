"""Registers litebnn's ops as custom operators, for interpreters that take functions for registration instead of
delegates."""

import ctypes
import os
from pathlib import Path

from litebnn.runtime.find import find_library

# The mangled name of tflite::MutableOpResolver::AddCustom(const char* name, const TfLiteRegistration* registration, int
# version).
ADD_CUSTOM = "_ZN6tflite17MutableOpResolver9AddCustomEPKcPK18TfLiteRegistrationi"


class _Op(ctypes.Structure):
    """The C structure `LitebnnOp` of litebnn.h. The runtime keeps the address of its name. Therefore the name must
    stay in the library's memory.
    """

    _fields_ = (("name", ctypes.c_void_p), ("registration", ctypes.c_void_p))


class _SharedObject(ctypes.Structure):
    """The C structure `Dl_info` of dlfcn.h, which the function dladdr fills for an address."""

    _fields_ = (
        ("path", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("symbol_address", ctypes.c_void_p),
    )


def register_ops(resolver: int) -> None:
    """Adds the library's ops to the op resolver of an interpreter.

    Interpreters call this function with the address of their `tflite::MutableOpResolver`. The runtime must export that
    class's `AddCustom`: tflite-runtime does, ai-edge-litert and tensorflow do not. `litebnn.load_delegate` works with
    all of them and computes the same.

    Args:
        resolver: the address of the resolver.

    Raises:
        RuntimeError: the runtime does not export `AddCustom`.
        FileNotFoundError: the op library is not found.

    Example:
        >>> from tflite_runtime.interpreter import InterpreterWithCustomOps
        >>> interpreter = InterpreterWithCustomOps(
        ...     model_path="model.tflite", custom_op_registerers=[litebnn.register_ops]
        ... )
    """
    runtime = _shared_object_of(resolver)
    try:
        add_custom = getattr(ctypes.CDLL(runtime), ADD_CUSTOM)
    except AttributeError:
        raise RuntimeError(
            f"{Path(runtime).name} does not export tflite::MutableOpResolver::AddCustom, so ops cannot be "
            "registered with it from Python: use experimental_delegates=[litebnn.load_delegate()] instead"
        ) from None
    add_custom.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
    add_custom.restype = None

    library = ctypes.CDLL(str(find_library()))
    library.litebnn_ops.argtypes = (ctypes.POINTER(ctypes.c_size_t),)
    library.litebnn_ops.restype = ctypes.POINTER(_Op)
    count = ctypes.c_size_t()
    ops = library.litebnn_ops(ctypes.byref(count))
    for op in ops[: count.value]:
        add_custom(resolver, op.name, op.registration, 1)


def _shared_object_of(resolver: int) -> str:
    """The path of the shared library that contains the resolver's class, which is the library of the runtime.

    The path identifies the runtime, because several runtimes may be loaded.
    """
    dladdr = ctypes.CDLL(None).dladdr
    dladdr.argtypes = (ctypes.c_void_p, ctypes.POINTER(_SharedObject))
    found = _SharedObject()
    # A C++ object with virtual functions begins with the address of its class's virtual table. This address leads to
    # the library that contains the class.
    virtual_table = ctypes.c_void_p.from_address(resolver).value
    if not dladdr(virtual_table, ctypes.byref(found)) or not found.path:
        raise RuntimeError("expected the address of a tflite::MutableOpResolver, found another")
    return os.fsdecode(found.path)
