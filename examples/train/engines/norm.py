"""Batch normalization by the mean and variance of the images of all processes, on any device.

PyTorch's own SyncBatchNorm works only on GPUs.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


class _Sum(torch.autograd.Function):
    """The sum of a tensor over all processes. Gradients flow through it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Tensor:
        total: Tensor = gradients[0].clone()
        dist.all_reduce(total)
        return total


class _Synchronized(_BatchNorm):
    """A mixin with which a batch norm uses the mean and variance of the images of all processes. A class lists it
    before the batch norm among its base classes. Each process must have the same number of images.

    """

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        axes = [axis for axis in range(x.dim()) if axis != 1]
        shape = [-1 if axis == 1 else 1 for axis in range(x.dim())]
        count = x.numel() // x.shape[1] * dist.get_world_size()
        values = x.to(torch.promote_types(x.dtype, torch.float32))
        mean = _Sum.apply(values.sum(axes)) / count
        centred = values - mean.reshape(shape)
        variance = _Sum.apply(centred.square().sum(axes)) / count
        if self.track_running_stats:
            self.num_batches_tracked += 1
            rate = self.momentum if self.momentum is not None else 1 / float(self.num_batches_tracked)
            self.running_mean.lerp_(mean.detach(), rate)
            self.running_var.lerp_(variance.detach() * (count / max(count - 1, 1)), rate)
        normal = centred * (variance + self.eps).rsqrt().reshape(shape)
        if self.affine:
            normal = normal * self.weight.reshape(shape) + self.bias.reshape(shape)
        return normal.to(x.dtype)


class _Synchronized1d(_Synchronized, nn.BatchNorm1d):
    pass


class _Synchronized2d(_Synchronized, nn.BatchNorm2d):
    pass


class _Synchronized3d(_Synchronized, nn.BatchNorm3d):
    pass


_KINDS = {nn.BatchNorm1d: _Synchronized1d, nn.BatchNorm2d: _Synchronized2d, nn.BatchNorm3d: _Synchronized3d}


def synchronize(network: nn.Module) -> None:
    """Replaces the batch norms of a network by synchronized ones, in place."""
    for module in network.modules():
        module.__class__ = _KINDS.get(type(module), type(module))
