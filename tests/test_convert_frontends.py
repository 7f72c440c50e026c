"""Keras 2 with larq, Keras 3, SavedModels and files, through the functions and through the command line."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn import cli
from litebnn.flatbuffer import read_model
from litebnn.inspect.macs import count_macs
from tests.support.float_models import FloatModel, op_names, sign_weights

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def network() -> Any:
    """The network of the demo, untrained, with batch norms that have seen something."""
    larq = pytest.importorskip("larq", reason="pip install larq tf-keras")
    tf = pytest.importorskip("tensorflow", reason="pip install tensorflow")
    layers, rng = tf.keras.layers, np.random.default_rng(0)
    binary = {
        "input_quantizer": "ste_sign",
        "kernel_quantizer": "ste_sign",
        "kernel_constraint": "weight_clip",
        "use_bias": False,
    }
    model = tf.keras.Sequential(
        [
            larq.layers.QuantConv2D(32, 3, kernel_quantizer="ste_sign", use_bias=False, input_shape=(28, 28, 1)),
            layers.MaxPooling2D(2),
            layers.BatchNormalization(scale=False),
            larq.layers.QuantConv2D(64, 3, **binary),
            layers.MaxPooling2D(2),
            layers.BatchNormalization(scale=False),
            larq.layers.QuantConv2D(64, 3, **binary),
            layers.BatchNormalization(scale=False),
            layers.Flatten(),
            larq.layers.QuantDense(64, **binary),
            layers.BatchNormalization(scale=False),
            larq.layers.QuantDense(10, **binary),
            layers.BatchNormalization(scale=False),
            layers.Activation("softmax"),
        ]
    )
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            size = layer.moving_mean.shape
            layer.moving_mean.assign(rng.standard_normal(size) * 3)
            layer.moving_variance.assign(rng.uniform(20, 60, size))
            layer.beta.assign(rng.standard_normal(size))
    return model


@pytest.fixture(scope="module")
def folder(network: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network in every form that the command line takes."""
    path = tmp_path_factory.mktemp("models")
    network.save(path / "saved_model", save_format="tf")
    network.save(path / "network.h5", save_format="h5")
    network.save(path / "network.keras", save_format="keras")
    (path / "network.tflite").write_bytes(litebnn.convert_keras_model(network))
    return path


IMAGES = np.random.default_rng(1).uniform(-1, 1, (20, 28, 28, 1)).astype(np.float32)


@pytest.mark.usefixtures("library")
def test_a_larq_network_is_binary_behind_its_first_layer(network: Any) -> None:
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
    assert report.binary_macs == count_macs(converted)[0]
    expected = network.predict(IMAGES, verbose=0)
    np.testing.assert_allclose(litebnn.Interpreter(converted).predict(IMAGES), expected, atol=1e-4)


@pytest.mark.usefixtures("library")
def test_a_saved_model(network: Any, folder: Path) -> None:
    converted = litebnn.convert_saved_model(folder / "saved_model")
    expected = network.predict(IMAGES, verbose=0)
    np.testing.assert_allclose(litebnn.Interpreter(converted).predict(IMAGES), expected, atol=1e-4)


@pytest.mark.usefixtures("library")
def test_types_of_tensorflow_and_numpy_name_the_interface() -> None:
    tf = pytest.importorskip("tensorflow", reason="pip install tensorflow")
    data = [np.load(GOLDEN / "residual.npz")["input"]]
    for kind in (tf.int8, np.int8, "int8"):
        converted = litebnn.convert_tflite(
            GOLDEN / "residual.float.tflite", representative_dataset=data, inference_input_type=kind
        )
        assert read_model(converted).graphs[0].inputs[0].type == "INT8"


def command_line(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "TF_USE_LEGACY_KERAS"}
    return subprocess.run(
        [sys.executable, "-m", "litebnn.cli", *map(str, arguments)], capture_output=True, text=True, env=environment
    )


@pytest.mark.parametrize("name", ["network.h5", "network.keras", "saved_model"])
def test_the_command_line_takes_what_keras_writes(folder: Path, tmp_path: Path, name: str) -> None:
    result = command_line("convert", folder / name, "-o", tmp_path / "out.tflite")
    assert result.returncode == 0, result.stderr
    assert "4 of 5 layers" in result.stdout
    assert count_macs((tmp_path / "out.tflite").read_bytes())[0] > 0


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


@pytest.mark.usefixtures("library")
def test_keras_3(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="pip install tensorflow")
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


def test_importing_and_converting_a_file_needs_no_tensorflow() -> None:
    code = f"""
        import sys, litebnn
        litebnn.convert_tflite({str(GOLDEN / "residual.float.tflite")!r})
        assert "tensorflow" not in sys.modules and "keras" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


class NotKeras:
    pass


@pytest.mark.parametrize("model", [None, "model.h5", NotKeras()])
def test_what_is_no_keras_model_is_told(model: Any) -> None:
    with pytest.raises(litebnn.ConversionError, match="expected a Keras model"):
        litebnn.convert_keras_model(model)


def test_a_keras_model_without_a_shape_is_told() -> None:
    tf = pytest.importorskip("tensorflow", reason="pip install tensorflow")
    with pytest.raises(litebnn.ConversionError, match="no input shapes yet"):
        litebnn.convert_keras_model(tf.keras.Sequential([tf.keras.layers.Dense(3)]))
    free = tf.keras.Sequential([tf.keras.layers.Conv2D(3, 1, input_shape=(None, None, 3))])
    with pytest.raises(litebnn.ConversionError, match="only the first dimension may be unknown"):
        litebnn.convert_keras_model(free)


def fails(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The one line that the command prints when it fails."""
    try:
        status = cli.main([str(argument) for argument in arguments])
    except SystemExit as error:
        status = error.code
    assert status == 1
    [line] = capsys.readouterr().err.splitlines()
    return line


def archive(name: str, content: str) -> bytes:
    """A .zip file with one member."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr(name, content)
    return file.getvalue()


def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out, source = tmp_path / "out.tflite", GOLDEN / "1x1.float.tflite"
    out.write_bytes(b"before")
    cases: dict[Path, bytes] = {
        tmp_path / "truncated.tflite": source.read_bytes()[:3000],
        tmp_path / "text.tflite": b"hello" * 100,
        tmp_path / "empty.h5": b"",
        tmp_path / "broken.h5": b"\x89HDF\r\n\x1a\n" + bytes(100),
        tmp_path / "broken.keras": b"PK\x05\x06" + bytes(18),
        tmp_path / "list.keras": archive("metadata.json", "[]"),
    }
    for path, content in cases.items():
        path.write_bytes(content)
        message = fails(capsys, "convert", path, "-o", out)
        assert str(path) in message
        assert "unpack" not in message
    assert "No such file" in fails(capsys, "convert", tmp_path / "none.tflite", "-o", out)
    assert "no saved_model.pb" in fails(capsys, "convert", tmp_path, "-o", out)
    assert "no folder" in fails(capsys, "convert", source, "-o", tmp_path / "nowhere" / "out.tflite")
    for no_file in (tmp_path, Path("/dev/null"), ""):
        assert "is no file" in fails(capsys, "convert", source, "-o", no_file)
    assert "-o" in fails(capsys, "convert", source)
    assert "invalid choice" in fails(capsys, "convert", source, "-o", out, "--inference-input-type", "int4")
    assert "is not quantized" in fails(capsys, "convert", source, "-o", out, "--inference-input-type", "int8")
    assert "cannot be read" in fails(capsys, "convert", source, "-o", out, "--representative-data", source)
    assert out.read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["out.tflite", *(path.name for path in cases)])


@pytest.mark.parametrize("samples", [b"", archive("a.npy", "x"), archive("a.npy", "x")[:60], np.float32(3)])
def test_samples_that_are_none(capsys: pytest.CaptureFixture[str], tmp_path: Path, samples: Any) -> None:
    path = tmp_path / "samples.npy"
    if isinstance(samples, bytes):
        path.write_bytes(samples)
    else:
        np.save(path, samples)
    source, out = GOLDEN / "1x1.float.tflite", tmp_path / "out.tflite"
    assert str(path) in fails(capsys, "convert", source, "-o", out, "--representative-data", path)


def test_the_output_may_be_the_input_or_behind_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "model.tflite", tmp_path / "link.tflite"
    path.write_bytes((GOLDEN / "1x1.float.tflite").read_bytes())
    link.symlink_to(path)
    assert cli.main(["convert", str(path), "-o", str(link)]) == 0
    assert link.is_symlink()
    assert "LceBconv2d" in op_names(path.read_bytes())


def test_a_file_that_is_not_sound_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.tflite"
    path.write_bytes((GOLDEN / "1x1.float.tflite").read_bytes()[:3000])
    with pytest.raises(litebnn.ConversionError, match=r"cut\.tflite: .* 3000 bytes"):
        litebnn.convert_tflite(path)


@pytest.mark.usefixtures("library")
def test_the_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    arguments = ["convert", str(GOLDEN / "quant_dense.float.tflite"), "-o", str(out), "--verify"]
    assert cli.main([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["bytes_after"] == out.stat().st_size
    assert [layer["kind"] for layer in report["layers"]] == ["dense", "dense"]
    assert report["layers"][0]["macs"] == 640 * 48
    assert report["binary_macs"] == report["macs"]
    assert cli.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "2 of 2 layers" in printed
    assert "48 input channels: make it a multiple of 32" in printed


def test_advice_names_the_cost() -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 9, 9, 40)), sign_weights(rng, 20, 3, 3, 40), same=True)
    x = model.elementwise("RELU", model.elementwise("ADD", x, model.const(np.ones(20))))
    _, report = litebnn.convert_tflite(model.finish(x), return_report=True)
    advice = "\n".join(report.warnings)
    assert "40 input channels: make it a multiple of 32; 38% of its bits are padding" in advice
    assert "20 output channels: make it a multiple of 8; 17% of its work is thrown away" in advice
    assert "same-zero padding: use pad_values=1 (same-one); 40% of its outputs lie at the edge" in advice
    assert "RELU behind a scale or a bias cannot be fused" in advice
    assert "12,960 bytes go through memory once more" in advice


@pytest.mark.usefixtures("library")
def test_verify_names_the_first_layer_that_differs() -> None:
    from litebnn.flatbuffer import write_model
    from litebnn.inspect.verify import verify_conversion

    source = (GOLDEN / "bitpacked_chain.float.tflite").read_bytes()
    converted = litebnn.convert_tflite(source, verify=True)
    assert verify_conversion(source, converted) < 1e-4
    broken = read_model(converted)
    second = [op for op in broken.graphs[0].ops if op.name == "LceBconv2d"][1]
    thresholds = second.input(4)
    assert thresholds.buffer.data is not None
    thresholds.buffer.data = (np.array(thresholds.array) + 20).view(np.uint8)
    sign = read_model(source).graphs[0].ops[-2].output.name
    with pytest.raises(litebnn.ConversionError, match="the first layer that differs is") as caught:
        verify_conversion(source, write_model(broken))
    assert sign in str(caught.value)
    with pytest.raises(ValueError, match="the model takes"):
        verify_conversion(source, converted, np.zeros((1, 3, 3, 3), np.float32))


@pytest.mark.usefixtures("library")
def test_a_sign_that_rounding_turns_over_proves_nothing() -> None:
    from litebnn.inspect.verify import first_divergence, verify_conversion

    def model(bias: float) -> bytes:
        rng = np.random.default_rng(0)
        chain = FloatModel()
        x = chain.conv(chain.sign(chain.input(1, 6, 6, 32)), sign_weights(rng, 32, 3, 3, 32))
        x = chain.elementwise("ADD", x, chain.const(bias))
        return chain.finish(chain.conv(chain.sign(x), sign_weights(rng, 8, 3, 3, 32)))

    x = np.random.default_rng(1).standard_normal((1, 6, 6, 32)).astype(np.float32)
    source, above, far = model(-1e-7), litebnn.convert_tflite(model(1e-7)), litebnn.convert_tflite(model(2.0))
    assert first_divergence(source, above, [x]).by_rounding
    with pytest.raises(litebnn.ConversionError, match="rounding turns a sign over"):
        verify_conversion(source, above, x)
    assert not first_divergence(source, far, [x]).by_rounding
    with pytest.raises(litebnn.ConversionError, match='first layer that differs is "sign_'):
        verify_conversion(source, far, x)
