"""Tests that imports in Keras, and no others, do not find scikit-learn."""

import importlib.util
import sys

import pytest

from tests.needs import need


def test_only_keras_does_not_find_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    need("demo")
    monkeypatch.delitem(sys.modules, "sklearn", raising=False)
    with pytest.raises(ModuleNotFoundError, match="sklearn"):
        exec("import sklearn", {"__name__": "keras.src.wrappers.fixes"})
    assert importlib.util.find_spec("sklearn") is not None
