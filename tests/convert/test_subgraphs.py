"""Tests binary layers inside the body of a loop, in a model with a signature."""

import numpy as np

import litebnn
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Model, Op, OpCode, Options, Tensor
from tests.support.float_models import FloatModel, sign_weights

STEPS = 3


def loop() -> bytes:
    """A model that repeats x = conv(sign(x)) + x three times."""
    condition = FloatModel()
    i = condition.input(type="INT32")
    condition.input(1, 5, 5, 32)
    less = condition.elementwise("LESS", i, condition.const(STEPS, np.int32), type="BOOL")
    body = FloatModel()
    i, x = body.input(type="INT32"), body.input(1, 5, 5, 32)
    following = body.op("ADD", [i, body.const(1, np.int32)], (), type="INT32")
    weights = sign_weights(np.random.default_rng(0), 32, 3, 3, 32)
    result = body.elementwise("ADD", body.conv(body.sign(x), weights, same=True), x)

    main = FloatModel()
    x = main.input(1, 5, 5, 32)
    options = Options("WhileOptions", cond_subgraph_index=1, body_subgraph_index=2)
    output = Tensor("result", "FLOAT32", x.shape)
    outputs = [Tensor("steps", "INT32", ()), output]
    main.graph.insert(Op(OpCode("WHILE"), [main.const(0, np.int32), x], outputs, options))
    built = main.model(output)
    for inner, results in ((condition, [less]), (body, [following, result])):
        inner.graph.outputs = results
        built.graphs.append(inner.graph)
    return write_model(built)


def test_a_loop_computes_the_same_with_a_binary_body() -> None:
    source = loop()
    converted = litebnn.convert_tflite(source)
    model: Model = read_model(converted)
    assert [[op.name for op in graph.ops] for graph in model.graphs] == [
        ["WHILE"],
        ["LESS"],
        ["ADD", "LceQuantize", "LceBconv2d", "ADD"],
    ]
    assert model.signatures is not None
    assert model.signatures[0].key == "serving_default"
    x = np.random.default_rng(1).integers(-8, 8, (1, 5, 5, 32)).astype(np.float32)
    expected, actual = (litebnn.Interpreter(m).predict(x) for m in (source, converted))
    np.testing.assert_array_equal(actual, expected)
