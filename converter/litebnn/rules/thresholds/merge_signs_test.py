import numpy as np

from litebnn.analysis.quantization import parameters
from litebnn.contract import LCE_DEQUANTIZE, LCE_QUANTIZE
from litebnn.graph import Tensor
from litebnn.rules.build.ops import custom_op, packed_like
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from litebnn.rules.thresholds.merge_signs import merge_signs
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from litebnn.rules.thresholds.work_on_bits import work_on_bits
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, run_pass


def test_two_signs_of_one_tensor_are_packed_and_unpacked_once() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    signs = model.sign(x), model.sign(x, "where_ge")
    source = model.finish(*[model.elementwise("MUL", s, model.const(np.float32(2 + i))) for i, s in enumerate(signs)])
    result = rewritten(source, recognize_signs, remove_dead_ops, merge_signs)
    assert op_names(result) == ["LceQuantize", "LceDequantize", "MUL", "MUL"]
    assert_same_values(source, result)


def test_two_signs_of_one_tensor_that_are_transposed_alike_are_transposed_once() -> None:
    model = FloatModel()
    x = model.input(1, 32, 4, 4)
    first, second, other = (
        model.transpose(model.sign(x, form), *order)
        for form, order in (("where_ge", (0, 2, 3, 1)), ("sign_add_sign", (0, 2, 3, 1)), ("where_ge", (0, 3, 2, 1)))
    )
    source = model.finish(*(model.elementwise("ADD", y, model.const(i)) for i, y in enumerate((first, second, other))))
    result = rewritten(source, recognize_signs, work_on_bits, remove_dead_ops, merge_signs)
    names = op_names(result)
    assert [names.count(name) for name in ("TRANSPOSE", "LceQuantize", "LceDequantize")] == [2, 2, 2]
    assert_same_values(source, result)


def test_outputs_of_the_graph_and_signs_of_other_tensors_stay() -> None:
    model = FloatModel()
    x, y = model.input(1, 4, 4, 32), model.input(1, 4, 4, 32)
    source = model.finish(model.sign(x), model.sign(x), model.sign(y))
    names = op_names(rewritten(source, recognize_signs, remove_dead_ops, merge_signs))
    assert sorted(names) == 3 * ["LceDequantize"] + 2 * ["LceQuantize"]


def test_what_packs_an_unpacked_sign_is_that_signs_bits() -> None:
    model = FloatModel()
    sign = model.sign(model.input(1, 4, 4, 32))
    bits = packed_like(sign, "bits")
    again = model.op("RELU", [sign], sign.dims)
    model.graph.replace(model.graph.ops[-1], custom_op(LCE_QUANTIZE, [sign], bits))
    model.graph.insert(custom_op(LCE_DEQUANTIZE, [bits], again))
    source = model.finish(model.elementwise("MUL", again, model.const(np.float32(2))))
    result = rewritten(source, recognize_signs, merge_signs, remove_dead_ops)
    assert op_names(result) == ["LceQuantize", "LceDequantize", "MUL"]
    assert_same_values(source, result)


def test_other_ops_may_stand_between_and_signs_on_a_grid_stay() -> None:
    model = FloatModel()
    x = model.elementwise("ABS", model.input(1, 4, 4, 32))
    first, between, second = model.packed(x), model.elementwise("NEG", x), model.packed(x)
    numbers = [model.op("RELU", [bits], x.dims, type="INT32") for bits in (first, second)]
    assert run_pass(merge_signs, model.model(between, *numbers)) == (
        True,
        ["ABS", "LceQuantize", "NEG", "RELU", "RELU"],
    )

    model = FloatModel()
    bits = model.packed(model.input(1, 4, 4, 32))
    levels = [Tensor(f"levels{i}", "INT8", (1, 4, 4, 32), quantization=parameters(0.5 + i)) for i in range(2)]
    for each in levels:
        model.graph.insert(custom_op(LCE_DEQUANTIZE, [bits], each))
    built = model.model(*(model.op("DEQUANTIZE", [each], each.dims) for each in levels))
    assert not run_pass(merge_signs, built)[0]
