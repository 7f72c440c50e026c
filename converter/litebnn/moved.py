"""Modules that had another name in earlier versions. Importing the old name still works, with a DeprecationWarning."""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from types import ModuleType

# A row also holds for the modules of a package.
MOVED = {
    "litebnn.analysis.grids": "litebnn.analysis.quantization",
    "litebnn.analysis.sums": "litebnn.analysis.few_values",
    "litebnn.assumption": "litebnn.verify.assumption",
    "litebnn.build": "litebnn.rules.build",
    "litebnn.calibration": "litebnn.quantize.calibration",
    "litebnn.child": "litebnn.runtime.isolated",
    "litebnn.classifier": "litebnn.evaluate.classifier",
    "litebnn.flatbuffer.strict": "litebnn.flatbuffer.reader",
    "litebnn.frontends.saved_model": "litebnn.frontends.tensorflow",
    "litebnn.graph.custom_ops": "litebnn.safety.custom_ops",
    "litebnn.graph.hazards": "litebnn.safety.hazards",
    "litebnn.graph.shapes": "litebnn.safety.shapes",
    "litebnn.graph.validate": "litebnn.safety.validate",
    "litebnn.keras.zoo.quantizers": "litebnn.keras.zoo.alexnet",
    "litebnn.micro.packages": "litebnn.micro.folder",
    "litebnn.micro.settings": "litebnn.micro",
    "litebnn.model_files": "litebnn.files",
    "litebnn.report.differences": "litebnn.verify",
    "litebnn.report.folded_weights": "litebnn.verify.folded_weights",
    "litebnn.report.page.page": "litebnn.report.page",
    "litebnn.report.rules": "litebnn.report.guidelines",
    "litebnn.report.verify": "litebnn.verify.verification",
    "litebnn.stem": "litebnn.quantize.stem",
    "litebnn.unique_names": "litebnn.graph.makers",
    "litebnn.verification": "litebnn.verify.on_request",
    "litebnn.zoo.cache": "litebnn.zoo.fetch",
    "litebnn.zoo.figures": "litebnn.zoo.networks",
    "litebnn.zoo.labels": "litebnn.zoo.networks",
}


class _Alias(Loader):
    """Fills a module of an old name with what the new one has."""

    def __init__(self, name: str) -> None:
        self.name = name

    def exec_module(self, module: ModuleType) -> None:
        # The frames of the import system do not count.
        warnings.warn(f"{module.__name__} is now {self.name}", DeprecationWarning, stacklevel=2)
        found = vars(import_module(self.name))
        vars(module).update({name: value for name, value in found.items() if not name.startswith("__")})


def spec_of(name: str) -> ModuleSpec | None:
    """The spec of a module by its old name; None if no module had this name.

    >>> spec_of("litebnn.model_files").loader.name
    'litebnn.files'
    """
    for old, new in MOVED.items():
        if name == old or name.startswith(f"{old}."):
            now = new + name.removeprefix(old)
            return spec_from_loader(name, _Alias(now), is_package=True) if find_spec(now) else None
    return None
