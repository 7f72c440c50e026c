import pytest

from litebnn.analysis.quantization import parameters
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from litebnn.rules.int8.read_levels import read_levels
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten


def sign_of_levels(type: str = "INT8", between: str = "") -> bytes:
    model = FloatModel()
    levels = model.input(1, 4, 4, 32, type=type)
    levels.quantization = parameters(0.5, 3)
    x = model.op("DEQUANTIZE", [levels], levels.dims, version=2)
    return model.finish(model.sign(model.elementwise(between, x) if between else x))


def test_the_levels_are_packed_themselves() -> None:
    source = sign_of_levels()
    result = rewritten(source, recognize_signs, read_levels, remove_dead_ops)
    assert op_names(result) == ["LceQuantize", "LceDequantize"]
    assert result.graphs[0].ops[0].input(0).type == "INT8"
    assert_same_values(source, result)


@pytest.mark.parametrize("source", [sign_of_levels("UINT8"), sign_of_levels(between="NEG")])
def test_other_signs_stay(source: bytes) -> None:
    result = rewritten(source, recognize_signs, read_levels, remove_dead_ops)
    assert next(op for op in result.graphs[0].ops if op.name == "LceQuantize").input(0).type == "FLOAT32"
