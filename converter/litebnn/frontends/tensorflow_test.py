import pytest

from litebnn.errors import ConversionError
from litebnn.frontends.tensorflow import trace
from tests.needs import imported


def failing(message: str):
    def call(x):
        raise RuntimeError(message)

    return call


def test_a_call_that_fails_is_one_line_that_says_why() -> None:
    tf = imported("tensorflow", "keras")
    spec = tf.TensorSpec((1, 4), tf.float32)

    def named(x):
        with tf.name_scope("my convolution"):
            return x + 1

    with pytest.raises(ConversionError, match="^TensorFlow cannot trace the model: .*'my convolution' is not a valid"):
        trace(named, [spec])
    keras = "Exception encountered when calling Layer.call().\n\n\x1b[1mno such units\x1b[0m\n\nArguments received: x"
    with pytest.raises(ConversionError, match="^TensorFlow cannot trace the model: no such units$"):
        trace(failing(keras), [spec])
    with pytest.raises(ConversionError, match="^TensorFlow cannot trace the model: .*no reason"):
        trace(failing("no reason"), [spec])
    assert trace(lambda x: x + 1, [spec]).structured_input_signature
