import numpy as np
import pytest

from litebnn.flatbuffer import read_model
from litebnn.graph import OpCode
from litebnn.rules.build.notes import Notes
from litebnn.rules.phases import rules_of
from litebnn.rules.thresholds.lower_thresholds import lower_thresholds
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, run_pass, sign_weights

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("level", [0.0, 0.25, -1.5])
@pytest.mark.parametrize("form", ["where_ge", "where_gt", "where_lt", "where_le"])
def test_a_threshold_becomes_one_difference(form: str, level: float) -> None:
    model = FloatModel()
    source = model.finish(model.sign(model.input(1, 4, 4, 32), form, level))
    result = rewritten(source, recognize_signs, lower_thresholds, *rules_of("tidy"))
    is_plain = form == "where_ge" and level == 0.0
    assert op_names(result) == ["LceQuantize", "LceDequantize"] if is_plain else ["SUB", "LceQuantize", "LceDequantize"]
    assert_same_values(source, result)


def test_a_falling_sign_is_negated_in_the_filters_that_read_it() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    source = model.finish(model.conv(model.sign(x, "where_lt", 0.5), sign_weights(RNG, 8, 3, 3, 32)))
    result = rewritten(source, recognize_signs, *rules_of("binarize"), lower_thresholds, *rules_of("tidy"))
    [difference] = [op for op in result.graphs[0].ops if op.name == "SUB"]
    assert difference.input(1).array == np.float32(0.5)
    assert_same_values(source, result)


def test_what_a_file_calls_so_is_left_alone() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    own = model.op("CUSTOM", [x], x.dims)
    model.graph.ops[-1].code = OpCode("CUSTOM", "THRESHOLD")
    built = read_model(model.finish(own))
    before = op_names(built)
    for one in (lower_thresholds, *rules_of("fuse")):
        one(built.graphs[0], Notes(built))
    assert op_names(built) == before == ["THRESHOLD"]
    assert not run_pass(lower_thresholds, built)[0]
