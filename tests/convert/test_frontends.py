"""Tests Keras 2 with larq, Keras 3, SavedModels and files as sources, through the functions and through the command
line."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn import cli
from litebnn.flatbuffer import read_model
from litebnn.graph import Array
from litebnn.report.macs import count_macs
from tests.needs import imported, need
from tests.support.float_models import op_names
from tests.trainers.environments import without_keras_choice

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def network() -> Any:
    """The demo's network, which is not trained. Its batch norms have the statistics of one batch."""
    tf = imported("tensorflow", "larq")
    from examples.mnist.trainers.larq import make_network

    layers, rng, model = tf.keras.layers, np.random.default_rng(0), make_network()
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            size = layer.moving_mean.shape
            layer.moving_mean.assign(rng.standard_normal(size) * 3)
            layer.moving_variance.assign(rng.uniform(20, 60, size))
            layer.beta.assign(rng.standard_normal(size))
    return model


@pytest.fixture(scope="module")
def folder(network: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network in every format in which Keras 2 saves it."""
    path = tmp_path_factory.mktemp("models")
    network.save(path / "saved_model", save_format="tf")
    network.save(path / "network.h5", save_format="h5")
    network.save(path / "network.keras", save_format="keras")
    return path


IMAGES = np.random.default_rng(1).uniform(-1, 1, (20, 28, 28, 1)).astype(np.float32)


@pytest.mark.usefixtures("library")
def test_a_larq_network_is_binary_after_its_first_layer(network: Any) -> None:
    converted, report = litebnn.convert_keras_model(network, return_report=True)
    assert op_names(converted) == [
        "CONV_2D",
        "LceQuantize",
        "LceBMaxPool2d",
        "LceBconv2d",
        "LceBMaxPool2d",
        "LceBconv2d",
        "RESHAPE",
        "LceBconv2d",
        "LceBconv2d",
        "RESHAPE",
        "SOFTMAX",
    ]
    assert [layer.binary for layer in report.layers] == [False, True, True, True, True]
    assert report.binary_macs == count_macs(converted).binary
    expected = network.predict(IMAGES, verbose=0)
    np.testing.assert_allclose(litebnn.Interpreter(converted).predict(IMAGES), expected, atol=1e-4)


@pytest.mark.deep
@pytest.mark.usefixtures("library")
def test_a_saved_model(network: Any, folder: Path) -> None:
    converted = litebnn.convert_saved_model(folder / "saved_model")
    assert litebnn.convert_keras_model(str(folder / "saved_model")) == converted
    expected = network.predict(IMAGES, verbose=0)
    np.testing.assert_allclose(litebnn.Interpreter(converted).predict(IMAGES), expected, atol=1e-4)


@pytest.mark.usefixtures("library")
def test_types_of_tensorflow_and_numpy_name_the_interface() -> None:
    tf = imported("tensorflow", "keras")
    data = [np.load(GOLDEN / "residual.npz")["input"]]
    for kind in (tf.int8, np.int8, "int8"):
        converted = litebnn.convert_tflite(
            GOLDEN / "residual.float.tflite", representative_dataset=data, inference_input_type=kind
        )
        assert read_model(converted).graphs[0].inputs[0].type == "INT8"


def command_line(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "litebnn", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=without_keras_choice(), cwd=cwd)


LARQ_NETWORK = """
import tensorflow as tf
import larq as lq


def network():
    signs = {"input_quantizer": "ste_sign", "kernel_quantizer": "ste_sign", "kernel_constraint": "weight_clip"}
    layers = [tf.keras.Input((8, 8, 32)), lq.layers.QuantConv2D(64, 3, **signs), tf.keras.layers.BatchNormalization()]
    return tf.keras.Sequential([*layers, lq.layers.QuantConv2D(32, 3, **signs)])
"""


@pytest.mark.deep
def test_a_network_of_larq_is_summed_up_before_it_is_trained(tmp_path: Path) -> None:
    """The model comes from a Python function, so no file tells the converter that the model needs Keras 2."""
    need("larq")
    (tmp_path / "networks.py").write_text(LARQ_NETWORK)
    result = command_line("summary", "networks:network", "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert [row["op"] for row in found["ops"]] == ["LceQuantize", "LceBconv2d", "LceBconv2d"]
    assert found["totals"]["macs"]["binary"] == 9 * (36 * 32 * 64 + 16 * 64 * 32)


def convert(*models: Path) -> subprocess.CompletedProcess[str]:
    """Converts each model into a file with the suffix .tflite added, by one process in which nothing is imported yet.
    The process fails if one of the conversions fails."""
    code = """
        import sys
        from litebnn import cli
        sys.exit(max([cli.main(["convert", model, "-o", f"{model}.tflite"]) for model in sys.argv[1:]]))
    """
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, models)]
    return subprocess.run(command, capture_output=True, text=True, env=without_keras_choice())


def network_with_a_function(keras: Any) -> Any:
    """A network whose initializer is a function of the user's code, as in larq-zoo's QuickNet. A long layer name makes
    the stored configuration long."""

    def blur(shape: Any, dtype: Any = None, **options: Any) -> Any:
        return np.zeros(shape, np.float32)

    layer = keras.layers.DepthwiseConv2D(3, depthwise_initializer=blur, name="a" * 200)
    return keras.Sequential([keras.Input((8, 8, 32)), layer])


@pytest.mark.deep
@pytest.mark.parametrize(("keras", "suffixes"), [("tf_keras", ["h5", "keras"]), ("keras", ["keras"])])
def test_a_file_with_a_function_that_is_not_known_says_what_to_do(
    keras: str, suffixes: list[str], tmp_path: Path
) -> None:
    """The message must not repeat the stored configuration."""
    module = imported(keras, "larq" if keras == "tf_keras" else "keras")
    model, exported = network_with_a_function(module), tmp_path / "exported"
    paths = [tmp_path / f"network.{suffix}" for suffix in suffixes]
    for path in paths:
        model.save(path)
    model.export(exported)
    result = convert(*paths, exported)
    assert result.returncode == 1
    lines = [line for line in result.stderr.splitlines() if line.startswith(f"litebnn: {tmp_path}")]
    assert len(lines) == len(paths), result.stderr
    for path, line in zip(paths, lines, strict=True):
        version = module.__version__
        said = rf"litebnn: {path} was written by Keras {version} and cannot be loaded by {keras} {version}: "
        assert re.match(re.escape(said), line)
        assert re.search(
            r"(Unknown initializer|Could not (locate|interpret)|not .*registered)[^;]*; where the model is built, ",
            line,
        )
        assert "config=" not in line
    assert Path(f"{exported}.tflite").is_file(), result.stderr


@pytest.mark.deep
def test_the_command_line_takes_what_keras_writes(folder: Path) -> None:
    models = [folder / name for name in ("network.keras", "network.h5", "saved_model")]
    result = convert(*models)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("4 of 5 layers") == len(models)
    for model in models:
        assert count_macs(Path(f"{model}.tflite").read_bytes()).binary > 0


@pytest.fixture(scope="module")
def disparity() -> Any:
    """A model whose inputs and outputs all have the same shape. Sorting their names would change Keras's order."""
    tf = imported("tensorflow", "larq")
    layers = tf.keras.layers
    right, left = (layers.Input((4, 3), name=name) for name in ("right", "left"))
    difference = layers.Subtract(name="z")([right, left])
    outputs = [difference, layers.Subtract(name="y")([left, right]), right, difference, layers.ReLU(name="a")(left)]
    many = [layers.ReLU(limit, name=f"many_{limit}")(right) for limit in range(1, 9)]
    return tf.keras.Model([right, left], [*outputs, *many])


def expected_disparity(right: Array, left: Array) -> dict[str, Array]:
    outputs = {"z": right - left, "y": left - right, "right": right, "z_1": right - left, "a": np.maximum(left, 0)}
    return outputs | {f"many_{limit}": np.clip(right, 0, limit) for limit in range(1, 9)}


@pytest.mark.usefixtures("library")
@pytest.mark.filterwarnings("ignore:no binary layer")
@pytest.mark.parametrize("form", ["model", "disparity.keras", "disparity.h5"])
def test_inputs_and_outputs_come_as_keras_orders_and_names_them(disparity: Any, tmp_path: Path, form: str) -> None:
    if form == "model":
        converted = litebnn.convert_keras_model(disparity)
    else:
        disparity.save(tmp_path / form)
        assert cli.main(["convert", str(tmp_path / form), "-o", str(tmp_path / "out.tflite")]) == 0
        converted = (tmp_path / "out.tflite").read_bytes()
    right, left = np.random.default_rng(0).standard_normal((2, 5, 4, 3)).astype(np.float32) * 9
    expected = expected_disparity(right, left)
    interpreter = litebnn.Interpreter(converted)
    assert interpreter.input_names == ["right", "left"]
    assert interpreter.output_names == list(expected)
    for found in (interpreter.predict([right, left]), interpreter.predict({"left": left, "right": right}).values()):
        for actual, array in zip(found, expected.values(), strict=True):
            np.testing.assert_array_equal(actual, array)
    if form != "model":
        assert litebnn.convert_keras_model(tmp_path / form) == converted


@pytest.mark.deep
@pytest.mark.usefixtures("library")
@pytest.mark.filterwarnings("ignore:no binary layer")
def test_a_saved_model_is_in_the_order_of_its_names(disparity: Any, tmp_path: Path) -> None:
    disparity.save(tmp_path / "saved_model", save_format="tf")
    interpreter = litebnn.Interpreter(litebnn.convert_saved_model(tmp_path / "saved_model"))
    assert interpreter.input_names == ["left", "right"]
    assert interpreter.output_names == sorted(expected_disparity(np.zeros(1), np.zeros(1)))
    right, left = np.random.default_rng(0).standard_normal((2, 1, 4, 3)).astype(np.float32) * 9
    found = interpreter.predict({"left": left, "right": right})
    for name, array in expected_disparity(right, left).items():
        np.testing.assert_array_equal(found[name], array)


KERAS_3 = """
    import sys, keras, numpy as np, tensorflow as tf, litebnn

    class SignConv(keras.layers.Layer):
        def build(self, shape):
            self.kernel = self.add_weight(shape=(3, 3, shape[-1], 32), initializer="glorot_normal")

        def call(self, x):
            sign = lambda x: keras.ops.where(x >= 0, 1.0, -1.0)
            return keras.ops.nn.conv(sign(x), sign(self.kernel), padding="same")

    layers = keras.layers
    model = keras.Sequential([keras.Input((8, 8, 32)), SignConv(), layers.BatchNormalization(), SignConv()])
    print(keras.__version__)
    open(sys.argv[1], "wb").write(litebnn.convert_keras_model(model))
    x = np.random.default_rng(0).standard_normal((1, 8, 8, 32)).astype("float32")
    np.savez(sys.argv[2], x=x, y=model.predict(x, verbose=0))
"""


@pytest.mark.deep
@pytest.mark.usefixtures("library")
def test_keras_3(tmp_path: Path) -> None:
    need("keras")
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "0", "KERAS_BACKEND": "tensorflow"}
    code = textwrap.dedent(KERAS_3)
    paths = tmp_path / "out.tflite", tmp_path / "out.npz"
    result = subprocess.run(
        [sys.executable, "-c", code, *map(str, paths)], capture_output=True, text=True, env=environment
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("3.")
    assert op_names(paths[0].read_bytes()) == ["LceQuantize", "LceBconv2d", "LceBconv2d"]
    data = np.load(paths[1])
    np.testing.assert_allclose(litebnn.Interpreter(paths[0]).predict(data["x"]), data["y"], atol=1e-4)


def test_importing_and_converting_a_file_needs_no_framework() -> None:
    code = f"""
        import sys
        before = set(sys.modules)
        import litebnn
        litebnn.convert_tflite({str(GOLDEN / "residual.float.tflite")!r})
        files = {{name for name in set(sys.modules) - before if getattr(sys.modules[name], "__file__", None)}}
        print(*{{name.partition(".")[0] for name in files}} - sys.stdlib_module_names)
    """
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True)
    assert "litebnn" in result.stdout.split()
    assert set(result.stdout.split()) <= {"litebnn", "numpy", "flatbuffers", "ai_edge_litert", "tflite_runtime"}


class NotKeras:
    pass


@pytest.mark.parametrize("model", [None, b"model.h5", NotKeras()])
def test_what_is_no_keras_model_is_told(model: Any) -> None:
    with pytest.raises(litebnn.ConversionError, match="expected a Keras model"):
        litebnn.convert_keras_model(model)


def test_a_keras_model_without_a_shape_is_told() -> None:
    tf = imported("tensorflow", "larq")
    with pytest.raises(litebnn.ConversionError, match="no input shapes yet"):
        litebnn.convert_keras_model(tf.keras.Sequential([tf.keras.layers.Dense(3)]))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("form", ["model", "folder"])
def test_a_keras_model_of_images_of_any_size(form: str, tmp_path: Path) -> None:
    tf = imported("tensorflow", "larq")
    layers = tf.keras.layers
    x = layers.Conv2D(4, 3, padding="same", name="conv")(inputs := layers.Input((None, None, 3), name="image"))
    free = tf.keras.Model(inputs, layers.MaxPool2D(2)(x))
    if form == "folder":
        tf.saved_model.save(free, str(tmp_path))
        converted = litebnn.convert_saved_model(tmp_path)
    else:
        converted = litebnn.convert_keras_model(free)
    interpreter = litebnn.Interpreter(converted)
    assert (interpreter.input_names, interpreter.input_shapes) == (["image"], [(1, -1, -1, 3)])
    for height, width in ((8, 12), (5, 20)):
        images = np.random.default_rng(0).standard_normal((2, height, width, 3)).astype(np.float32)
        np.testing.assert_allclose(interpreter.predict(images), free.predict(images, verbose=0), atol=1e-5)


def network_of_a_class(keras: Any, *names: str) -> Any:
    """A model of a class whose method `call` has arguments of these names, of which it returns the difference."""
    code = f"def call(self, {', '.join(names)}):\n    return self.inner({' - '.join(names)})"
    methods: dict[str, Any] = {}
    exec(code, methods)
    inner = type("Inner", (keras.Model,), {"call": lambda self, x: self.dense(x) * 2.0})()
    inner.dense = keras.layers.Dense(3)
    model = type("Outer", (keras.Model,), {"call": methods["call"]})()
    model.inner = inner
    return model


def called(model: Any, x: Array) -> None:
    model(x)


def fitted(model: Any, x: Array) -> None:
    model.compile("sgd", "mse")
    model.fit(x, np.zeros((len(x), 3)), verbose=0)


@pytest.mark.usefixtures("library")
@pytest.mark.filterwarnings("ignore:no binary layer")
@pytest.mark.parametrize(
    "use",
    [
        called,
        pytest.param(fitted, marks=pytest.mark.deep),
        pytest.param(lambda model, x: model.predict(x, verbose=0), marks=pytest.mark.deep),
        pytest.param(lambda model, x: model.build((None, 4)), marks=pytest.mark.deep),
    ],
)
def test_a_model_of_a_class_has_the_inputs_with_which_it_was_called(use: Any) -> None:
    keras = imported("tensorflow", "larq").keras
    model, x = network_of_a_class(keras, "image"), np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    with pytest.raises(litebnn.ConversionError, match=r"no input shapes yet: call it once on data, model\(x\)"):
        litebnn.convert_keras_model(model)
    use(model, x)
    interpreter = litebnn.Interpreter(litebnn.convert_keras_model(model))
    assert interpreter.input_names == ["image"]
    assert interpreter.input_shapes == [(1, 4)]
    np.testing.assert_allclose(interpreter.predict(x), model(x), atol=1e-5)


@pytest.mark.deep
@pytest.mark.usefixtures("library")
@pytest.mark.filterwarnings("ignore:no binary layer")
def test_a_model_of_a_class_may_have_several_inputs() -> None:
    keras = imported("tensorflow", "larq").keras
    x, y = np.random.default_rng(0).standard_normal((2, 2, 4)).astype(np.float32)
    model = network_of_a_class(keras, "left", "right")
    expected = model(x, right=y)
    interpreter = litebnn.Interpreter(litebnn.convert_keras_model(model))
    assert interpreter.input_names == ["left", "right"]
    np.testing.assert_allclose(interpreter.predict([x, y]), expected, atol=1e-5)

    pair = type("Pair", (keras.Model,), {"call": lambda self, pair: pair["b"] - 2.0 * pair["a"]})()
    expected = pair({"b": x, "a": y})
    interpreter = litebnn.Interpreter(litebnn.convert_keras_model(pair))
    assert interpreter.input_names == ["a", "b"]
    np.testing.assert_allclose(interpreter.predict([y, x]), expected, atol=1e-5)


def test_a_file_that_is_not_sound_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.tflite"
    path.write_bytes((GOLDEN / "1x1.float.tflite").read_bytes()[:3000])
    with pytest.raises(litebnn.ConversionError, match=r"cut\.tflite: .* 3000 bytes"):
        litebnn.convert_tflite(path)
