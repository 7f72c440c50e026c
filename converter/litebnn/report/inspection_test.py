import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.report import tables
from litebnn.report.inspection import inspect_model
from litebnn.report.macs import Macs
from tests.support.float_models import FloatModel, sign_weights

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"


def residual_network() -> bytes:
    """A network of two binary layers, a residual sum, and a float layer. The first binary layer writes bits."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.input(1, 6, 6, 64)
    bits = model.sign(model.conv(model.sign(x), sign_weights(rng, 32, 1, 1, 64)))
    y = model.conv(bits, sign_weights(rng, 64, 1, 1, 32))
    total = model.elementwise("ADD", y, x)
    return litebnn.convert_tflite(model.finish(model.conv(total, rng.standard_normal((8, 1, 1, 64)))))


@pytest.mark.usefixtures("library")
def test_rows_say_what_an_op_is() -> None:
    inspection = inspect_model(residual_network())
    assert [row.partition for row in inspection.ops] == [0, 0, 0, 0, None]
    assert "the delegate runs 4 of 5 ops, in 1 partition" in tables.notes(inspection)
    assert [row.left for row in inspection.ops][-1] in tables.notes(inspection)[-1]
    pack, first, second, addition, last = inspection.ops
    assert [row.index for row in inspection.ops] == [0, 1, 2, 3, 4]
    assert (pack.op, pack.output, pack.output_shape) == ("LceQuantize", "bits", (1, 6, 6, 64))
    assert (first.precision, first.output, first.fused) == ("binary", "bits", ("thresholds",))
    assert (first.filter_shape, first.output_shape) == ((1, 1, 64), (1, 6, 6, 32))
    assert (second.output, second.fused_into, addition.fused_into) == ("float", None, second.index)
    assert "ADD" in second.fused
    assert (last.precision, last.macs.float, last.macs.binary) == ("float", 36 * 64 * 8, 0)
    assert first.macs == Macs(36 * 32 * 64, 0, 0)
    assert first.inputs == pack.outputs
    assert inspection.tensors[first.outputs[0]].type == "bits"
    assert inspection.tensors[last.constants[0]].constant


def test_without_the_library_what_the_delegate_runs_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITEBNN_LIBRARY", "/nowhere")
    inspection = inspect_model(residual_network())
    assert {(row.partition, row.fused_into, row.left) for row in inspection.ops} == {(None, None, "")}
    assert inspection.to_dict()["undelegated"] == "LITEBNN_LIBRARY names /nowhere, which is no file"
    assert "what the delegate runs is not known: LITEBNN_LIBRARY names" in "\n".join(tables.notes(inspection))
    assert inspection.ops_without_seconds["host"] == 0


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.tflite")), ids=lambda path: path.stem)
def test_totals_are_the_sums_and_json_holds_all(path: Path) -> None:
    inspection = inspect_model(path, ask_library=False)
    written = json.loads(json.dumps(inspection.to_dict()))
    assert inspection.name == path.name
    assert inspection.file_bytes == path.stat().st_size
    assert len(written["ops"]) == len(inspection.ops) > 0
    assert written["totals"]["macs"]["binary"] == sum(row["macs"]["binary"] for row in written["ops"])
    assert 0 < inspection.weight_bytes <= inspection.file_bytes
    edges = {index for row in inspection.ops for index in (*row.inputs, *row.constants, *row.outputs)}
    assert edges <= {tensor.index for tensor in inspection.tensors}


def test_ops_without_a_time_are_named_for_each_board() -> None:
    model = FloatModel()
    x = model.op("LOCAL_RESPONSE_NORMALIZATION", [model.input(1, 4, 4, 8)], (1, 4, 4, 8))
    inspection = inspect_model(model.finish(model.max_pool(model.elementwise("RELU", x), 2, 2)))
    missing = "nothing is known of LOCAL_RESPONSE_NORMALIZATION: its time is missing in the sums"
    assert missing in tables.notes(inspection)
    first, *others = inspection.boards
    timed = {first.name: 1.0}
    rows = [replace(row, seconds=timed if row.op == "MAX_POOL_2D" else row.seconds) for row in inspection.ops]
    lines = tables.notes(replace(inspection, ops=tuple(rows)))
    assert missing in lines
    names = ", ".join(board.name for board in others)
    assert f"nothing is known of MAX_POOL_2D on {names}: its time is missing in the sums" in lines


def test_a_sum_that_lacks_ops_says_so() -> None:
    whole = inspect_model(residual_network())
    assert whole.ops_without_seconds["host"] == 0
    column = tables.columns(whole).index("host ms")
    assert not tables.rows(whole)[-1][column].startswith(">")
    lacking = replace(whole, ops=(replace(whole.ops[0], seconds={}), *whole.ops[1:]))
    assert tables.rows(lacking)[0][column] == "?"
    assert tables.rows(lacking)[-1][column] == f"> {lacking.seconds['host'] * 1e3:.3f}"
    assert lacking.to_dict()["totals"]["ops_without_seconds"]["host"] == 1


def test_a_constant_before_the_data_is_not_taken_for_it() -> None:
    model = FloatModel()
    inputs = [model.const(3, np.int32), model.input(1, 4, 4, 8)]
    x = model.op("SPLIT", inputs, (1, 4, 4, 8), table="SplitOptions", num_splits=1)
    rows = inspect_model(model.finish(model.elementwise("SUB", model.const(1), x))).ops
    assert [row.op for row in rows] == ["SPLIT", "SUB"]
    assert all((row.precision, row.input_shape) == ("float", (1, 4, 4, 8)) for row in rows)


def test_what_is_no_model_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(b"hello" * 100)
    with pytest.raises(litebnn.ConversionError, match="not a .tflite file"):
        inspect_model(path)
    with pytest.raises(FileNotFoundError):
        inspect_model(tmp_path / "none.tflite")
