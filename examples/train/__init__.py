"""Trains a binarized network on a folder of images with Keras or PyTorch, and converts it.

The module `recipe.py` defines the order of the work. It is the same for both frameworks, as are the options, images and
checkpoints. An engine contains what differs: the network, one training step, and the conversion.
"""
