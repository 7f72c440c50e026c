import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from litebnn import cli
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Op, OpCode, Options, Signature, Tensor
from tests.support import lce_models
from tests.support.commands import refused
from tests.support.float_models import FloatModel

GOLDEN = sorted((Path(__file__).resolve().parents[3] / "tests" / "golden").glob("*.tflite"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_sound_models_pass(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"{path}: nothing unsound was found in 1 subgraphs, ")


def unsound(capsys: pytest.CaptureFixture[str], path: Path, content: bytes) -> str:
    path.write_bytes(content)
    line = refused(capsys, "check", path)
    assert line.startswith(f"litebnn: {path}: ")
    return line


def test_damage_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, sound = tmp_path / "model.tflite", GOLDEN[0].read_bytes()
    assert "truncated" in unsound(capsys, path, sound[:-1000])
    assert 'not a .tflite file: it does not have "TFL3"' in unsound(capsys, path, b"PK\x03\x04" + bytes(100))
    model = FloatModel()
    shape = model.const([3, 8], np.int32)
    assert "op 0 (RESHAPE): " in unsound(
        capsys, path, model.finish(model.op("RESHAPE", [model.input(4, 8), shape], (3, 8)))
    )


def test_ops_of_litebnn_are_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.tflite"
    for damage, reason in (
        (lambda op: setattr(op, "custom_options", b"\x04"), "options are not a FlexBuffer map"),
        (lambda op: op.inputs.clear(), "0 inputs and 1 outputs, expected 2"),
        (lambda op: setattr(op.output, "shape", (1, 2, 3, 4)), "has shape"),
    ):
        model = read_model((GOLDEN[0].parent / "1x1.lce.tflite").read_bytes())
        damage(next(op for op in model.graphs[0].ops if op.name == "LceBconv2d"))
        line = unsound(capsys, path, write_model(model))
        assert "(LceBconv2d): " in line
        assert reason in line


def test_a_file_of_an_outdated_converter_is_named_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, graph = tmp_path / "old.tflite", lce_models.Graph()
    x, y = graph.tensor((1, 8), "float32"), graph.tensor((1, 8), "float32")
    graph.custom("LqceBsign", [x], [y])
    path.write_bytes(graph.build([x], [y]))
    for command, *options in (["check"], ["convert", "-o", str(tmp_path / "new.tflite")], ["benchmark"]):
        line = refused(capsys, command, path, *options)
        assert line.startswith(f"litebnn: {path}: op 0 (LqceBsign): of a converter before Larq Compute Engine 0.4, ")


def growing(state: tuple[int, ...] = (-1, 4), *, is_signature: bool = False) -> bytes:
    """A model with a loop that appends a row to its state in each step. The model's output is the sum of the rows."""
    condition, body, main = FloatModel(), FloatModel(), FloatModel()
    i, _ = condition.input(type="INT32"), condition.input(1, 4, signature=(-1, 4))
    condition.graph.outputs = [condition.elementwise("LESS", i, condition.const(3, np.int32), type="BOOL")]
    i, x = body.input(type="INT32"), body.input(1, 4, signature=(-1, 4))
    following = body.op("ADD", [i, body.const(1, np.int32)], (), type="INT32")
    grown = body.op("CONCATENATION", [x, body.const(np.ones((1, 4)))], state, axis=0, fused_activation_function=0)
    body.graph.outputs = [following, grown]
    steps, last = Tensor("steps", "INT32", ()), Tensor("last", "FLOAT32", (1, 4), shape_signature=(-1, 4))
    options = Options("WhileOptions", cond_subgraph_index=1, body_subgraph_index=2)
    operands = [main.const(0, np.int32), main.input(1, 4)]
    main.graph.insert(Op(OpCode("WHILE"), [*operands], [steps, last], options))
    model = main.model(main.op("SUM", [last, main.const([0], np.int32)], (4,), keep_dims=False))
    model.graphs += [condition.graph, body.graph]
    if is_signature:
        inputs, outputs = ([(each.name, each) for each in part] for part in (body.graph.inputs, body.graph.outputs))
        model.signatures = [*(model.signatures or []), Signature("body", body.graph, inputs, outputs)]
    return write_model(model)


def test_the_state_of_a_loop_may_grow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(growing())
    assert cli.main(["check", str(path)]) == 0
    reason = "has shape [1, 4], and [2, 4] is computed"
    assert reason in unsound(capsys, path, growing((1, 4)))
    assert reason in unsound(capsys, path, growing(is_signature=True))


def test_no_runtime_sees_the_model(tmp_path: Path) -> None:
    code = (
        f"import sys; from litebnn import cli; cli.main(['check', {str(GOLDEN[0])!r}]); print(*sys.modules, sep='\\n')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = run.stdout.splitlines()
    assert "ai_edge_litert.schema_py_generated" in modules
    assert not [name for name in modules if "pywrap" in name or name.endswith(".interpreter")]
