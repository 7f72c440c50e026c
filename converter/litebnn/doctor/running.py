"""Findings on the parts that run binary models: the runtimes, the op library, and its instruction set (ISA)."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from litebnn import __version__
from litebnn.doctor.finding import BROKEN, IN_CHECKOUT, MISSING, OK, Finding, pip_install
from litebnn.errors import ConversionError, reason_with_file
from litebnn.runtime.isolated import run_apart

_SECTION = "Running models"
# The limits (seconds, bytes) for loading a runtime, which may hang or crash. TensorFlow takes many seconds.
_SECONDS, _MEMORY = 120, 1 << 36


def look_at_runtime() -> Iterator[Finding]:
    """Loads the runtime that litebnn uses, and yields findings on this runtime and on other installed runtimes."""
    from litebnn.runtime.find import RUNTIMES

    installed = [name for name, module in RUNTIMES.items() if importlib.util.find_spec(module.partition(".")[0])]
    if not installed:
        first = next(iter(RUNTIMES))
        yield Finding(
            _SECTION, "TensorFlow Lite runtime", MISSING, f"none of {', '.join(RUNTIMES)}", pip_install(first)
        )
        return
    taken, *others = installed
    if reason := _fails("loading it", load_runtime, taken):
        install = "" if "pip install" in reason else pip_install(f"--force-reinstall {taken}")
        yield Finding(_SECTION, taken, BROKEN, reason, install)
    else:
        yield Finding(_SECTION, taken, OK, f"{_version(taken)}, the runtime that litebnn takes")
    for name in others:
        yield Finding(_SECTION, name, OK, f"{_version(name)}, not tried")


def look_at_library() -> Iterator[Finding]:
    """Loads the op library, and yields findings on the library and on the ISA that it selects."""
    from litebnn.runtime.find import LIBRARY_VARIABLE, find_library

    brings = "python3 bootstrap.py build" if IN_CHECKOUT else pip_install("--force-reinstall litebnn")
    mends = f"unset {LIBRARY_VARIABLE}" if LIBRARY_VARIABLE in os.environ else brings
    try:
        path = find_library()
    except OSError as error:
        is_named = bool(os.environ.get(LIBRARY_VARIABLE))
        reason = reason_with_file(error) if is_named else "the ops in C++, which run binary layers"
        yield Finding(_SECTION, "library", BROKEN if is_named else MISSING, reason, mends if is_named else brings)
        return
    try:
        facts = run_apart("loading it", read_library, str(path), seconds=_SECONDS, memory=_MEMORY)
    except ConversionError as error:
        facts = {"error": str(error)}
    if "error" in facts:
        yield Finding(_SECTION, "library", BROKEN, f"{path}: {facts['error']}", mends)
        return
    yield Finding(_SECTION, "library", OK, f"{facts['version']}, {path}")
    yield _isa(facts)


def _isa(facts: dict[str, Any]) -> Finding:
    """The finding on the selected ISA, with the reason for the selection."""
    named, had = os.environ.get("LITEBNN_ISA", ""), ", ".join(facts["isas"])
    if named and named not in facts["isas"]:
        return Finding(_SECTION, "ISA", BROKEN, f"LITEBNN_ISA is {named}, this CPU has {had}", "unset LITEBNN_ISA")
    why = f"LITEBNN_ISA names it, of {had}" if named else f"the best for this CPU, which has {had}"
    return Finding(_SECTION, "ISA", OK, f"{named or facts['isas'][0]}: {why}{_lacking(facts['isas'])}")


def _lacking(had: Sequence[str]) -> str:
    """A text that names each ISA that this CPU cannot run, and the features that the CPU lacks for it. ISAs without a
    row in the cost table are left out."""
    from litebnn.report.costs import features_lacking

    lacking = {isa: " ".join(features) for isa, features in features_lacking().items() if isa not in had}
    return "".join(f"; {isa} needs {features}" for isa, features in lacking.items())


def _fails(purpose: str, function: Any, *arguments: Any) -> str:
    """The reason why a function fails in a separate process; "" if it succeeds."""
    try:
        return str(run_apart(purpose, function, *arguments, seconds=_SECONDS, memory=_MEMORY))
    except ConversionError as error:
        return str(error)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"


def load_runtime(name: str) -> str:
    """Imports a runtime. Returns the reason if it cannot be imported, otherwise ""."""
    from litebnn.runtime.find import find_runtime

    try:
        find_runtime(name)
    except Exception as error:  # importing a package may raise any exception
        return f"{type(error).__name__}: {error}" if not isinstance(error, ImportError) else str(error)
    return ""


def read_library(path: str) -> dict[str, Any]:
    """The version of an op library and its ISAs for this CPU, the best one first. If the library cannot be used, the
    reason is under "error"."""
    import ctypes

    try:
        library = ctypes.CDLL(path)
        version_of = library.litebnn_version
    except OSError as error:
        return {"error": str(error).removeprefix(f"{path}: ")}
    except AttributeError:
        return {"error": f"it is none of litebnn's: {Path(path).name} has no litebnn_version"}
    version_of.restype = ctypes.c_char_p
    found = version_of().decode()
    if found != __version__:
        return {"error": f"it is of litebnn {found}, and this is {__version__}"}
    isas = _isas_of(library)
    return {"version": found, "isas": isas} if isas else {"error": "it does not list the ISAs of this CPU"}


def _isas_of(library: Any) -> list[str]:
    """The ISAs that a library has for this CPU, the best one first. It lists them when it refuses an unknown name."""
    import ctypes

    messages: list[bytes] = []
    report = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(messages.append)
    key, value = (ctypes.c_char_p(text) for text in (b"isa", b"?"))
    library.tflite_plugin_create_delegate(ctypes.byref(key), ctypes.byref(value), ctypes.c_size_t(1), report)
    return re.findall(r"[^, ]+", b"".join(messages).decode().partition("one of ")[2].partition(", found")[0])
