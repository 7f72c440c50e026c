"""Compares the networks of litebnn.keras.zoo with larq-zoo itself, and with the order of the weights in its files."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Model
from litebnn.zoo.networks import NETWORKS
from tests.needs import imported, need
from toolchains.targets import ROOT

# The shapes of each layer's weights, in the order of the files that larq-zoo 2.4 saves.
LAYERS = json.loads(Path(__file__).with_name("zoo_layers.json").read_text(encoding="utf-8"))
SMALL = (64, 64, 3)


@pytest.fixture(scope="module")
def zoo() -> Any:
    return imported("litebnn.keras.zoo", "keras")


@pytest.fixture
def h5py() -> Any:
    return imported("h5py", "keras")


def write_weights(h5py: Any, path: Path, layers: list[list[np.ndarray]], parts: int = 1) -> None:
    """Writes weights as Keras 2 does. Keras splits long lists of layer names; `parts` is the number of attributes
    for this list.
    """
    with h5py.File(path, "w") as file:
        names = [f"layer_{index}".encode() for index in range(len(layers))]
        if parts == 1:
            file.attrs["layer_names"] = names
        for part, chunk in enumerate(np.array_split(names, parts) if parts > 1 else ()):
            file.attrs[f"layer_names{part}"] = chunk
        for name, weights in zip(names, layers, strict=True):
            group = file.create_group(name)
            keys = [f"{name.decode()}/weight_{index}:0".encode() for index in range(len(weights))]
            group.attrs["weight_names"] = keys
            for key, weight in zip(keys, weights, strict=True):
                group[key.decode()] = weight


def layers_of(model: Any) -> list[list[Any]]:
    found = [[*layer.trainable_weights, *layer.non_trainable_weights] for layer in model.layers]
    return [weights for weights in found if weights]


@pytest.mark.deep
@pytest.mark.parametrize("name", NETWORKS)
def test_layers_have_the_order_of_larq_zoos_files(name: str, zoo: Any) -> None:
    build, expected = getattr(zoo, name), LAYERS[name]
    model = build(weights=None)
    assert model.name == NETWORKS[name].model
    assert model.output_shape == (None, 1000)
    assert [[list(weight.shape) for weight in layer] for layer in layers_of(model)] == expected["layers"]
    features = build(weights=None, include_top=False, input_shape=(224, 224, 3))
    shapes = [[list(weight.shape) for weight in layer] for layer in layers_of(features)]
    assert shapes == expected["layers"][: expected["layers_without_top"]]


@pytest.mark.deep
@pytest.mark.parametrize("parts", [1, 3])
def test_weights_of_keras_2_are_loaded_in_their_order(parts: int, zoo: Any, h5py: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    layers = [[rng.random(shape).astype(np.float32) for shape in layer] for layer in LAYERS["QuickNetSmall"]["layers"]]
    # Keras also lists layers without weights, which zoo_layers.json leaves out.
    write_weights(h5py, tmp_path / "weights.h5", [[], *layers, []], parts)
    model = zoo.QuickNetSmall(weights=tmp_path / "weights.h5")
    for loaded, saved in zip(layers_of(model), layers, strict=True):
        for variable, value in zip(loaded, saved, strict=True):
            np.testing.assert_array_equal(np.asarray(variable.value), value)


@pytest.mark.deep
def test_files_of_whole_models_and_of_keras_3_are_loaded(zoo: Any, h5py: Any, tmp_path: Path) -> None:
    build = zoo.QuickNetSmall
    model = build(weights=None, num_classes=3, input_shape=SMALL)
    layers = [[np.asarray(variable.value) for variable in layer] for layer in layers_of(model)]
    write_weights(h5py, tmp_path / "weights.h5", layers)
    with h5py.File(tmp_path / "weights.h5") as source, h5py.File(tmp_path / "model.h5", "w") as whole:
        group = whole.create_group("model_weights")
        for name in source:
            source.copy(name, group)
        group.attrs["layer_names"] = source.attrs["layer_names"]
    model.save_weights(tmp_path / "own.weights.h5")
    images = np.random.default_rng(0).standard_normal((1, *SMALL)).astype(np.float32)
    for name in ("weights.h5", "model.h5", "own.weights.h5"):
        loaded = build(weights=tmp_path / name, num_classes=3, input_shape=SMALL)
        np.testing.assert_array_equal(np.asarray(loaded(images)), np.asarray(model(images)), name)


@pytest.mark.deep
def test_other_files_are_one_line(zoo: Any, h5py: Any, tmp_path: Path) -> None:
    layers = [[np.zeros(shape, np.float32) for shape in layer] for layer in LAYERS["QuickNetSmall"]["layers"]]
    (tmp_path / "text.h5").write_text("no weights")
    write_weights(h5py, tmp_path / "short.h5", layers[:-1])
    write_weights(h5py, tmp_path / "other.h5", [*layers[:-1], [np.zeros((512, 10)), np.zeros(10)]])
    write_weights(h5py, tmp_path / "nan.h5", [*layers[:-1], [np.full((512, 1000), np.nan), np.zeros(1000)]])
    write_weights(h5py, tmp_path / "cut.h5", layers)
    whole = (tmp_path / "cut.h5").read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[: len(whole) // 2])
    for name, message in (
        ("nowhere.h5", "nowhere.h5"),
        ("text.h5", "text.h5 has no weights for quicknet_small: "),
        ("short.h5", f"short.h5 has the weights of {len(layers) - 1} layers, but quicknet_small has {len(layers)}"),
        ("other.h5", 'has weights of shapes [(512, 10), (10,)], but layer "'),
        ("nan.h5", "has weights that are not finite numbers"),
        ("cut.h5", "cut.h5 is a damaged HDF5 file: "),
    ):
        with pytest.raises((ValueError, OSError)) as caught:
            zoo.QuickNetSmall(weights=tmp_path / name)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.deep
def test_arguments_that_do_not_fit_are_one_line(zoo: Any) -> None:
    for build, arguments, message in (
        (zoo.QuickNet, {"num_classes": 10}, "num_classes is 10, but the pretrained weights of QuickNet are for 1000"),
        (zoo.QuickNet, {"weights": None, "input_shape": (None, None, 3)}, "the height and width must be known"),
        (zoo.QuickNet, {"weights": None, "input_shape": (224, 224)}, "expected (height, width, channels)"),
        (zoo.XNORNet, {"weights": None, "input_shape": SMALL}, "XNORNet cannot take images of (64, 64, 3): "),
    ):
        with pytest.raises(ValueError, match=".") as caught:
            build(**arguments)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.deep
def test_features_take_any_size_and_a_tensor(zoo: Any) -> None:
    keras = imported("keras", "keras")
    for name in ("QuickNet", "BinaryDenseNet28", "MeliusNet22", "RealToBinaryNet"):
        assert getattr(zoo, name)(weights=None, include_top=False).output_shape[:3] == (None, None, None)
    images = keras.Input(SMALL)
    model = zoo.QuickNet(weights=None, input_tensor=keras.layers.Rescaling(2.0)(images), num_classes=7)
    assert model.output_shape == (None, 7)
    assert model.inputs[0] is images


@pytest.mark.long
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_and_files_are_those_of_larq_zoo(name: str, zoo: Any, tmp_path: Path) -> None:
    need("larq", "larq-zoo")
    program = (sys.executable, "-m", "tests.trainers.larq_zoo_networks", str(tmp_path), name)
    result = subprocess.run(
        program, cwd=ROOT, env={**os.environ, "TF_USE_LEGACY_KERAS": "1"}, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-3000:]
    data, build = np.load(tmp_path / f"{name}.npz"), getattr(zoo, name)
    model = build(weights=tmp_path / f"{name}.h5")
    features = build(weights=tmp_path / f"{name}.notop.h5", include_top=False, input_shape=(224, 224, 3))
    for each, key in ((model, "probabilities"), (features, "features")):
        gap = np.abs(np.asarray(each(data["images"], training=False)) - data[key]).max()
        assert gap <= 1e-5 * np.abs(data[key]).max(), key
    own = read_model(litebnn.convert_keras_model(model))
    theirs = read_model((tmp_path / f"{name}.tflite").read_bytes())
    assert [op.code for op in own.graphs[0].ops] == [op.code for op in theirs.graphs[0].ops]
    assert abs(size_without_names(own) - size_without_names(theirs)) <= 1024


def size_without_names(model: Model) -> int:
    """The size in bytes of a model's file, after a number has replaced each tensor's name. Keras 2 puts the network's
    name before the name of each op, which makes a file up to 21 KB larger.
    """
    for graph in model.graphs:
        for index, tensor in enumerate(graph.tensors):
            tensor.name = str(index)
    return len(write_model(model))
