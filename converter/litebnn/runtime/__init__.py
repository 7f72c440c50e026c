"""Runs converted models: finds an installed runtime and litebnn's op library, and combines both."""

from litebnn.runtime.compiled_model import CompiledModel
from litebnn.runtime.delegate import load_delegate
from litebnn.runtime.delegation import describe_delegate
from litebnn.runtime.environment import environment
from litebnn.runtime.find import find_library, find_runtime
from litebnn.runtime.interpreter import Interpreter
from litebnn.runtime.register_ops import register_ops

__all__ = [
    "CompiledModel",
    "Interpreter",
    "describe_delegate",
    "environment",
    "find_library",
    "find_runtime",
    "load_delegate",
    "register_ops",
]
