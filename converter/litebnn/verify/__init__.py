"""Finds the tensors that two models have in common, and those whose values differ."""
