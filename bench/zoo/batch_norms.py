"""Sets random statistics in the batch norms of larq-zoo's networks, which are Keras 2 models."""

import numpy as np
import tensorflow as tf

NEGATIVE_SCALES = 0.1  # fraction of the batch norms' scales that are negative


def randomise_batch_norms(model: tf.keras.Model, rng: np.random.Generator) -> None:
    """Gives every batch norm plausible statistics of its input, and random scales and shifts."""
    norms = [layer for layer in model.submodules if isinstance(layer, tf.keras.layers.BatchNormalization)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    model(rng.standard_normal((2, 224, 224, 3)).astype(np.float32), training=True)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
        variance = norm.moving_variance.numpy() + 1e-3
        norm.moving_mean.assign_add(0.2 * np.sqrt(variance) * rng.standard_normal(variance.shape))
        norm.moving_variance.assign(variance * rng.uniform(0.5, 1.5, variance.shape))
        if norm.scale:
            sign = np.where(rng.random(variance.shape) < NEGATIVE_SCALES, -1.0, 1.0)
            norm.gamma.assign(sign * rng.uniform(0.5, 1.5, variance.shape))
        if norm.center:
            norm.beta.assign(0.3 * rng.standard_normal(variance.shape))
