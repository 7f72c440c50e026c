"""A binarized network for digits in PyTorch, trained with litebnn.torch."""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import litebnn
from examples.mnist.data import SIZE, Digits
from examples.mnist.trainers import OnEpoch, Predict
from litebnn.torch import BinaryConv2d, BinaryLinear, clip_weights

FRAMEWORK = "PyTorch"
BATCH = 100
LEARNING_RATE = 0.01
_EXAMPLE = torch.zeros(1, SIZE, SIZE, 1)


def make_network() -> nn.Module:
    """The network, from images float32 [n, 1, 28, 28] in [-1, 1] to class scores float32 [n, 10]."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(32),
        BinaryConv2d(32, 64, 3, bias=False),
        nn.MaxPool2d(2),
        nn.BatchNorm2d(64),
        BinaryConv2d(64, 64, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.Flatten(),
        BinaryLinear(64 * 4 * 4, 128, bias=False),
        nn.BatchNorm1d(128),
        nn.Linear(128, 10),
    )


def train(digits: Digits, epochs: int, on_epoch: OnEpoch) -> nn.Module:
    torch.manual_seed(1)
    # This memory layout is the fastest for PyTorch's convolutions and pools on a CPU.
    network = make_network().to(memory_format=torch.channels_last)
    images, labels = _channel_first(digits.train_images), torch.tensor(digits.train_labels)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    optimizer.register_step_post_hook(lambda *_: clip_weights(network))
    steps = epochs * -(-len(labels) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for epoch in range(epochs):
        network.train()
        right = 0
        for chosen in torch.randperm(len(labels)).split(BATCH):
            scores = network(_moved(images[chosen]))
            optimizer.zero_grad()
            F.cross_entropy(scores, labels[chosen]).backward()
            optimizer.step()
            schedule.step()
            right += int((scores.argmax(dim=1) == labels[chosen]).sum())
        on_epoch(epoch + 1, right / len(labels))
    return network.eval()


def _moved(images: Tensor) -> Tensor:
    """Changes each image slightly: rotates, shears and shifts it at random, so that few images suffice."""
    count = len(images)
    linear = torch.eye(2) + (torch.rand(count, 2, 2) - 0.5) * 0.3
    offset = (torch.rand(count, 2, 1) - 0.5) * 0.25
    grid = F.affine_grid(torch.cat([linear, offset], dim=2), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


def _channel_first(images: Any) -> Tensor:
    return torch.tensor(images).permute(0, 3, 1, 2).contiguous()


def predict(network: nn.Module) -> Predict:
    def run(images: Any) -> Any:
        with torch.no_grad():
            return network(_channel_first(images)).numpy()

    return run


def save(network: nn.Module, folder: Path) -> Path:
    path = folder / "digits.pt"
    torch.save(network.state_dict(), path)
    return path


def convert_float(network: nn.Module) -> bytes:
    import litert_torch

    channels_last = litert_torch.to_channel_last_io(network, args=[0]).eval()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return bytes(litert_torch.convert(channels_last, (_EXAMPLE,)).model_content())


def convert(network: nn.Module) -> bytes:
    return bytes(litebnn.convert_torch_model(network, _channel_first(_EXAMPLE.numpy()), channels_last=True))
