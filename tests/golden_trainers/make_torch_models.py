"""Exports small PyTorch networks, one for each way of writing signs, weights, or the ops around them.

Usage:

    python tests/golden_trainers/make_torch_models.py [NAME ...]

The script needs torch 2.13 and litert-torch 0.10, and no TensorFlow. It writes the files into its own folder, so that
the tests need neither package.
"""

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

FOLDER = Path(__file__).parent
Spelling = Callable[[Any], Any]


class WhereFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.where(x >= 0, torch.ones_like(x), -torch.ones_like(x))

    @staticmethod
    def backward(ctx, grad):
        return grad


class SignFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, grad):
        return grad


def where(x):
    return torch.where(x >= 0, 1.0, -1.0)


def straight_through(forward: Spelling, surrogate: Spelling) -> Spelling:
    """Computes one function, with the gradient of another function."""

    def sign(x):
        smooth = surrogate(x)
        return (forward(x) - smooth).detach() + smooth

    return sign


def clip(x):
    return torch.clamp(x, -1, 1)


def polynomial(x):
    """A function of two parabolas between -1 and 1. Masks select which one applies."""
    below, negative, inside = ((x < level).float() for level in (-1, 0, 1))
    left = -below + (x * x + 2 * x) * (1 - below)
    both = left * negative + (2 * x - x * x) * (1 - negative)
    return both * inside + (1 - inside)


def filled(x):
    signs = torch.ones_like(x)
    return signs.masked_fill(x < 0, -1)


def rounded_hard_sigmoid(x):
    return 2 * torch.round(torch.clamp((x + 1) / 2, 0, 1)) - 1


def clamped_by_where(x):
    """Brevitas' clamp."""
    one = torch.tensor(1.0)
    x = torch.where(x > one, one, x)
    return torch.where(x < -one, -one, x)


def with_zeros_replaced(x):
    return torch.where(x == 0, torch.ones_like(x), x).sign()


ACTIVATIONS: dict[str, Spelling] = {
    "where_function": WhereFunction.apply,
    "where_numbers": where,
    "where_greater": lambda x: torch.where(x > 0, 1.0, -1.0),
    "where_less": lambda x: torch.where(x < 0, -1.0, 1.0),
    "sign_of_sign": lambda x: torch.sign(torch.sign(x) + 0.1),
    "two_steps": lambda x: x.sign().add(0.5).sign(),
    "scaled_boolean": lambda x: (x >= 0).float() * 2 - 1,
    "one_minus_boolean": lambda x: 1 - 2 * (x < 0).float(),
    "two_booleans": lambda x: (x >= 0).float() - (x < 0).float(),
    "heaviside": lambda x: 2 * torch.heaviside(x, torch.ones(())) - 1,
    "filled": filled,
    "zeros_replaced": with_zeros_replaced,
    "zeros_added": lambda x: x.sign() + (x == 0).float(),
    "one_minus_magnitude": lambda x: x.sign() + (1 - x.sign().abs()),
    "detached_clip": straight_through(where, clip),
    "detached_itself": lambda x: x + (where(x) - x).detach(),
    "detached_tanh": straight_through(where, torch.tanh),
    "detached_polynomial": straight_through(where, polynomial),
    "rounded_hard_sigmoid": rounded_hard_sigmoid,
    "rounded_before_clamp": lambda x: torch.clamp(straight_through(torch.round, lambda x: x)(x / 0.37), 0, 1) * 0.37,
    "rounded_pact": lambda x: torch.round(torch.clamp(x, 0, 0.7) / 0.7) * 0.7,
    "behind_where": lambda x: 2 * (clamped_by_where(x) >= 0).float() - 1,
    "rounded_sigmoid": lambda x: 2 * torch.round(torch.sigmoid(x)) - 1,
    "after_hardtanh": lambda x: where(F.hardtanh(x)),
    "after_tanh": lambda x: where(torch.tanh(x)),
    "scaled": lambda x: 0.3 * where(x),
    "clipped": lambda x: clip(where(x)),
    "lone_sign": lambda x: x.sign(),
    "lone_sign_function": SignFunction.apply,
    "lone_sign_detached_clip": straight_through(torch.sign, clip),
    "lone_sign_polynomial": straight_through(torch.sign, polynomial),
    "lone_sign_after_hardtanh": lambda x: F.hardtanh(x).sign(),
    "lone_heaviside": lambda x: 2 * torch.heaviside(x, torch.full((), 0.5)) - 1,
}


def magnitude(weight):
    return weight.abs().mean(tuple(range(1, weight.dim())), keepdim=True)


def normalized(weight):
    """The sign of standardized weights, times a power of two."""
    rows = weight.flatten(1)
    standard = (weight - rows.mean(1).view(-1, 1, 1, 1)) / rows.std(1).view(-1, 1, 1, 1)
    scale = torch.pow(2.0, torch.round(torch.log2(standard.abs().flatten(1).mean(1)))).view(-1, 1, 1, 1)
    return torch.sign(standard) * scale


WEIGHTS: dict[str, Spelling] = {
    "weights_scaled": lambda w: w.sign() * magnitude(w),
    "weights_detached": lambda w: (magnitude(w) * w.sign()).detach() - clip(w).detach() + clip(w),
    "weights_normalized": normalized,
    "weights_centred": lambda w: (w - w.mean(1, keepdim=True)).clamp(-1, 1).sign(),
    "weights_one_scale": lambda w: 0.1 * ((w >= 0).float() - (w < 0).float()),
    "weights_tanh": lambda w: torch.sign(torch.tanh(w)) * magnitude(w),
}


class BinaryConv(nn.Conv2d):
    def __init__(self, *sizes: int, sign: Spelling = where, weights: Spelling = where, **options: Any) -> None:
        super().__init__(*sizes, **{"bias": False, **options})
        self.sign, self.spelling = sign, weights

    def forward(self, x):
        return self._conv_forward(self.sign(x), self.spelling(self.weight), self.bias)


class BinaryLinear(nn.Linear):
    def forward(self, x):
        return F.linear(where(x), where(self.weight), self.bias)


class Shift(nn.Module):
    """Adds a learned number to each channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.amount = nn.Parameter(torch.randn(1, channels, 1, 1) / 4)

    def forward(self, x):
        return x + self.amount


class Scale(Shift):
    def forward(self, x):
        return x * self.amount


class Threshold(Shift):
    def forward(self, x):
        return torch.where(x >= self.amount, 1.0, -1.0)


class Residual(nn.Module):
    def __init__(self, *layers: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.layers, self.shortcut = nn.Sequential(*layers), shortcut or nn.Identity()

    def forward(self, x):
        return self.layers(x) + self.shortcut(x)


class Mean(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def network(**options: Any) -> nn.Module:
    """A network of four layers: a float layer, two binary layers with batch norms and a max pool, and a float layer."""
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)),
        *(BinaryConv(8, 8, 3, padding=1, **options), nn.BatchNorm2d(8), nn.MaxPool2d(2)),
        *(BinaryConv(8, 16, 3, padding=1, **options), nn.BatchNorm2d(16), Mean(), nn.Linear(16, 5)),
    )


def first(channels: int = 8) -> tuple[nn.Module, ...]:
    return nn.Conv2d(3, channels, 3, padding=1), nn.BatchNorm2d(channels)


def rprelu(channels: int) -> tuple[nn.Module, ...]:
    return Shift(channels), nn.PReLU(channels), Shift(channels)


def react_block(channels: int) -> nn.Module:
    return nn.Sequential(
        Residual(Shift(channels), BinaryConv(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)),
        *rprelu(channels),
    )


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    **{name: lambda sign=sign: network(sign=sign) for name, sign in ACTIVATIONS.items()},
    **{name: lambda weights=weights: network(weights=weights) for name, weights in WEIGHTS.items()},
    "thresholds": lambda: nn.Sequential(
        *first(),
        *(Threshold(8), BinaryConv(8, 8, 3, sign=nn.Identity()), nn.BatchNorm2d(8)),
        *(Threshold(8), BinaryConv(8, 8, 3, sign=nn.Identity()), Mean()),
    ),
    "rsign": lambda: nn.Sequential(
        *(*first(), Shift(8), BinaryConv(8, 8, 3), nn.BatchNorm2d(8), Shift(8), BinaryConv(8, 8, 3), Mean())
    ),
    "rprelu": lambda: nn.Sequential(*first(), BinaryConv(8, 8, 3), *rprelu(8), BinaryConv(8, 8, 3), Mean()),
    "react_blocks": lambda: nn.Sequential(*first(), react_block(8), react_block(8), Mean(), nn.Linear(8, 5)),
    "learned_scale": lambda: nn.Sequential(
        *(*first(), BinaryConv(8, 8, 3), Scale(8), nn.BatchNorm2d(8), BinaryConv(8, 8, 3, bias=True), Scale(8), Mean())
    ),
    "strides": lambda: nn.Sequential(
        *first(),
        Residual(
            *(BinaryConv(8, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16)),
            shortcut=nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(8, 16, 1, bias=False), nn.BatchNorm2d(16)),
        ),
        *(BinaryConv(16, 16, 3, padding=1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)),
    ),
    "groups": lambda: nn.Sequential(
        *(nn.Conv2d(3, 64, 1), BinaryConv(64, 64, 1, groups=2), nn.BatchNorm2d(64), BinaryConv(64, 8, 1), Mean())
    ),
    "flatten": lambda: nn.Sequential(
        *(*first(), BinaryConv(8, 32, 3), nn.BatchNorm2d(32), nn.MaxPool2d(2), nn.Flatten()),
        *(BinaryLinear(32 * 9, 8, bias=False), nn.BatchNorm1d(8), BinaryLinear(8, 5)),
    ),
    "flatten_norm": lambda: nn.Sequential(
        *(*first(), BinaryConv(8, 8, 3), nn.MaxPool2d(2), nn.Flatten(), nn.BatchNorm1d(72), nn.Hardtanh()),
        BinaryLinear(72, 5),
    ),
    "linear": lambda: nn.Sequential(
        *(nn.Linear(24, 32), nn.BatchNorm1d(32), BinaryLinear(32, 32), nn.BatchNorm1d(32), BinaryLinear(32, 5))
    ),
    "conv1d": lambda: nn.Sequential(
        *(nn.Conv1d(3, 8, 3), nn.BatchNorm1d(8), BinaryConv1d(8, 8, 3), nn.BatchNorm1d(8), BinaryConv1d(8, 8, 3))
    ),
    "prelu": lambda: nn.Sequential(
        *(*first(), BinaryConv(8, 8, 3), nn.PReLU(), nn.BatchNorm2d(8), BinaryConv(8, 8, 3), Mean())
    ),
    "channels_last": lambda: network(sign=straight_through(where, clip)),
    "batch_of_four": lambda: network(sign=straight_through(where, clip)),
    "concatenation": lambda: nn.Sequential(*first(), Dense(8), Dense(16), Mean(), nn.Linear(32, 5)),
}


class BinaryConv1d(nn.Conv1d):
    def forward(self, x):
        return F.conv1d(where(x), where(self.weight), self.bias, self.stride, self.padding)


class Dense(nn.Module):
    """A layer whose output is concatenated with its input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(BinaryConv(channels, channels, 3, padding=1), nn.BatchNorm2d(channels))

    def forward(self, x):
        return torch.cat([x, self.layers(x)], 1)


SHAPES = {"linear": (1, 24), "conv1d": (1, 3, 12), "channels_last": (1, 8, 8, 3), "batch_of_four": (4, 3, 8, 8)}


def export(name: str) -> None:
    import litert_torch

    torch.manual_seed(len(name))
    module = NETWORKS[name]().eval()
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            layer.running_mean.normal_()
            layer.weight.data.normal_()
            layer.bias.data.normal_()
        if isinstance(layer, nn.PReLU):
            layer.weight.data.uniform_(0.1, 0.5)
    if name == "channels_last":
        module = litert_torch.to_channel_last_io(module, args=[0])
    litert_torch.convert(module, (torch.randn(SHAPES.get(name, (1, 3, 8, 8))),)).export(str(FOLDER / f"{name}.tflite"))


def main() -> None:
    warnings.filterwarnings("ignore")
    for name in sys.argv[1:] or NETWORKS:
        export(name)


if __name__ == "__main__":
    main()
