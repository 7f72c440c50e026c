"""What the layers of two models have in common: the tensors, and the orders of their axes."""
