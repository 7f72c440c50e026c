"""Tests that Keras, and nothing else, starts without scikit-learn."""

import importlib

from tests.needs import need


def test_keras_alone_does_not_find_scikit_learn() -> None:
    need("keras", "demo")
    assert importlib.import_module("keras.src.wrappers.fixes").sklearn is None
    assert importlib.import_module("sklearn.datasets").load_digits
