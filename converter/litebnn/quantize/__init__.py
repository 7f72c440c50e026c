"""Ranges of activations for post-training int8: observed on samples, or computed for a stem."""
