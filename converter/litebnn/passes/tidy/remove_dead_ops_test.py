from litebnn.graph import Op, OpCode, Options, Tensor
from litebnn.passes.tidy.remove_dead_ops import remove_dead_ops
from tests.support.float_models import FloatModel, run_pass


def test_ops_that_nobody_reads_go_and_those_with_effects_stay() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    model.elementwise("NEG", model.elementwise("NEG", x))
    handle = model.op("VAR_HANDLE", [], (), type="RESOURCE", table="VarHandleOptions")
    model.graph.insert(Op(OpCode("ASSIGN_VARIABLE"), [handle, x], [], Options("AssignVariableOptions")))
    model.graph.insert(Op(OpCode("CUSTOM", "Log"), [x], [Tensor("log", "FLOAT32", (1,))]))
    changed, names = run_pass(remove_dead_ops, model.model(model.elementwise("ABS", x)))
    assert changed
    assert names == ["VAR_HANDLE", "ASSIGN_VARIABLE", "Log", "ABS"]
