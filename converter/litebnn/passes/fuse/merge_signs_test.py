import numpy as np
import pytest

from litebnn.passes.find_signs.recognize_signs import recognize_signs
from litebnn.passes.fuse.merge_signs import merge_signs
from litebnn.passes.tidy.remove_dead_ops import remove_dead_ops
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten


@pytest.mark.usefixtures("library")
def test_two_signs_of_one_tensor_are_packed_and_unpacked_once() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    signs = model.sign(x), model.sign(x, "where_ge")
    source = model.finish(*[model.elementwise("MUL", s, model.const(np.float32(2 + i))) for i, s in enumerate(signs)])
    result = rewritten(source, recognize_signs, remove_dead_ops, merge_signs)
    assert op_names(result) == ["LceQuantize", "LceDequantize", "MUL", "MUL"]
    assert_same_values(source, result)


def test_outputs_of_the_graph_and_signs_of_other_tensors_stay() -> None:
    model = FloatModel()
    x, y = model.input(1, 4, 4, 32), model.input(1, 4, 4, 32)
    source = model.finish(model.sign(x), model.sign(x), model.sign(y))
    names = op_names(rewritten(source, recognize_signs, remove_dead_ops, merge_signs))
    assert sorted(names) == 3 * ["LceDequantize"] + 2 * ["LceQuantize"]
