"""Loads litebnn's op library as a TensorFlow Lite delegate."""

import ctypes
from pathlib import Path
from typing import Any

from litebnn.errors import printable, whole_number
from litebnn.runtime.find import find_library, find_runtime
from litebnn.runtime.predictor import reason


def load_delegate(
    num_threads: int | None = None,
    *,
    isa: str | None = None,
    verbose: bool = False,
    describe: bool = False,
    library: str | Path | None = None,
    runtime: str | None = None,
) -> Any:
    """Loads the op library as a delegate, for the `experimental_delegates` of any runtime's Interpreter.

    The delegate runs the Lce* ops of a model. It also runs additions, max pools, concatenations, gates, PReLUs and
    batch norms that it can fuse with these ops. All other ops stay with the runtime. The result also works with the
    Interpreter of another runtime than the one that loaded it.

    Args:
        num_threads: the number of threads for the binary ops, 1 to 256; by default as many as the interpreter has.
        isa: the instruction set to use ("portable", "avx2", "neon64", ...); by default that in the environment variable
            LITEBNN_ISA, else the best one for the CPU.
        verbose: True to log the claimed ops and their memory.
        describe: True to keep what `litebnn.runtime.describe_delegate` tells of the claimed ops.
        library: the library's path; by default `find_library()`.
        runtime: as in `find_runtime`.

    Returns:
        The runtime's Delegate object. It must outlive every interpreter that uses it; interpreters keep a reference to
        it.

    Raises:
        ValueError: an option is refused, and the message lists the known values; or the library is not litebnn's.
        TypeError: `num_threads` is no whole number.
        FileNotFoundError: the library is not found.
        ImportError: no runtime is installed.

    Example:
        >>> from ai_edge_litert.interpreter import Interpreter
        >>> interpreter = Interpreter("model.tflite", experimental_delegates=[litebnn.load_delegate()])
    """
    if num_threads is not None:  # the library refuses too many
        num_threads = whole_number("num_threads", num_threads, 1)
    switches = {name: "1" for name, is_on in (("verbose", verbose), ("describe", describe)) if is_on}
    options = {"num_threads": num_threads, "isa": isa, **switches}
    path = find_library() if library is None else Path(library)
    if not path.is_file():
        raise FileNotFoundError(f"library {printable(path)} is no file")
    # Without a folder in the library's path, Windows would search only its system folders.
    path = path.absolute()
    module = find_runtime(runtime)
    try:
        # Loading the library with ctypes shows first if it is litebnn's. If the runtime itself failed to load the
        # library, the runtime's incomplete Delegate object would print errors later.
        _ = ctypes.CDLL(str(path)).tflite_plugin_create_delegate
    except (OSError, AttributeError) as error:
        raise ValueError(f"{path} is no op library of litebnn for this machine: {error}") from error
    try:
        return module.load_delegate(str(path), {key: str(value) for key, value in options.items() if value is not None})
    except ValueError as error:
        raise ValueError(reason(error)) from error
