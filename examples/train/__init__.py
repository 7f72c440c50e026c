"""Trains a binarized network on a folder of images with Keras or PyTorch, and converts it.

`recipe.py` is the order of the work, and the same for both frameworks, as are options, images and checkpoints. An
engine has what differs: the network, one step of training, and the conversion.
"""
