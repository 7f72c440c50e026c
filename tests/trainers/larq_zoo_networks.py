"""Makes larq-zoo's networks with Keras 2: python -m tests.trainers.larq_zoo_networks FOLDER NAME...

For each network the script writes NAME.h5 and NAME.notop.h5 with seeded random weights and statistics. It also writes
NAME.npz with images, probabilities and features, and NAME.tflite, which litebnn converts. It needs larq-zoo and
TF_USE_LEGACY_KERAS=1.
"""

import sys
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import tensorflow as tf

import litebnn
from bench.zoo.batch_norms import randomise_batch_norms

# larq-zoo imports tensorflow_datasets for training. An empty module replaces it, because the real package asks for a
# protobuf that is older than TensorFlow's.
sys.modules["tensorflow_datasets"] = MagicMock()

import larq_zoo  # noqa: E402

IMAGES = 3


def make(name: str, folder: Path) -> None:
    """Writes the files of larq-zoo's network `name`: weights, a converted model, and images with expected results."""
    build = getattr(larq_zoo.sota, name, None) or getattr(larq_zoo.literature, name)
    tf.keras.utils.set_random_seed(1)
    tf.keras.backend.clear_session()
    rng = np.random.default_rng(1)
    model = build(weights=None, input_shape=(224, 224, 3))
    randomise_batch_norms(model, rng)
    features = build(weights=None, input_shape=(224, 224, 3), include_top=False)
    for own, full in zip(
        (layer for layer in features.layers if layer.weights),
        (layer for layer in model.layers if layer.weights),
        strict=False,
    ):
        own.set_weights(full.get_weights())
    images = rng.standard_normal((IMAGES, 224, 224, 3)).astype(np.float32)
    np.savez(
        folder / f"{name}.npz",
        images=images,
        probabilities=model(images, training=False).numpy(),
        features=features(images, training=False).numpy(),
    )
    model.save_weights(folder / f"{name}.h5")
    features.save_weights(folder / f"{name}.notop.h5")
    (folder / f"{name}.tflite").write_bytes(litebnn.convert_keras_model(model))


if __name__ == "__main__":
    for each in sys.argv[2:]:
        make(each, Path(sys.argv[1]))
