"""A LiteRT environment whose CompiledModels know our ops.

LiteRT loads an accelerator from the folder that an environment names, by a name of LiteRT's own. So each environment
gets a folder with a link of that name to the op library, and with the options for it in a file beside.
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

# LiteRT takes the first library of this name that it finds, so there is no other GPU accelerator in the environment.
ACCELERATOR_NAME = "libLiteRtGpuAccelerator.so"
OPTIONS_NAME = "litebnn.options"
# LiteRT for Python loads its own accelerator for each model, in an environment behind ours. On a 64-bit Arm CPU without
# the atomic instructions of ARMv8.1, such as those of a Raspberry Pi 3 or 4, it ends the process as it is loaded.
LITERT_ACCELERATOR = "libLiteRtWebGpuAccelerator.so"
AT_HWCAP, HWCAP_ATOMICS = 16, 1 << 8


def import_litert(module: str) -> ModuleType:
    """A module of ai-edge-litert that has to do with CompiledModel.

    Raises:
        ImportError: it is not installed, is older than 2.1.6, or does not run on this CPU.
    """
    try:
        options = importlib.import_module("ai_edge_litert.options")  # which 2.1.4 and older lack
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
    """What the kernel says that the CPU can do."""
    getauxval = ctypes.CDLL(None).getauxval
    getauxval.argtypes, getauxval.restype = [ctypes.c_ulong], ctypes.c_ulong
    return int(getauxval(AT_HWCAP))


def environment(
    *, isa: str | None = None, verbose: bool = False, library: str | Path | None = None, **paths: str
) -> Any:
    """Makes a LiteRT environment in which models with Lce* ops compile for the CPU.

    It is for those who call LiteRT's own API; `litebnn.CompiledModel` makes one by itself. The delegate comes before
    XNNPACK, as with `litebnn.load_delegate`, and has the number of threads of LiteRT's `CpuOptions`.

    Args:
        isa: the instruction set to use, as in `litebnn.load_delegate`.
        verbose: log what was claimed, and the memory it takes.
        library: the library's path; by default `find_library()`.
        **paths: `dispatch_library_path` and `compiler_plugin_path`, for LiteRT's `Environment.create`.

    Returns:
        An `ai_edge_litert.environment.Environment`. What it needs in the file system lives as long as it does.

    Raises:
        ValueError: an option is refused, or the library is not ours.
        FileNotFoundError: the library is not found.
        ImportError: ai-edge-litert is not installed, is older than 2.1.6, or does not run on this CPU.

    Example:
        >>> from ai_edge_litert.compiled_model import CompiledModel
        >>> model = CompiledModel.from_file("model.tflite", environment=litebnn.environment())
    """
    litert = import_litert("environment")
    library = find_library() if library is None else Path(library).resolve()
    load_delegate(isa=isa, verbose=verbose, library=library, runtime="ai-edge-litert")  # refuses what is wrong
    folder = Path(tempfile.mkdtemp(prefix="litebnn-"))
    try:
        (folder / ACCELERATOR_NAME).symlink_to(library)
        options = {"isa": isa, "verbose": "1" if verbose else None}
        text = "".join(f"{key}={value}\n" for key, value in options.items() if value is not None)
        (folder / OPTIONS_NAME).write_text(text, encoding="utf-8")
        made = litert.Environment.create(runtime_path=str(folder), **paths)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(made, _remove, folder, os.getpid())
    return made


def _remove(folder: Path, owner: int) -> None:
    """Removes the folder, but not from under the process that this one has been forked from."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
