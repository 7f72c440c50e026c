"""Makes random Keras models with several inputs and outputs, and runs them in Keras and in a litebnn.Interpreter.

Usage:

    python -m tests.support.keras_interfaces 2|3|torch FIRST_SEED SEEDS

The check is a separate program, because a process has only one version of Keras, with one backend.
"""

import importlib
import os
import sys
from collections import OrderedDict
from typing import Any

import numpy as np

SHAPE = (2, 3)
NAMES = ["z", "a", "input_10", "input_2", "m-1", "Beta", "alpha.x", "c c"]


def flatten(structure: Any) -> list[tuple[str | None, Any]]:
    """Yields every leaf of a nested structure in the order in which it is written. Each leaf comes with its key in
    the innermost dictionary.
    """
    if isinstance(structure, dict):
        return [(inner or key, leaf) for key, part in structure.items() for inner, leaf in flatten(part)]
    if isinstance(structure, list | tuple):
        return [pair for part in structure for pair in flatten(part)]
    return [(None, structure)]


def structured(rng: np.random.Generator, tensors: list[Any], names: list[str]) -> Any:
    """The tensors in a random structure: a bare tensor, a list, a dictionary (sorted or not), or dictionaries in
    lists."""
    kind = rng.integers(5)
    if kind == 0 or (kind == 1 and len(tensors) > 1):
        return tensors
    if kind == 1:
        return tensors[0]
    keys = [str(key) for key in rng.permutation(names)[: len(tensors)]]
    if kind in (2, 3):
        return (dict if kind == 2 else OrderedDict)(zip(keys, tensors, strict=True))
    half = len(tensors) // 2
    return [*tensors[:half], dict(zip(keys[half:], tensors[half:], strict=True))]


def random_model(keras: Any, rng: np.random.Generator) -> Any:
    """A model of up to four inputs and seven outputs. Outputs may be inputs, constants or equal tensors, and some
    layers are binary."""
    layers = keras.layers
    ops = keras.ops if hasattr(keras, "ops") else importlib.import_module("tensorflow")

    def sign(x: Any) -> Any:
        return ops.where(x >= 0, 1.0, -1.0)

    def binary_dense(x: Any) -> Any:
        signs = ops.convert_to_tensor(rng.choice([-1.0, 1.0], (SHAPE[-1], SHAPE[-1])).astype(np.float32))
        layer = layers.Dense(SHAPE[-1], kernel_initializer=lambda shape, dtype=None: signs, bias_initializer="ones")
        return layer(layers.Lambda(sign)(x))

    names = [str(name) for name in rng.permutation(NAMES)]
    inputs = [layers.Input(SHAPE, name=name) for name in names[: rng.integers(1, 5)]]
    tensors = list(inputs)
    for _ in range(rng.integers(1, 8)):
        x, y = (tensors[rng.integers(len(tensors))] for _ in range(2))
        made = [
            lambda x, y: layers.Dense(SHAPE[-1], bias_initializer="random_normal")(x),
            lambda x, y: layers.Subtract()([x, y]),
            lambda x, y: layers.ReLU()(x),
            lambda x, y: layers.Lambda(lambda t: t * 0.0 + 2.0)(x),
            lambda x, y: layers.Permute((1, 2))(x),
            lambda x, y: binary_dense(x),
        ]
        tensors.append(made[rng.integers(len(made))](x, y))
    shared = layers.Dense(SHAPE[-1])
    tensors += [shared(tensor) for tensor in inputs[:2]]
    outputs = [tensors[rng.integers(len(tensors))] for _ in range(rng.integers(1, len(NAMES)))]
    taken = structured(rng, inputs, names) if rng.integers(2) else inputs
    if isinstance(taken, dict):  # Keras 3 requires the inputs' names as keys.
        taken = type(taken)((tensor.name, tensor) for tensor in taken.values())
    return keras.Model(taken, structured(rng, outputs, names))


def check(keras: Any, tree: Any, seed: int) -> None:
    """Checks that every input and output has the same position as in Keras."""
    import litebnn

    rng = np.random.default_rng(seed)
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    model = random_model(keras, rng)
    arrays = [rng.standard_normal((1, *SHAPE)).astype(np.float32) for _ in model.inputs]
    structure = model.input
    result = model(tree.pack_sequence_as(structure, arrays), training=False)
    numpy = keras.ops.convert_to_numpy if hasattr(keras, "ops") else np.asarray
    expected = [numpy(leaf) for leaf in tree.flatten(result)]
    interpreter = litebnn.Interpreter(litebnn.convert_keras_model(model))
    assert len(interpreter.input_names) == len(set(interpreter.input_names)) == len(model.inputs)
    assert len(interpreter.output_names) == len(set(interpreter.output_names)) == len(expected)

    found = interpreter.predict(arrays)
    for array, other in zip(expected, found if len(expected) > 1 else [found], strict=True):
        np.testing.assert_allclose(other, array, atol=1e-5)

    by_name = interpreter.predict(dict(reversed(list(zip(interpreter.input_names, arrays, strict=True)))))
    assert list(by_name) == interpreter.output_names
    for array, other in zip(expected, by_name.values(), strict=True):
        np.testing.assert_allclose(other, array, atol=1e-5)
    for key, leaf in flatten(result):
        if key is not None:
            np.testing.assert_allclose(by_name[key], numpy(leaf), atol=1e-5)


def main() -> None:
    kind, first, count = sys.argv[1], *map(int, sys.argv[2:])
    backend = "torch" if kind == "torch" else "tensorflow"
    os.environ.update(TF_USE_LEGACY_KERAS=str(int(kind == "2")), KERAS_BACKEND=backend, TF_CPP_MIN_LOG_LEVEL="3")
    if kind == "2":
        import tensorflow as tf

        keras, tree = tf.keras, tf.nest
    else:
        import keras

        tree = keras.tree
    assert getattr(keras, "__version__", "2")[0] == ("2" if kind == "2" else "3")
    for seed in range(first, first + count):
        try:
            check(keras, tree, seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


if __name__ == "__main__":
    main()
