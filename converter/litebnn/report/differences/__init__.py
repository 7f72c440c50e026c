"""The tensors that two models have in common, and where their values differ."""
