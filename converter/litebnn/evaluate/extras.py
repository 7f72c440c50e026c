"""Imports optional packages, and user functions that a command line names."""

from __future__ import annotations

import hashlib
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

# For each function that this process has imported for another process, the fingerprint of the function's file.
_imported: dict[str, str] = {}
_importing = threading.Lock()


def import_extra(module: str, purpose: str) -> ModuleType:
    """Imports a module that belongs to litebnn's extra `evaluate`.

    Raises:
        ImportError: the module is not installed; the message names the extra.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = {"PIL": "Pillow"}.get(module.partition(".")[0], module.partition(".")[0])
        raise ImportError(f"{purpose} need {package}: pip install 'litebnn[evaluate]' ({error})") from None


def is_function_name(text: str) -> bool:
    """True if a text has the form module:function.

    >>> is_function_name("my_data.loader:batches"), is_function_name("folder")
    (True, False)
    """
    module, colon, name = text.partition(":")
    return bool(colon) and name.isidentifier() and all(word.isidentifier() for word in module.split("."))


def import_function(name: str, folder: str, fingerprint: str = "") -> Callable[..., Any]:
    """Imports a user function by its name.

    `name` is module:function. `folder`, in which the command was started, is appended to the module search path. If the
    function is evaluated in another process, `fingerprint` is its `fingerprint_of` in the first process.

    Raises:
        ValueError: the module or function does not exist, or its version differs.
    """
    module_name, _, attribute = name.partition(":")
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        with _importing:
            module = importlib.import_module(module_name)
            function = getattr(module, attribute)
            # A cluster worker may have imported the module before the user changed its file, so it is imported again.
            if fingerprint and _imported.get(name, fingerprint) != fingerprint:
                function = getattr(importlib.reload(module), attribute)
            _imported[name] = fingerprint
    except Exception as error:
        raise ValueError(f"{name} cannot be imported: {type(error).__name__}: {error}") from None
    if not callable(function):
        raise ValueError(f"{name} is {type(function).__name__}, expected a function")
    if fingerprint and fingerprint_of(function) != fingerprint:
        raise ValueError(f"{name} is another function at a worker than here: its file there differs")
    return function  # type: ignore[no-any-return]


@contextmanager
def failures_named(name: str) -> Iterator[None]:
    """Adds the name of the user's function to the errors that the function raises. OSError and other temporary errors
    pass unchanged.

    Raises:
        ValueError: the user's function raised any other exception.
    """
    try:
        yield
    except (ValueError, OSError, MemoryError, ImportError):
        raise
    except Exception as error:
        raise ValueError(f"{name} fails: {type(error).__name__}: {error}") from error


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function, module:function, for messages."""
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', type(function).__name__)}"


def fingerprint_of(function: Callable[..., Any]) -> str:
    """A hash of the file that defines a function. It differs between versions of the function."""
    module = sys.modules.get(getattr(function, "__module__", ""))
    file = getattr(module, "__file__", None)
    content = Path(file).read_bytes() if file and Path(file).is_file() else b""
    return f"{name_of(function)}:{hashlib.sha256(content).hexdigest()[:16]}"
