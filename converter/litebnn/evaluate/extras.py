"""What a plain install of litebnn lacks, and functions of the user's that are named on a command line."""

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

# The version of each function that this process has imported for another.
_imported: dict[str, str] = {}
_importing = threading.Lock()


def import_extra(module: str, purpose: str) -> ModuleType:
    """Imports a module of litebnn's extra `evaluate`.

    Raises:
        ImportError: it is not installed; the message says what to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = {"PIL": "Pillow"}.get(module.partition(".")[0], module.partition(".")[0])
        raise ImportError(f"{purpose} need {package}: pip install 'litebnn[evaluate]' ({error})") from None


def is_function_name(text: str) -> bool:
    """Whether a text is of the form module:function.

    >>> is_function_name("my_data.loader:batches"), is_function_name("folder")
    (True, False)
    """
    module, colon, name = text.partition(":")
    return bool(colon) and name.isidentifier() and all(word.isidentifier() for word in module.split("."))


def import_function(name: str, folder: str, fingerprint: str = "") -> Callable[..., Any]:
    """A function of the user's by its name, module:function.

    Args:
        name: what to import.
        folder: where modules are looked for last: the folder that the command was started in.
        fingerprint: what `fingerprint_of` gives for it in the process that evaluates, if this is another.

    Raises:
        ValueError: there is no such module or function, or another version of it.
    """
    module_name, _, attribute = name.partition(":")
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        with _importing:
            module = importlib.import_module(module_name)
            function = getattr(module, attribute)
            # A worker of a cluster lives on when the user has changed the file.
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
    """Says of which function of the user's it is what it raises; what may pass, such as OSError, stays as it is.

    Raises:
        ValueError: it raises another exception.
    """
    try:
        yield
    except (ValueError, OSError, MemoryError, ImportError):
        raise
    except Exception as error:
        raise ValueError(f"{name} fails: {type(error).__name__}: {error}") from error


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called in messages, as module:function."""
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', type(function).__name__)}"


def fingerprint_of(function: Callable[..., Any]) -> str:
    """Tells one version of a function from another, by the file that it is written in."""
    module = sys.modules.get(getattr(function, "__module__", ""))
    file = getattr(module, "__file__", None)
    content = Path(file).read_bytes() if file and Path(file).is_file() else b""
    return f"{name_of(function)}:{hashlib.sha256(content).hexdigest()[:16]}"
