"""Lets Python and Keras start faster. `conftest.py` puts this folder into PYTHONPATH, where each Python looks for a
module of this name. The tests start some hundred processes with TensorFlow.

Python's garbage collector looks for unused cycles of objects each time some hundred more objects exist, 700 in Python
3.12. While TensorFlow starts, this takes a sixth of the time, and finds nothing. The larger number stays for the whole
process.

Keras 3 imports scikit-learn and matplotlib if they are installed, although only its wrappers and plots use them. These
imports are a third of the time that TensorFlow takes to start.
"""

import gc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

UNUSED = ("sklearn", "matplotlib")


class Finder:
    """Hides the packages in UNUSED from Keras only."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in UNUSED and importer().startswith("keras."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def importer() -> str:
    """The name of the module that is importing another one."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith((__name__, "importlib", "_frozen_importlib")):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", ""))


gc.set_threshold(100_000, 10, 10)
sys.meta_path.insert(0, Finder)
