"""Runs a function in a child process, which may crash, hang or ask for any amount of memory.

Runtimes are not hardened against damaged models, so an untrusted model must not affect this process. The child sends
its result as JSON, which cannot contain executable code.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from litebnn.errors import ConversionError, boundary
from litebnn.system import limit_memory

_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from litebnn.runtime.isolated import serve; serve()"


def run_apart(purpose: str, function: Callable[..., Any], *arguments: Any, seconds: float, memory: int) -> Any:
    """Calls `function(*arguments)` in another process and returns its result.

    `purpose` is a description of the task for messages. `function` is a module-level function whose result JSON can
    hold. `arguments` are values that pickle can hold. `seconds` is the time limit in seconds. `memory` is the memory
    limit in bytes, beyond what the process needs at its start.

    Raises:
        ConversionError: the function raises a ConversionError, the process crashes, or a limit is reached.
    """
    request = pickle.dumps((f"{function.__module__}:{function.__qualname__}", arguments, memory))
    command = [sys.executable, "-c", _START, json.dumps(sys.path)]
    try:
        done = subprocess.run(
            command, input=request, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise ConversionError(f"{purpose} takes more than {seconds:g} seconds") from None
    except OSError as error:
        raise ConversionError(f"{purpose} needs a process of its own: {error}") from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise ConversionError(f"{purpose} ends the runtime's process with {_ending(done.returncode)}") from None
    if "error" in answer:
        raise ConversionError(answer["error"])
    return answer["result"]


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def serve() -> None:
    """The side of the child process: reads the request from stdin and writes the answer to the original stdout."""
    name, arguments, memory = pickle.load(sys.stdin.buffer)
    # The runtime may print to stdout, where it would mix with the answer. Therefore stdout is redirected.
    with os.fdopen(os.dup(1), "w") as out, Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        module, _, function = name.partition(":")
        call = getattr(importlib.import_module(module), function)
        limit_memory(memory)
        try:
            with boundary():
                json.dump({"result": call(*arguments)}, out)
        except ConversionError as error:
            json.dump({"error": str(error)}, out)
