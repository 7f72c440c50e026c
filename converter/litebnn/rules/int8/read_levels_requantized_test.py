import pytest

from litebnn.analysis.quantization import parameters
from litebnn.graph import Tensor
from litebnn.rules.int8.read_levels import read_levels
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten


def quantized(model: FloatModel, x: Tensor, scale: float) -> Tensor:
    levels = model.op("QUANTIZE", [x], x.dims, type="INT8")
    levels.quantization = parameters(scale, 3)
    return levels


def twice(scale: float, *, output: bool = False) -> bytes:
    """Makes a tensor that is quantized with the scale 0.5, dequantized, and quantized again with `scale`."""
    model = FloatModel()
    back = model.op("DEQUANTIZE", [quantized(model, model.input(1, 4), 0.5)], (1, 4), version=2)
    levels = quantized(model, back, scale)
    return model.finish(levels if output else model.op("DEQUANTIZE", [levels], (1, 4), version=2))


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (twice(0.5), ["QUANTIZE", "DEQUANTIZE", "DEQUANTIZE"]),
        (twice(0.25), ["QUANTIZE", "DEQUANTIZE", "QUANTIZE", "DEQUANTIZE"]),
        (twice(0.5, output=True), ["QUANTIZE", "DEQUANTIZE", "QUANTIZE"]),
    ],
)
def test_the_same_grid_is_none_and_another_is_one(source: bytes, names: list[str]) -> None:
    result = rewritten(source, read_levels)
    graph = result.graphs[0]
    assert op_names(result) == names
    last = graph.ops[-1]
    assert last.input(0).type == "INT8"
    producer = graph.producer(last.input(0))
    assert producer is not None
    assert producer is graph.ops[0] or producer.input(0).type == "INT8"
    assert_same_values(source, result)


def test_a_float_in_between_stays() -> None:
    model = FloatModel()
    back = model.op("DEQUANTIZE", [quantized(model, model.input(1, 4), 0.5)], (1, 4), version=2)
    source = model.finish(quantized(model, model.elementwise("ABS", back), 0.5))
    assert rewritten(source, read_levels).graphs[0].ops[-1].input(0).type == "FLOAT32"
