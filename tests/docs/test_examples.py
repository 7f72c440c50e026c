"""Tests that the examples in docstrings give the results that they show, in a folder with the models that they mention.

Examples of litebnn.torch run in PyTorch's environment (tests/trainers/torch_suite.py). Examples of litebnn.keras run in
test_blocks.py, which also runs the code blocks of the documents.
"""

import doctest
import importlib
import shutil
from pathlib import Path

import numpy as np
import pytest

import litebnn
from tests.needs import need
from toolchains.targets import ROOT

PACKAGE = ROOT / "converter" / "litebnn"
FILES = {
    "model.tflite": "examples/label_image/digits.tflite",
    "float.tflite": "tests/golden/conv_pool_bn_conv.float.tflite",
    "binary.tflite": "tests/golden/conv_pool_bn_conv.lce.tflite",
}
# The requirements of modules whose examples need more than litebnn.
NEEDS = {"litebnn.runtime.register_ops": ("tflite-runtime",)}


def modules() -> list[str]:
    """The project's modules whose docstrings contain examples."""
    files = [path for path in PACKAGE.rglob("*.py") if not path.stem.endswith("_test")]
    found = [path for path in files if ">>> " in path.read_text(encoding="utf-8")]
    names = [path.relative_to(PACKAGE.parent).with_suffix("").parts for path in found]
    return sorted(".".join(parts).removesuffix(".__init__") for parts in names if parts[1] not in ("keras", "torch"))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("module", modules())
def test_examples(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, source in FILES.items():
        shutil.copy2(ROOT / source, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    need(*NEEDS.get(module, ()))
    names = {"litebnn": litebnn, "images": np.zeros((100, 28, 28, 1), np.float32), "np": np, "Path": Path}
    result = doctest.testmod(
        importlib.import_module(module),
        extraglobs=names,
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    )
    assert result.failed == 0
