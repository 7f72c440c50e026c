"""The suite that test_torch.py runs in PyTorch's environment. It writes conversions to $LITEBNN_CONVERTED."""

import copy
import doctest
import importlib
import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from rich.console import Console
from torch import Tensor, nn

import litebnn
import litebnn.torch
from examples.mnist import demo
from examples.mnist.data import bundled_digits
from litebnn.cli import main
from litebnn.flatbuffer import read_model
from litebnn.torch import (
    SIGNS,
    BinaryConv1d,
    BinaryConv2d,
    BinaryLinear,
    Bop,
    MagnitudeAwareSign,
    ResteSign,
    RPReLU,
    RSign,
    SteSign,
    SwishSign,
    binary_weights,
    clip_weights,
    float_parameters,
    sign,
)
from litebnn.torch.signs import quantizer
from tests.trainers.random_networks import SEEDS, random_images, random_network
from tests.trainers.torch_network import torch_network

# A line of this file in an error message.
LINE = rf"\({re.escape(__file__)}, line \d+\)"
POINTS = np.array([-40, -1.6, -1.5, -1.2, -1, -0.7, -0.1, -0.05, 0, 0.02, 0.1, 0.3, 1, 1.4, 1.5, 2, 40], np.float64)


def gradient(function, values: np.ndarray) -> np.ndarray:
    x = torch.tensor(values, requires_grad=True)
    (function(x) * torch.arange(1.0, 1 + x.numel(), dtype=x.dtype).reshape(x.shape)).sum().backward()
    return x.grad.numpy() / np.arange(1, 1 + x.numel()).reshape(values.shape)


def swish_slope(x: np.ndarray, beta: float) -> np.ndarray:
    """The numerical derivative of 2 s(bx) (1 + bx (1 - s(bx))) - 1, where s is the logistic function."""

    def swish(x: np.ndarray) -> np.ndarray:
        s = 1 / (1 + np.exp(-beta * x))
        return 2 * s * (1 + beta * x * (1 - s)) - 1

    return (swish(x + 1e-6) - swish(x - 1e-6)) / 2e-6


def reste_slope(x: np.ndarray, power: float) -> np.ndarray:
    size = np.maximum(np.abs(x), 0.1)
    slope = np.where(np.abs(x) <= 0.1, 0.1 ** (1 / power) / 0.1, size ** ((1 - power) / power) / power)
    return slope * (np.abs(x) <= 1.5)


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (SteSign(), np.abs(POINTS) <= 1),
        (SteSign(0.5), np.abs(POINTS) <= 0.5),
        (SteSign(None), np.ones_like(POINTS)),
        (quantizer("approx_sign"), np.maximum(2 - 2 * np.abs(POINTS), 0)),
        (SwishSign(), swish_slope(POINTS, 5)),
        (SwishSign(2.0), swish_slope(POINTS, 2)),
        (ResteSign(), np.abs(POINTS) <= 1.5),
        (ResteSign(3.0), reste_slope(POINTS, 3)),
    ],
)
def test_gradients_of_the_signs(estimator, expected: np.ndarray) -> None:
    np.testing.assert_allclose(gradient(estimator, POINTS), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(estimator(torch.tensor(POINTS)), np.where(POINTS >= 0, 1, -1))


def test_the_magnitude_aware_sign_scales_each_output() -> None:
    values = np.array([[[0.5, -2.0]], [[0.25, 0.25]]])
    alpha = np.array([1.25, 0.25]).reshape(2, 1, 1)
    np.testing.assert_allclose(MagnitudeAwareSign()(torch.tensor(values)), alpha * np.sign(values))
    np.testing.assert_allclose(gradient(MagnitudeAwareSign(), values), alpha * (np.abs(values) <= 1))
    with pytest.raises(ValueError, match="is for weights"):
        MagnitudeAwareSign()(torch.zeros(3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", SIGNS)
def test_signs_keep_shape_and_dtype(name: str, dtype: torch.dtype) -> None:
    x = torch.randn(4, 3, dtype=dtype, requires_grad=True)
    y = SIGNS[name]()(x)
    y.sum().backward()
    assert (y.shape, y.dtype, x.grad.dtype) == (x.shape, dtype, dtype)


def test_bop_is_the_papers_algorithm() -> None:
    rng = np.random.default_rng(0)
    weights, mean = rng.choice([-1.0, 1.0], (8, 5)), np.zeros((8, 5))
    parameter = nn.Parameter(torch.tensor(weights))
    optimizer = Bop([parameter], threshold=0.05, gamma=0.2)
    flips = 0
    for _ in range(50):
        gradients = rng.normal(size=weights.shape)
        mean = 0.8 * mean + 0.2 * gradients
        flipped = (np.abs(mean) > 0.05) & (np.sign(mean) == weights)
        weights, flips = np.where(flipped, -weights, weights), flips + flipped.sum()
        parameter.grad = torch.tensor(gradients)
        optimizer.step()
        np.testing.assert_array_equal(parameter.detach(), weights)
    assert 0 < flips < 50 * weights.size


def test_bop_makes_signs_of_latent_weights_and_trains_beside_adam() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(BinaryLinear(32, 32, False), nn.BatchNorm1d(32), nn.Linear(32, 2))
    optimizers = [Bop(binary_weights(model), gamma=1e-2), torch.optim.Adam(float_parameters(model), 0.01)]
    x, y = torch.randn(256, 32), (torch.arange(256) % 2)
    x[:, :16] += 2.0 * y[:, None] - 1
    losses = []
    for _ in range(60):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(float(loss))
    assert model[0].weight.unique().tolist() == [-1, 1]
    assert losses[-1] < losses[0] / 4


@pytest.mark.parametrize("pad_values", [0, 1, -1])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", ["same", "valid", 1, (2, 0)])
def test_a_convolution_is_one_of_signs(padding, stride: int, pad_values: int) -> None:
    torch.manual_seed(0)
    layer = BinaryConv2d(4, 6, 3, stride, padding, groups=2, pad_values=pad_values)
    nn.init.normal_(layer.bias)
    x = torch.randn(2, 4, 7, 8)
    sides = {"valid": (0, 0, 0, 0), 1: (1, 1, 1, 1), (2, 0): (0, 0, 2, 2)}
    # The filter has width 3. For stride 2, SAME padding adds one value after an axis of 8, and one value on each side
    # of an axis of 7.
    sides["same"] = (1, 1, 1, 1) if stride == 1 else (0, 1, 1, 1)
    padded = F.pad(sign(x), sides[padding], value=pad_values)
    expected = F.conv2d(padded, sign(layer.weight), layer.bias, stride, groups=2)
    torch.testing.assert_close(layer(x), expected)
    if padding == "same":
        assert layer(x).shape[2:] == (-(-7 // stride), -(-8 // stride))


def test_layers_of_one_axis_and_of_none() -> None:
    torch.manual_seed(0)
    conv, x = BinaryConv1d(4, 6, 3, padding="same", dilation=2, pad_values=1), torch.randn(2, 4, 9)
    torch.testing.assert_close(
        conv(x), F.conv1d(F.pad(sign(x), (2, 2), value=1), sign(conv.weight), conv.bias, dilation=2)
    )
    torch.testing.assert_close(conv(x)[0], conv(x[0]))
    dense, x = BinaryLinear(4, 6, weight_scale=True), torch.randn(2, 3, 4)
    scale = dense.weight.abs().mean(dim=1)
    torch.testing.assert_close(dense(x), F.linear(sign(x), sign(dense.weight)) * scale + dense.bias)
    as_given = BinaryLinear(4, 6, False, input_quantizer=None, weight_quantizer=torch.round)
    torch.testing.assert_close(as_given(x), F.linear(x, as_given.weight.round()))


def test_gradients_flow_through_the_scale() -> None:
    dense = BinaryLinear(4, 1, False, weight_scale=True)
    dense.weight.data = torch.tensor([[3.0, -3.0, 3.0, -3.0]])
    dense(torch.ones(1, 4) * 2).sum().backward()
    # All weights are outside the range in which the estimator has a gradient, so its gradient is 0. The gradient of
    # mean |w| is multiplied by the sum of signs, which is 0, too.
    torch.testing.assert_close(dense.weight.grad, torch.zeros(1, 4))
    dense.weight.grad = None
    dense(torch.tensor([[1.0, -1.0, 1.0, 1.0]])).sum().backward()
    torch.testing.assert_close(dense.weight.grad, torch.tensor([[0.5, -0.5, 0.5, -0.5]]))


def test_rsign_and_rprelu() -> None:
    x = torch.randn(2, 3, 4, 5)
    rsign, rprelu = RSign(3), RPReLU(3)
    for parameter in [*rsign.parameters(), *rprelu.parameters()]:
        nn.init.normal_(parameter)

    def of_channels(values: Tensor) -> Tensor:
        return values.reshape(3, 1, 1)

    torch.testing.assert_close(rsign(x), sign(x + of_channels(rsign.shift)))
    shifted = x - of_channels(rprelu.shift)
    expected = torch.where(shifted >= 0, shifted, shifted * of_channels(rprelu.slope)) + of_channels(rprelu.offset)
    torch.testing.assert_close(rprelu(x), expected)
    (rprelu(x) + rsign(x)).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in [*rsign.parameters(), *rprelu.parameters()])


def test_weights_are_told_apart_and_clipped() -> None:
    model = nn.Sequential(BinaryLinear(4, 4), nn.Linear(4, 4), BinaryLinear(4, 4, False, weight_quantizer=None))
    (binary,) = binary_weights(model)
    assert binary is model[0].weight
    assert len(float_parameters(model)) == 4
    for parameter in model.parameters():
        nn.init.constant_(parameter, -3)
    clip_weights(model, 0.5)
    assert [float(parameter.detach().mean()) for parameter in model.parameters()] == [-0.5, -3, -3, -3, -3]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BinaryConv2d(4, 4, 3, padding="full"), 'padding is "full"'),
        (lambda: BinaryConv2d(4, 4, 3, pad_values=0.5), "pad_values is 0.5"),
        (lambda: BinaryConv2d(4, 4, 3, groups=3), "divisible by groups"),
        (lambda: BinaryLinear(4, 4, input_quantizer="sign"), 'there is no sign "sign": expected one of ste_sign'),
        (lambda: SteSign(0), "clip_value is 0"),
        (lambda: SwishSign(-1), "beta is -1"),
        (lambda: ResteSign(0.5), "power is 0.5"),
        (lambda: Bop([nn.Parameter(torch.ones(1))], gamma=0), "gamma is 0"),
        (lambda: Bop([nn.Parameter(torch.ones(1))], threshold=-1), "threshold is -1"),
        (lambda: clip_weights(nn.Linear(1, 1), 0), "clip_value is 0"),
    ],
)
def test_wrong_arguments_are_named(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_examples_in_the_docstrings_run() -> None:
    names = {name: getattr(litebnn.torch, name) for name in litebnn.torch.__all__}
    attempted = 0
    for name in ("activations", "bop", "layers", "signs", "weights"):
        module = importlib.import_module(f"litebnn.torch.{name}")
        result = doctest.testmod(module, extraglobs={"torch": torch, "nn": nn, **names})
        assert result.failed == 0
        attempted += result.attempted
    assert attempted > 20


def converted(module: nn.Module, *examples: Tensor, **options):
    return litebnn.convert_torch_model(module, list(examples), return_report=True, **options)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_networks_convert(seed: int) -> None:
    network = random_network(seed)
    module, images = torch_network(network), random_images(seed)
    model, report = converted(module, torch.tensor(images[:1].transpose(0, 3, 1, 2).copy()), channels_last=seed < 2)
    with torch.no_grad():
        expected = module(torch.tensor(images.transpose(0, 3, 1, 2).copy())).numpy()
    given = images if seed < 2 else images.transpose(0, 3, 1, 2)
    outputs = np.concatenate([litebnn.Interpreter(model).predict(image[None]) for image in given])
    np.testing.assert_allclose(outputs, expected, atol=1e-4)
    assert [layer.binary for layer in report.layers] == [False, *[True] * (len(network.convs) + 1), False]
    Path(os.environ["LITEBNN_CONVERTED"], f"{seed}.tflite").write_bytes(model)


class Parallel(nn.Module):
    """Modules that compute one output each, of one input each. To export one such module takes less than half of the
    time that exporting its parts takes."""

    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        return [part(x) for part, x in zip(self.parts, inputs, strict=True)]


def check_parts(parts: list[nn.Module], inputs: list[Tensor], atol: float = 1e-4) -> litebnn.ConversionReport:
    """Converts modules together, and compares the outputs with those of the modules. Returns the report."""
    module = Parallel(*parts).eval()
    model, report = converted(module, *inputs)
    outputs = litebnn.Interpreter(model).predict([x.numpy() for x in inputs])
    for number, (output, expected) in enumerate(zip(outputs, module(*inputs), strict=True)):
        np.testing.assert_allclose(output, expected.detach(), atol=atol, err_msg=str(number))
    return report


def test_padded_sequences_convert() -> None:
    torch.manual_seed(0)
    sequences = [
        nn.Sequential(
            nn.Conv1d(3, 32, 3), nn.BatchNorm1d(32),
            BinaryConv1d(32, 64, 3, stride, padding, pad_values=pad_values), nn.MaxPool1d(2), nn.BatchNorm1d(64),
            BinaryConv1d(64, 32, 3, stride, padding, pad_values=pad_values),
        )
        for padding, stride, pad_values in [(1, 1, 1), ("same", 2, 0), (2, 1, 0)]
    ]  # fmt: skip
    report = check_parts(sequences, [torch.randn(2, 3, 30) for _ in sequences])
    assert [layer.output for layer in report.layers if layer.binary] == ["bits", "FLOAT32"] * 3


def test_a_first_layer_is_binary_too() -> None:
    torch.manual_seed(0)
    layers = {
        BinaryConv2d(32, 8, 3, padding=1, pad_values=1): (1, 32, 6, 5),
        BinaryConv2d(32, 8, 3, padding=(1, 0), pad_values=1): (1, 32, 6, 5),
        BinaryConv2d(3, 8, 3, 2, "same"): (2, 3, 6, 5),
        BinaryConv1d(32, 8, 3): (1, 32, 9),
        BinaryConv1d(32, 8, 3, padding=1, pad_values=1): (1, 32, 9),
        BinaryConv1d(3, 8, 3, 2, "same"): (2, 3, 10),
    }
    report = check_parts([*layers], [torch.randn(shape) for shape in layers.values()])
    assert [layer.binary for layer in report.layers] == [True] * len(layers)


class Block(nn.Module):
    """A residual block with a layer whose weights a parametrization computes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = BinaryConv2d(32, 32, 3, padding="same", bias=False)
        self.norm = nn.BatchNorm2d(32)
        self.scaled = nn.utils.parametrizations.weight_norm(nn.Conv2d(32, 32, 1, bias=False))
        self.scaled_norm = nn.BatchNorm2d(32)

    def forward(self, x: Tensor) -> Tensor:
        return self.scaled_norm(self.scaled(x + self.norm(self.conv(x))))


def test_layers_are_named_as_the_module_names_them() -> None:
    module = nn.Sequential(
        *(nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), Block(), Block(), nn.MaxPool2d(2), nn.Flatten()),
        *(BinaryLinear(288, 20, bias=False), nn.BatchNorm1d(20), nn.Linear(20, 3)),
    )
    _, report = converted(module, torch.zeros(1, 3, 8, 8))
    assert [layer.name for layer in report.layers] == ["0", "2.conv", "2.scaled", "3.conv", "3.scaled", "6", "8"]


class Lists(nn.Module):
    """Blocks in containers that are not called themselves, and a layer that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.ModuleList(nn.Sequential(BinaryConv2d(32, 32, 1), nn.BatchNorm2d(32)) for _ in range(2))
        self.right = nn.ModuleDict({"a": nn.Sequential(BinaryConv2d(32, 32, 1), nn.BatchNorm2d(32))})
        self.rest = nn.Sequential(nn.Sequential(BinaryConv2d(32, 32, 1), nn.BatchNorm2d(32)), BinaryConv2d(32, 32, 1))
        self.twice = nn.Conv2d(32, 32, 1)

    def forward(self, x: Tensor) -> Tensor:
        for block in [*self.left, self.right["a"], *self.rest]:
            x = block(x)
        return self.twice(self.twice(x).relu())


def test_layers_in_lists_have_their_names_in_named_modules() -> None:
    module = Lists()
    _, report = converted(module, torch.zeros(1, 32, 8, 8))
    names = ["left.0.0", "left.1.0", "right.a.0", "rest.0.0", "rest.1", "twice"]
    assert {*names} < dict(module.named_modules()).keys()
    assert [layer.name for layer in report.layers] == [*names, "twice_1"]


class Two(nn.Module):
    """A module with two inputs, three named outputs, and parts in training and in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = BinaryConv2d(3, 8, 3, padding="same")
        self.norm = nn.BatchNorm2d(8)

    def forward(self, left: Tensor, right: Tensor) -> dict[str, Tensor]:
        disparity = self.norm(self.conv(left - right))
        return {"z": disparity, "mean": disparity.mean(dim=(2, 3)), "a": left}


def test_inputs_and_outputs_keep_order_and_names_and_the_module_its_mode() -> None:
    torch.manual_seed(0)
    module = Two()
    module.conv.eval()
    left, right = torch.randn(1, 3, 5, 6), torch.randn(1, 3, 5, 6)
    expected = copy.deepcopy(module).eval()(left, right)
    for examples, order in (([left, right], (0, 1, 2, 3)), ({"right": right, "left": left}, (0, 2, 3, 1))):
        model = litebnn.convert_torch_model(module, examples, channels_last=order[1] == 2)
        assert (module.training, module.conv.training, module.norm.training) == (True, False, True)
        interpreter = litebnn.Interpreter(model)
        assert interpreter.output_names == ["z", "mean", "a"]
        assert interpreter.input_names == (["left", "right"] if isinstance(examples, list) else ["right", "left"])
        outputs = interpreter.predict({"left": left.permute(order).numpy(), "right": right.permute(order).numpy()})
        for name, value in expected.items():
            value = value.detach().permute(order) if value.dim() == 4 else value.detach()
            np.testing.assert_allclose(outputs[name], value, atol=1e-4)


def test_an_exported_program_converts_from_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = nn.Sequential(BinaryLinear(32, 32), nn.BatchNorm1d(32), BinaryLinear(32, 8)).eval()
    x = torch.randn(1, 32)
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "model.pt2")
    torch.save(module, tmp_path / "model.pt")
    torch.jit.trace(nn.Linear(32, 8), x).save(tmp_path / "traced.pt")
    with zipfile.ZipFile(tmp_path / "broken.pt2", "w") as archive:
        archive.writestr("broken/archive_format", "pt2")

    for name, wrong, example in (
        ("training.pt2", nn.Sequential(nn.BatchNorm1d(32), BinaryLinear(32, 8)), torch.randn(2, 32)),
        ("dropout.pt2", nn.Sequential(nn.Dropout(), BinaryLinear(32, 8)), x),
        ("double.pt2", nn.Linear(32, 8).double().eval(), x.double()),
    ):
        torch.export.save(torch.export.export(wrong, (example,)), tmp_path / name)

    def convert(name: str) -> int:
        return main(["convert", str(tmp_path / name), "-o", str(tmp_path / "model.tflite")])

    for name, message in (
        ("model.pt", "was written by torch.save"),
        ("traced.pt", "is TorchScript"),
        ("broken.pt2", "cannot be loaded by PyTorch"),
        ("training.pt2", "in training mode: call module.eval()"),
        ("dropout.pt2", "in training mode: call module.eval()"),
        ("double.pt2", '"weight" of the module is float64'),
    ):
        assert convert(name) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line
    assert convert("model.pt2") == 0
    assert "2 of 2 layers" in capsys.readouterr().out
    outputs = litebnn.Interpreter(tmp_path / "model.tflite").predict(x.numpy())
    np.testing.assert_allclose(outputs, module(x).detach(), atol=1e-4)


class Difference(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 32, 3), BinaryConv2d(32, 32, 3, padding=1), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(BinaryLinear(32 * 9, 32), nn.BatchNorm1d(32), nn.Linear(32, 3))

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.classifier(self.features(left - right).flatten(1))


def test_a_dynamic_batch_size_of_a_program_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    module, batch = Difference().eval(), torch.export.Dim("batch", max=64)
    left, right = torch.randn(2, 2, 3, 8, 8)
    shapes = {"left": {0: batch}, "right": {0: batch}}
    program = torch.export.export(module, (left,), {"right": right}, dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "model.pt2")
    assert main(["convert", str(tmp_path / "model.pt2"), "-o", str(tmp_path / "model.tflite")]) == 0
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:5]]
    assert rows == ["features.0", "features.1", "classifier.0", "classifier.2"]
    graph = read_model((tmp_path / "model.tflite").read_bytes()).graphs[0]
    assert [tensor.dims for tensor in graph.inputs + graph.outputs] == [(-1, 3, 8, 8), (-1, 3, 8, 8), (-1, 3)]
    interpreter = litebnn.Interpreter(tmp_path / "model.tflite")
    for size in (1, 5):
        left, right = torch.randn(2, size, 3, 8, 8)
        outputs = interpreter.predict([left.numpy(), right.numpy()])
        np.testing.assert_allclose(outputs, module(left, right).detach(), atol=1e-4)


def test_the_demo_trains_and_converts(tmp_path: Path) -> None:
    digits = bundled_digits()
    trained, float_model, binary = demo.run("torch", digits, 6, Console(file=io.StringIO()), tmp_path)
    images = len(digits.test_labels)
    assert trained.accuracy >= 0.9
    assert float_model.same_class >= 0.998 * images
    assert binary.same_class >= 0.998 * images
    assert binary.bytes < float_model.bytes / 8


class Branch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x


class Bounded(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        bound = x.abs().max().item()
        return x.clamp(-bound, bound)


class Forgetful(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        self.scale.data.mul_(0.5)
        return x * self.scale


class Unknown(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.svd(x)[0]


class Masked(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        y[x < 0] = -1
        return y


class Scaled(nn.Module):
    """A layer with a scale for each channel; its derived classes compute it as the code of papers does."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(32, 8, 3)
        self.scale = nn.Parameter(torch.linspace(-0.5, 1.5, 8).reshape(1, 8, 1, 1))
        self.register_buffer("latent", torch.randn(8, 32, 3, 3))


class Clamped(Scaled):
    def forward(self, x: Tensor) -> Tensor:
        channels = self.scale.view(-1)
        self.scale.data.clamp_(0, 1)
        return self.conv(x) * self.scale + channels.view(1, 8, 1, 1)


class WithoutGradient(Scaled):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.scale.clamp_(0, 1)
            self.conv.weight[:, 0] = 1.0
        return self.conv(x) * self.scale


class Latent(Scaled):
    """Replaces the data of a parameter and of an activation by their signs, and puts the parameter's back."""

    def forward(self, x: Tensor) -> Tensor:
        shifted = x + 0.25
        before = shifted.view(1, -1)
        shifted.data = sign(shifted.data)
        kept = self.conv.weight.data
        self.conv.weight.data = sign(self.latent)
        y = self.conv(shifted)
        self.conv.weight.data = kept
        return y + self.conv(before.view_as(x))


class Constants(Scaled):
    """Reads numbers that do not depend on the input."""

    def forward(self, x: Tensor) -> Tensor:
        weight = self.conv.weight.type_as(x)
        bound = weight.abs().mean().item()
        if bool((self.scale > 9).any()):
            return x
        first, *_ = self.scale.flatten().tolist()
        return nn.functional.conv2d(x.float(), weight.clamp(-bound, bound)) * (float(self.scale.max()) + first)


class Expanded(Scaled):
    """Expands what an addition, a product, a comparison or a selection broadcasts anyway."""

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        y = y + self.scale.expand_as(y)
        y = self.scale.expand(1, 8, 6, 5) * y
        return torch.where(y > self.scale.expand_as(y), y, self.scale.expand_as(y))


class Mixed(Scaled):
    """Mixes the weights of a convolution by the input."""

    def forward(self, x: Tensor) -> Tensor:
        gate = torch.sigmoid(x.mean())
        return nn.functional.conv2d(x, (gate * self.latent + (1 - gate) * self.conv.weight).sign(), padding=1)


class Subtracted(Scaled):
    """Subtracts images from numbers and from parameters, behind a convolution and behind a ReLU."""

    def forward(self, x: Tensor) -> Tensor:
        return 0.8 - torch.relu(self.scale - torch.relu(1 - self.conv(x)))


class Remembering(Scaled):
    """Assigns tensors to attributes."""

    def forward(self, x: Tensor) -> Tensor:
        self.last = self.scale = nn.Parameter(self.scale.abs())
        return self.conv(x) * self.scale


SPELLINGS = [Clamped, WithoutGradient, Latent, Constants, Expanded, Mixed, Subtracted]


def test_what_papers_write_in_forward_converts_and_leaves_the_module_alone() -> None:
    torch.manual_seed(0)
    parts, inputs = [kind() for kind in SPELLINGS], [torch.randn(1, 32, 8, 7) for _ in SPELLINGS]
    module = Parallel(*parts).eval()
    before, given = copy.deepcopy(module.state_dict()), copy.deepcopy(inputs)
    expected = copy.deepcopy(module)(*copy.deepcopy(inputs))
    model, report = converted(module, *inputs)
    for left, right in zip([*before.values(), *given], [*module.state_dict().values(), *inputs], strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=0)
    outputs = litebnn.Interpreter(model).predict([x.numpy() for x in inputs])
    for output, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(output, wanted.detach(), atol=1e-4)
    assert [layer.name for layer in report.layers if layer.binary] == ["parts.2.conv"]


def test_attributes_that_forward_assigns_are_as_before() -> None:
    module = Remembering().eval()
    scale, tensors = module.scale, {*vars(module)}
    converted(module, torch.randn(1, 32, 8, 7))
    assert module.scale is scale
    assert {*vars(module)} == tensors


class Upsampled(nn.Module):
    """A network with a transposed convolution of signs, padded by 1 as in docs/torch.md."""

    def __init__(self, size: int, stride: int, more: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(32, 8, size, size))
        self.stride, self.more = stride, more

    def forward(self, x: Tensor) -> Tensor:
        signs, weights = (torch.where(part >= 0, 1.0, -1.0) for part in (x, self.weight))
        y = nn.functional.conv_transpose2d(signs, weights, stride=self.stride)
        height, width = (size - 1 + self.more for size in y.shape[2:])
        return y[:, :, 1:height, 1:width]

    def expected(self, x: Tensor) -> Tensor:
        signs, weights = (torch.where(part >= 0, 1.0, -1.0) for part in (x, self.weight))
        return nn.functional.conv_transpose2d(
            signs, weights, stride=self.stride, padding=1, output_padding=self.more
        ).detach()


def test_transposed_convolutions_are_padded_by_cutting() -> None:
    parts = [Upsampled(size, stride, more) for size, stride, more in [(3, 2, 0), (3, 2, 1), (5, 3, 1)]]
    inputs = [torch.randn(1, 32, 6, 7) for _ in parts]
    for part, x in zip(parts, inputs, strict=True):
        np.testing.assert_array_equal(part(x).detach(), part.expected(x))
    report = check_parts(parts, inputs, atol=0)
    assert [layer.binary for layer in report.layers] == [True] * len(parts), str(report)


class Number(nn.Module):
    def forward(self, x: Tensor) -> int:
        return 3


class Nothing(nn.Module):
    def forward(self, x: Tensor) -> list[Tensor]:
        return []


@pytest.mark.parametrize(
    ("module", "examples", "message"),
    [
        (
            Branch(),
            torch.ones(2, 2),
            rf"cannot export the module: .*data-dependent.*{LINE}.*torch.where",
        ),
        (Unknown(), torch.ones(2, 2), "cannot export the module: .*svd.*replace that operation"),
        (Masked(), torch.ones(2, 2), "cannot export the module: .*boolean.*line .*torch.where"),
        (
            Bounded(),
            torch.ones(2, 2),
            rf"cannot export the module: forward reads .* by \.item\(\) {LINE}: ",
        ),
        (Forgetful(), torch.ones(2, 2), rf"forward changes tensors of the module {LINE}, and the next"),
        (
            nn.ConvTranspose2d(8, 8, 3, stride=2, padding=1, output_padding=1),
            torch.ones(1, 8, 6, 6),
            "cannot export the module: .*transposed convolution.*cut its output",
        ),
        (Number(), torch.ones(2, 2), "the module gives int, expected tensors"),
        (Nothing(), torch.ones(2, 2), "the module gives nothing, expected tensors"),
        (torch.jit.trace(nn.Linear(2, 2), torch.ones(2, 2)), torch.ones(2, 2), "is TorchScript.*the module it is made"),
        (nn.Linear(3, 3), torch.ones(2, 2), "fails on example_inputs: .*shapes"),
        (nn.Linear(2, 2), [torch.ones(2, 2)] * 2, "fails on example_inputs: .*argument"),
        (nn.Linear(2, 2), [], "example_inputs is empty"),
        (nn.Linear(2, 2), np.ones((2, 2)), "example_inputs holds ndarray, expected tensors"),
        (nn.Linear(2, 2).half(), torch.ones(2, 2), '"weight" of the module is float16'),
        (nn.Linear(2, 2, device="meta"), torch.ones(2, 2), '"weight" of the module is on meta'),
        (sign, torch.ones(2, 2), "expected a torch.nn.Module, got function"),
    ],
)
def test_mistakes_are_one_line(module, examples, message: str) -> None:
    with pytest.raises(litebnn.ConversionError, match=message) as caught:
        litebnn.convert_torch_model(module, examples)
    assert len(str(caught.value).splitlines()) == 1


def test_what_is_exported_imports_no_framework() -> None:
    code = "import sys, litebnn; litebnn.convert_torch_model; print({'torch', 'tensorflow'} & {*sys.modules})"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert printed.strip() == "set()"
