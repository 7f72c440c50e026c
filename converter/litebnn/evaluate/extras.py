"""What a plain install of litebnn lacks, and functions of the user's that are named on a command line."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


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


def import_function(name: str, folder: str) -> Callable[..., Any]:
    """A function of the user's by its name, module:function.

    Args:
        name: what to import.
        folder: where modules are looked for last: the folder that the command was started in.

    Raises:
        ValueError: there is no such module or function.
    """
    module_name, _, attribute = name.partition(":")
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        function = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{name} cannot be imported: {error}") from None
    if not callable(function):
        raise ValueError(f"{name} is {type(function).__name__}, expected a function")
    return function  # type: ignore[no-any-return]


def fingerprint_of(function: Callable[..., Any]) -> str:
    """Tells one version of a function from another, by the file that it is written in."""
    module = sys.modules.get(getattr(function, "__module__", ""))
    file = getattr(module, "__file__", None)
    content = Path(file).read_bytes() if file and Path(file).is_file() else b""
    name = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', type(function).__name__)}"
    return f"{name}:{hashlib.sha256(content).hexdigest()[:16]}"
