r"""Writes larq-zoo's networks to build/zoo, as float .tflite files and as Larq Compute Engine converts them.

Larq Compute Engine converts each network twice, with float and with int8 layers around the binary ones.

The script runs in a separate virtual environment, because larq-zoo needs an older TensorFlow than litebnn:

    python3.11 -m venv build/peer-venv
    build/peer-venv/bin/pip install "larq-compute-engine==0.16.*" larq larq-zoo "tensorflow-cpu<2.16" "numpy<2" \
        "setuptools<80"
    build/peer-venv/bin/python -m bench.zoo.make_models [NAME ...]

Nothing is downloaded. The weights are random, and the batch norms get randomly changed statistics of one random batch.
"""

import json
import sys
import time

import larq_compute_engine as lce
import larq_zoo as lqz
import numpy as np
import tensorflow as tf

from bench.zoo import ZOO
from bench.zoo.batch_norms import randomise_batch_norms

MODELS = {
    "QuickNetSmall": lqz.sota.QuickNetSmall,
    "QuickNet": lqz.sota.QuickNet,
    "QuickNetLarge": lqz.sota.QuickNetLarge,
    "BinaryAlexNet": lqz.literature.BinaryAlexNet,
    "XNORNet": lqz.literature.XNORNet,
    "DoReFaNet": lqz.literature.DoReFaNet,
    "BiRealNet": lqz.literature.BiRealNet,
    "BinaryResNetE18": lqz.literature.BinaryResNetE18,
    "RealToBinaryNet": lqz.literature.RealToBinaryNet,
    "BinaryDenseNet28": lqz.literature.BinaryDenseNet28,
    "BinaryDenseNet37": lqz.literature.BinaryDenseNet37,
    "BinaryDenseNet37Dilated": lqz.literature.BinaryDenseNet37Dilated,
    "BinaryDenseNet45": lqz.literature.BinaryDenseNet45,
    "MeliusNet22": lqz.literature.MeliusNet22,
}
# The (min, max) of every activation in the int8 files. No calibration was done, so their results are meaningless.
INT8_RANGE = (-6.0, 6.0)


def main() -> None:
    ZOO.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or MODELS:
        tf.keras.utils.set_random_seed(1)
        tf.keras.backend.clear_session()
        model = MODELS[name](weights=None, input_shape=(224, 224, 3))
        randomise_batch_norms(model, np.random.default_rng(1))

        started = time.monotonic()
        function = tf.function(lambda x: model(x, training=False))  # noqa: B023, called in this turn
        concrete = function.get_concrete_function(tf.TensorSpec((1, 224, 224, 3), tf.float32))
        converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], model)
        (ZOO / f"{name}.float.tflite").write_bytes(converter.convert())
        facts = {"tensorflow_seconds": time.monotonic() - started, "lce_error": "its process died"}
        (ZOO / f"{name}.json").write_text(json.dumps(facts, indent=1))
        for form, options in (("lce", {}), ("lce-int8", {"experimental_default_int8_range": INT8_RANGE})):
            started = time.monotonic()
            try:
                (ZOO / f"{name}.{form}.tflite").write_bytes(lce.convert_keras_model(model, **options))
                facts[f"{form}_error"] = None
            except Exception as error:
                facts[f"{form}_error"] = str(error).splitlines()[0][:200] or type(error).__name__
            facts[f"{form}_seconds"] = time.monotonic() - started
            # The other form may end the process.
            (ZOO / f"{name}.json").write_text(json.dumps(facts, indent=1))
        print(name, facts, flush=True)


if __name__ == "__main__":
    main()
