"""Makes a LiteRT environment whose CompiledModels know litebnn's ops.

LiteRT loads an accelerator with a fixed file name from the folder that an environment names. Each environment therefore
gets its own folder, with a link of that name to the op library and a file of options.
"""

import ctypes
import importlib
import os
import platform
import shutil
import tempfile
import weakref
from pathlib import Path
from types import ModuleType
from typing import Any

from litebnn.runtime.delegate import load_delegate
from litebnn.runtime.find import find_library
from litebnn.system import HERE, give_name

OPTIONS_NAME = "litebnn.options"
# The name of LiteRT's own accelerator. LiteRT for Python loads it for each model after litebnn's. It crashes on 64-bit
# Arm CPUs without the atomic instructions of ARMv8.1, such as those of a Raspberry Pi 3 or 4.
LITERT_ACCELERATOR = "libLiteRtWebGpuAccelerator.so"
AT_HWCAP, HWCAP_ATOMICS = 16, 1 << 8


def import_litert(module: str) -> ModuleType:
    """Imports a module of ai-edge-litert's CompiledModel API.

    Raises:
        ImportError: ai-edge-litert is not installed, is older than 2.1.6, or does not run on this CPU.
    """
    try:
        options = importlib.import_module("ai_edge_litert.options")  # missing in 2.1.4 and older
        imported = importlib.import_module(f"ai_edge_litert.{module}")
    except ImportError as error:
        raise ImportError(f"CompiledModel needs ai-edge-litert 2.1.6 or newer and ml_dtypes ({error})") from error
    accelerator = Path(str(options.__file__)).parent / LITERT_ACCELERATOR
    if platform.machine() == "aarch64" and not _hwcap() & HWCAP_ATOMICS and accelerator.exists():
        raise ImportError(
            f"CompiledModel cannot run on this CPU: {accelerator} asks for atomic instructions of ARMv8.1, "
            "use litebnn.Interpreter"
        )
    return imported


def _hwcap() -> int:
    """The CPU's capability bits that the kernel reports (AT_HWCAP)."""
    getauxval = ctypes.CDLL(None).getauxval
    getauxval.argtypes, getauxval.restype = [ctypes.c_ulong], ctypes.c_ulong
    return int(getauxval(AT_HWCAP))


def environment(
    *, isa: str | None = None, verbose: bool = False, library: str | Path | None = None, **paths: str | Path
) -> Any:
    """Makes a LiteRT environment in which models with Lce* ops compile for the CPU.

    Callers of LiteRT's own API need an environment; `litebnn.CompiledModel` makes one by itself. The delegate precedes
    XNNPACK, as with `litebnn.load_delegate`, and takes the number of threads from LiteRT's `CpuOptions`.

    Args:
        isa: the instruction set to use, as in `litebnn.load_delegate`.
        verbose: True to log the claimed ops, and their memory.
        library: the library's path; by default `find_library()`.
        **paths: `dispatch_library_path` and `compiler_plugin_path`, for LiteRT's `Environment.create`.

    Returns:
        An `ai_edge_litert.environment.Environment`. The files of the environment are removed when it is destroyed.

    Raises:
        TypeError: a path is of a type that it cannot have.
        ValueError: an option is refused, or the library is not litebnn's.
        FileNotFoundError: the library is not found.
        ImportError: ai-edge-litert is not installed, is older than 2.1.6, or does not run on this CPU.

    Example:
        >>> from ai_edge_litert.compiled_model import CompiledModel
        >>> model = CompiledModel.from_file("model.tflite", environment=litebnn.environment())
    """
    for name, path in paths.items():
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"{name} is {type(path).__name__}, expected a path")
    litert = import_litert("environment")
    library = find_library() if library is None else Path(library).resolve()
    load_delegate(isa=isa, verbose=verbose, library=library, runtime="ai-edge-litert")  # refuses wrong options
    folder = Path(tempfile.mkdtemp(prefix="litebnn-"))
    try:
        give_name(library, folder / HERE.accelerator)
        options = {"isa": isa, "verbose": "1" if verbose else None}
        text = "".join(f"{key}={value}\n" for key, value in options.items() if value is not None)
        (folder / OPTIONS_NAME).write_text(text, encoding="utf-8")
        made = litert.Environment.create(
            runtime_path=str(folder), **{name: os.fspath(path) for name, path in paths.items()}
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(made, _remove, folder, os.getpid())
    return made


def _remove(folder: Path, owner: int) -> None:
    """Removes the folder of an environment. In a forked child the folder is kept, because the parent still needs it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
