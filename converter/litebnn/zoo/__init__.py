"""Networks with weights pretrained on ImageNet: their table, their files, and the images that they take.

This package imports no framework. `litebnn.keras.zoo` and `litebnn.torch.zoo` build the networks.
"""
