import numpy as np

from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Op, OpCode, Options, Tensor, compact
from litebnn.passes import run_phases
from litebnn.passes.tidy.remove_dead_ops import remove_dead_ops
from litebnn.rewriting.notes import Notes
from tests.support.float_models import FloatModel, op_names, run_pass


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


def test_equal_constants_become_one_and_unused_tensors_go() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    y = model.elementwise("ADD", model.elementwise("MUL", x, model.const(np.ones(4))), model.const(np.ones(4)))
    model.graph.tensors.append(model.const(np.arange(100)))
    built = model.model(y)
    run_phases(built, ["tidy"], Notes(built))
    compact(built)
    again = read_model(write_model(built))
    assert op_names(again) == ["MUL", "ADD"]
    assert len([t for t in again.graphs[0].tensors if t.is_constant]) == 1
    assert len(again.buffers) == 2


def test_constants_on_other_grids_stay_apart() -> None:
    from litebnn.rewriting.int8 import int8_constant

    model = FloatModel()
    x = model.input(1, 4, type="INT8")
    ones = [int8_constant("one", np.full(4, 127 * scale, np.float32), scale) for scale in (0.5, 0.25)]
    built = model.model(*[model.op("ADD", [x, one], (1, 4), type="INT8") for one in ones])
    run_phases(built, ["tidy"], Notes(built))
    compact(built)
    constants = [t for t in built.graphs[0].tensors if t.is_constant]
    assert len(constants) == 2
    assert constants[0].buffer is constants[1].buffer
