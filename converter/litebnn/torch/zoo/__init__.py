"""Binarized networks for images, from papers, with weights of Keras or PyTorch.

::

    from litebnn.torch import zoo

    network = zoo.QuickNet(weights="quicknet_weights.h5").eval()

The networks take images float32 [n, 3, height, width], normalized as larq-zoo does, and give logits [n, num_classes].
With `include_top=False` they give the last features [n, channels, height / 32, width / 32].
"""

from litebnn.torch.zoo.layers import FloatConv2d
from litebnn.torch.zoo.quicknet import QuickNet, QuickNetLarge, QuickNetSmall
from litebnn.torch.zoo.resnet import BiRealNet, ReActNet18
from litebnn.torch.zoo.weights import load_keras_weights, load_weights

# The classes of networks, by their names on command lines.
NETWORKS = {
    network.__name__.lower(): network for network in (QuickNetSmall, QuickNet, QuickNetLarge, BiRealNet, ReActNet18)
}

__all__ = [
    "NETWORKS",
    "BiRealNet",
    "FloatConv2d",
    "QuickNet",
    "QuickNetLarge",
    "QuickNetSmall",
    "ReActNet18",
    "load_keras_weights",
    "load_weights",
]
