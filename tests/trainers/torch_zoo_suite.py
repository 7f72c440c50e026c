"""The tests of litebnn.torch.zoo, which test_torch.py runs in PyTorch's environment with Keras on torch.

If the variable LITEBNN_WHOLE is set, whole networks are converted. litert-torch exports each in a quarter of a minute.
"""

import doctest
import importlib
import os
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest
import torch

import litebnn
from litebnn.keras import zoo as keras_zoo
from litebnn.torch import binary_weights, zoo
from tests.trainers.zoo_on_backend import in_float64

CLASSES = 10


def randomized(model: keras.Model, seed: int) -> None:
    """Sets all weights and statistics at random. The scale of the weights keeps activations at about the same size."""
    random = np.random.default_rng(seed)
    for variable in model.variables:
        name, shape = variable.path.rpartition("/")[2], variable.shape
        if name == "kernel":
            value = random.normal(size=shape) / np.sqrt(np.prod(shape[:-1]))
        elif name in ("gamma", "moving_variance"):
            value = random.uniform(0.5, 1.5, shape)
        else:
            value = random.normal(size=shape) * 0.1
        variable.assign(value.astype(np.float32))


@pytest.fixture
def double():
    """Makes Keras compute in float64, so that rounding flips no sign."""
    with in_float64():
        yield


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("name", "file", "size", "include_top"),
    [
        ("QuickNet", "all.h5", (64, 96), True),
        ("QuickNetSmall", "some.weights.h5", (67, 65), True),
        ("BiRealNet", "some.weights.h5", (75, 70), True),
        ("BiRealNet", "whole.keras", (64, 64), False),
    ],
)
def test_weights_of_keras_give_what_keras_computes(
    name: str, file: str, size: tuple[int, int], include_top: bool, tmp_path: Path
) -> None:
    model = getattr(keras_zoo, name)(input_shape=(*size, 3), weights=None, num_classes=CLASSES, include_top=include_top)
    randomized(model, seed=len(file))
    path = tmp_path / file
    (model.save_weights if file.endswith(".weights.h5") else model.save)(path)
    images = np.random.default_rng(0).normal(size=(3, *size, 3))
    expected = model.predict(images, verbose=0)

    network = getattr(zoo, name)(CLASSES, include_top=include_top, weights=path).double().eval()
    with torch.no_grad():
        found = network(torch.tensor(images.transpose(0, 3, 1, 2)))
    found = found.softmax(dim=1) if include_top else found.permute(0, 2, 3, 1)
    assert np.ptp(expected) > 0.01
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_names_are_those_of_the_table() -> None:
    from litebnn.zoo.networks import NETWORKS

    assert {name for name in zoo.NETWORKS if name != "reactnet18"} <= {row.command for row in NETWORKS.values()}


def to_convert(name: str) -> torch.nn.Module:
    """The network to convert: a whole network, or a network with only a few of its blocks."""
    torch.manual_seed(0)
    if os.environ.get("LITEBNN_WHOLE"):
        return getattr(zoo, name)(CLASSES)
    if name == "QuickNet":
        return zoo.QuickNet(CLASSES, blocks=(1, 1, 1), channels=(64, 128, 256))
    network = getattr(zoo, name)(include_top=False)
    network.blocks = network.blocks[3:6]
    return network


@pytest.mark.parametrize("name", ["QuickNet", "BiRealNet", "ReActNet18"])
def test_a_network_converts_with_all_its_binary_layers(name: str) -> None:
    network, images = to_convert(name), torch.randn(2, 3, 64, 64)
    network(images)  # gives the batch norms statistics
    network.eval()
    model, report = litebnn.convert_torch_model(network, images[:1], channels_last=True, return_report=True)
    assert sum(layer.binary for layer in report.layers) == len(binary_weights(network)) >= 3
    interpreter = litebnn.Interpreter(model)
    found = np.concatenate([interpreter.predict(image[None].permute(0, 2, 3, 1).numpy()) for image in images])
    expected = network(images).detach()
    np.testing.assert_allclose(found, expected.permute(0, 2, 3, 1) if expected.dim() == 4 else expected, atol=1e-4)


def test_all_parameters_of_a_network_are_trained() -> None:
    for name, kind in zoo.NETWORKS.items():
        network = kind(CLASSES)
        network(torch.randn(2, 3, 64, 64)).square().sum().backward()
        still = [name for name, p in network.named_parameters() if p.requires_grad and not p.grad.abs().sum() > 0]
        assert still == [], name
        fixed = [name for name, p in network.named_parameters() if not p.requires_grad]
        assert len(fixed) == (3 if "quicknet" in name else 0), name


def test_weights_of_pytorch_come_back(tmp_path: Path) -> None:
    network = zoo.ReActNet18(CLASSES)
    torch.save(network.state_dict(), tmp_path / "weights.pt")
    again = zoo.ReActNet18(CLASSES, weights=tmp_path / "weights.pt")
    assert all(
        torch.equal(a, b) for a, b in zip(network.state_dict().values(), again.state_dict().values(), strict=True)
    )


def test_wrong_files_are_named(tmp_path: Path) -> None:
    model = keras_zoo.BiRealNet(input_shape=(64, 64, 3), weights=None, num_classes=CLASSES)
    model.save_weights(tmp_path / "some.weights.h5")
    (tmp_path / "text.h5").write_text("text")
    import h5py

    h5py.File(tmp_path / "empty.h5", "w").close()
    (tmp_path / "cut.weights.h5").write_bytes((tmp_path / "some.weights.h5").read_bytes()[:5000])
    with zipfile.ZipFile(tmp_path / "whole.keras", "w") as archive:
        archive.writestr("model.weights.h5", b"some weights")
    whole = (tmp_path / "whole.keras").read_bytes()
    (tmp_path / "changed.keras").write_bytes(whole.replace(b"some weights", b"none weights"))
    (tmp_path / "cut.keras").write_bytes(whole[: len(whole) // 2])
    torch.save(zoo.QuickNetSmall(CLASSES).state_dict(), tmp_path / "quicknet.pt")
    for network, file, message in (
        (
            zoo.BiRealNet(CLASSES + 1),
            "some.weights.h5",
            r"the layer dense has weights \[\[10, 512\], \[10\]\], expected",
        ),
        (zoo.BiRealNet(CLASSES, include_top=False), "some.weights.h5", "has a layer dense, which BiRealNet lacks"),
        (zoo.QuickNet(CLASSES), "some.weights.h5", "the layer quant_conv2d has weights|too few layers"),
        (zoo.ReActNet18(CLASSES), "some.weights.h5", "ReActNet18 has no counterpart in Keras"),
        (zoo.BiRealNet(CLASSES), "text.h5", "has no weights of BiRealNet"),
        (zoo.BiRealNet(CLASSES), "empty.h5", "empty.h5 holds no weights of a Keras model$"),
        (zoo.BiRealNet(CLASSES), "cut.weights.h5", "cut.weights.h5 is a damaged HDF5 file: "),
        (zoo.BiRealNet(CLASSES), "changed.keras", "changed.keras is a damaged archive: Bad CRC-32"),
        (zoo.BiRealNet(CLASSES), "cut.keras", "cut.keras has no weights of BiRealNet: "),
        (zoo.BiRealNet(CLASSES), "quicknet.pt", "has no weights of BiRealNet"),
    ):
        before = {name: value.clone() for name, value in network.state_dict().items()}
        with pytest.raises(ValueError, match=message) as caught:
            zoo.load_weights(network, tmp_path / file)
        assert str(caught.value).isprintable()
        assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    with pytest.raises(OSError, match="missing.h5"):
        zoo.load_weights(zoo.BiRealNet(CLASSES), tmp_path / "missing.h5")


def test_examples_in_the_docstrings_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = {name: getattr(zoo, name) for name in zoo.__all__}
    for name in ("layers", "quicknet", "resnet", "weights"):
        result = doctest.testmod(
            importlib.import_module(f"litebnn.torch.zoo.{name}"), extraglobs={"torch": torch, **names}
        )
        assert (result.failed, result.attempted > 0) == (0, True), name
