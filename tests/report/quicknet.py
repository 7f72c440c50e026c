"""A network with QuickNet's layers and random weights, as an exporter writes it. It is made without any framework."""

import numpy as np

from litebnn.contract import Padding
from litebnn.graph import Tensor
from tests.support.float_models import FloatModel, sign_weights, window

FILTERS = (64, 128, 256, 512)
RESIDUALS = 4  # in each section


def quicknet(size: int = 224, filters: tuple[int, ...] = FILTERS, classes: int = 1000) -> bytes:
    """The float model as a .tflite file.

    Args:
        size: height and width of the input.
        filters: the number of channels in each section.
        classes: the number of outputs of the last layer.
    """
    network = _QuickNet()
    x = network.conv("stem/conv", network.model.input(1, size, size, 3), 16, taps=3, stride=2, activation="relu")
    x = network.depthwise("stem/depthwise", x)
    for section, channels in enumerate(filters):
        if section:
            x = network.depthwise(f"transition_{section}/blur", network.pool(f"transition_{section}", x))
        x = network.conv(f"transition_{section}/conv" if section else "stem/pointwise", x, channels)
        for residual in range(RESIDUALS):
            x = network.residual(f"section_{section}/residual_{residual}", x)
    return network.head(x, classes)


class _QuickNet:
    """A builder of the network. It names the output tensor of each layer as an exporter does, by network and layer, for
    example "quicknet/stem/conv".
    """

    def __init__(self) -> None:
        self.model, self.rng = FloatModel(), np.random.default_rng(0)

    def _named(self, name: str, tensor: Tensor) -> Tensor:
        tensor.name = f"quicknet/{name}"
        return tensor

    def conv(
        self, name: str, x: Tensor, channels: int, *, taps: int = 1, stride: int = 1, activation: str = "none"
    ) -> Tensor:
        weights = self.rng.standard_normal((channels, taps, taps, x.channels)) / taps**2
        bias = self.rng.standard_normal(channels)
        steps = (stride, stride)
        return self._named(name, self.model.conv(x, weights, bias, same=True, stride=steps, activation=activation))

    def depthwise(self, name: str, x: Tensor) -> Tensor:
        """Appends a 3×3 convolution of each channel, with stride 2."""
        weights, bias = self.rng.standard_normal((1, 3, 3, x.channels)), np.zeros(x.channels)
        shape = (1, *(window(side, 3, 2, 1, True) for side in x.dims[1:3]), x.channels)
        inputs = [x, self.model.const(weights), self.model.const(bias)]
        options = {"padding": Padding.SAME, "stride_h": 2, "stride_w": 2, "depth_multiplier": 1}
        return self._named(name, self.model.op("DEPTHWISE_CONV_2D", inputs, shape, **options))

    def pool(self, name: str, x: Tensor) -> Tensor:
        """Appends a ReLU and a 2×2 max pool."""
        active = self._named(f"{name}/relu", self.model.elementwise("RELU", x))
        return self._named(f"{name}/max_pool", self.model.max_pool(active, 2, 1, same=True))

    def residual(self, name: str, x: Tensor) -> Tensor:
        """Appends a sign, a binary 3×3 convolution with same-one padding, a ReLU, a batch norm, and the residual
        addition."""
        model, channels = self.model, x.channels
        padded = model.pad(self._named(f"{name}/sign", model.sign(x)), [(1, 1), (1, 1)], 1.0)
        y = self._named(f"{name}/conv", model.conv(padded, sign_weights(self.rng, channels, 3, 3, channels)))
        scale = model.const(self.rng.uniform(0.01, 0.02, channels))
        shift = model.const(self.rng.standard_normal(channels))
        y = model.elementwise("ADD", model.elementwise("MUL", model.elementwise("RELU", y), scale), shift)
        return self._named(f"{name}/add", model.elementwise("ADD", self._named(f"{name}/batch_norm", y), x))

    def head(self, x: Tensor, classes: int) -> bytes:
        model, (height, width, channels) = self.model, x.dims[1:]
        window_of_all = {"filter_height": height, "filter_width": width, "padding": Padding.VALID}
        active = self._named("head/relu", model.elementwise("RELU", x))
        pooled = self._named("head/pool", model.op("AVERAGE_POOL_2D", [active], (1, 1, 1, channels), **window_of_all))
        flat = self._named("head/flatten", model.reshape(pooled, 1, channels))
        weights = self.rng.standard_normal((classes, channels)) / channels
        logits = self._named("head/dense", model.dense(flat, weights, np.zeros(classes)))
        return model.finish(self._named("head/softmax", model.op("SOFTMAX", [logits], (1, classes), beta=1.0)))
