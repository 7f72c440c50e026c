"""Networks with weights pretrained on ImageNet: the table of them, their files, and the images that they take.

Nothing here imports a framework. `litebnn.keras.zoo` and `litebnn.torch.zoo` build the networks.
"""
