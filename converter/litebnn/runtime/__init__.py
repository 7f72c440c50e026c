"""Running converted models: finds an installed runtime and our op library, and brings the two together."""

from litebnn.runtime.delegate import load_delegate
from litebnn.runtime.find import find_library, find_runtime
from litebnn.runtime.interpreter import Interpreter
from litebnn.runtime.register_ops import register_ops

__all__ = ["Interpreter", "find_library", "find_runtime", "load_delegate", "register_ops"]
