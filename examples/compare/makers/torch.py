"""The network in PyTorch. The two int8 forms use torchao, through the quantizer of litert-torch."""

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import litert_torch
import torch
from litert_torch.quantize.pt2e_quantizer import PT2EQuantizer, get_symmetric_quantization_config
from litert_torch.quantize.quant_config import QuantConfig
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from torchao.quantization.pt2e import move_exported_model_to_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

import litebnn
from examples.compare.makers import (
    BATCH,
    CALIBRATION_IMAGES,
    CONVOLUTIONS,
    DENSE,
    EPOCHS_INT8,
    LEARNING_RATE,
    LEARNING_RATE_INT8,
    OnProgress,
)
from examples.mnist.data import SIZE, Digits
from litebnn.torch import BinaryConv2d, BinaryLinear, clip_weights

SHAPE = (1, SIZE, SIZE)  # of one image
FEATURES = 64 * 3 * 3  # of one image after the convolutions
DYNAMIC_BATCH = ({0: torch.export.Dim("batch", min=1, max=1024)},)


def make(digits: Digits, epochs: int, on_progress: OnProgress) -> Iterator[tuple[str, bytes]]:
    warnings.filterwarnings("ignore")
    torch.manual_seed(1)
    network = float_network()
    train(network, digits, epochs, LEARNING_RATE, lambda done: on_progress("float32", done))
    yield "float32", to_tflite(network.eval())

    folded = folded_network(network)
    samples = images_of(digits.train_images[:CALIBRATION_IMAGES])
    exported = torch.export.export(folded, (samples,), dynamic_shapes=DYNAMIC_BATCH).module()
    quantizer = PT2EQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(exported, quantizer)
    prepared(samples)
    yield "int8", to_tflite(convert_pt2e(prepared, fold_quantize=False), quantizer)

    # Replaces the patterns of layers that the quantizer looks for in training. The original patterns require
    # convolutions with batch norms, but the convolutions of this network have none.
    trained = get_symmetric_quantization_config(is_per_channel=True, is_qat=True)
    quantizer = PT2EQuantizer().set_global(dataclasses.replace(trained, is_qat=False))
    exported = torch.export.export(folded.train(), (samples,), dynamic_shapes=DYNAMIC_BATCH).module()
    prepared = prepare_qat_pt2e(exported, quantizer)
    train(prepared, digits, EPOCHS_INT8, LEARNING_RATE_INT8, lambda done: on_progress("int8 trained", done))
    move_exported_model_to_eval(prepared)
    yield "int8 trained", to_tflite(convert_pt2e(prepared, fold_quantize=False), quantizer)

    torch.manual_seed(1)
    network = binary_network()
    train(network, digits, epochs, LEARNING_RATE, lambda done: on_progress("1-bit", done))
    yield "1-bit", bytes(litebnn.convert_torch_model(network.eval(), torch.zeros(1, *SHAPE)))


def float_network() -> nn.Sequential:
    return make_network(
        lambda channels, filters, _: nn.Conv2d(channels, filters, 3, bias=False),
        lambda features, units: nn.Linear(features, units, bias=False),
        pool_first=False,
    )


def binary_network() -> nn.Sequential:
    """The network with binary layers. The first convolution's input stays real, and pooling comes before the batch
    norm."""
    return make_network(
        lambda channels, filters, sign: BinaryConv2d(channels, filters, 3, bias=False, input_quantizer=sign),
        lambda features, units: BinaryLinear(features, units, bias=False),
        pool_first=True,
    )


def make_network(
    convolution: Callable[[int, int, str | None], nn.Module],
    dense: Callable[[int, int], nn.Module],
    *,
    pool_first: bool,
) -> nn.Sequential:
    """A network of layers that the functions `convolution` and `dense` make. The arguments of `convolution` are its
    numbers of channels and the input quantizer, which is None for the layer that reads the image.
    """
    layers: list[nn.Module] = []
    for index, (channels, filters) in enumerate(pairwise((1, *CONVOLUTIONS))):
        pool = [nn.MaxPool2d(2)] if index < 2 else []
        norm = [nn.BatchNorm2d(filters)]
        after_convolution = [*pool, *norm] if pool_first else [*norm, *pool]
        layers += [convolution(channels, filters, "ste_sign" if index else None), *after_convolution]
    layers.append(nn.Flatten())
    for features, units in pairwise((FEATURES, *DENSE)):
        layers += [dense(features, units), nn.BatchNorm1d(units)]
    return without_scales(nn.Sequential(*layers, nn.Softmax(-1)))


def without_scales(network: nn.Sequential) -> nn.Sequential:
    """The network with the scales of its batch norms fixed at 1."""
    for layer in network:
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            layer.weight.requires_grad_(False)
    return network


def folded_network(network: nn.Sequential) -> nn.Sequential:
    """The float network with its batch norms folded into the weights and biases of the layers before them."""
    layers: list[Any] = []
    for layer in network:
        if isinstance(layer, nn.BatchNorm2d):
            layers[-1] = fuse_conv_bn_eval(layers[-1], layer)
        elif isinstance(layer, nn.BatchNorm1d):
            layers[-1] = fuse_linear_bn_eval(layers[-1], layer)
        else:
            layers.append(layer)
    return nn.Sequential(*layers)


def train(
    network: nn.Module, digits: Digits, epochs: int, learning_rate: float, on_epoch: Callable[[float], None]
) -> None:
    """Trains a network whose outputs are probabilities; `on_epoch` gets the share of epochs that are done."""
    images, labels = images_of(digits.train_images), torch.from_numpy(digits.train_labels)
    optimizer = torch.optim.Adam([each for each in network.parameters() if each.requires_grad], learning_rate)
    steps = epochs * -(-len(labels) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for epoch in range(epochs):
        for chosen in torch.randperm(len(labels)).split(BATCH):
            optimizer.zero_grad()
            likelihoods = network(images[chosen])[torch.arange(len(chosen)), labels[chosen]]
            (-likelihoods.clamp_min(1e-7).log().mean()).backward()
            optimizer.step()
            clip_weights(network)
            schedule.step()
        on_epoch((epoch + 1) / epochs)


def images_of(images: Any) -> torch.Tensor:
    """Converts images [n, 28, 28, 1] to PyTorch's layout [n, 1, 28, 28]."""
    return torch.from_numpy(images).movedim(-1, 1)


def to_tflite(network: nn.Module, quantizer: PT2EQuantizer | None = None) -> bytes:
    """Returns the file that litert-torch writes."""
    config = quantizer and QuantConfig(pt2e_quantizer=quantizer)
    return bytes(litert_torch.convert(network, (torch.zeros(1, *SHAPE),), quant_config=config).model_content())
