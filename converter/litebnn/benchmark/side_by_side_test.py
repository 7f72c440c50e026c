import json
import sys
from pathlib import Path

import pytest

from litebnn.benchmark import LARQ, XNNPACK, Contender, measure
from litebnn.benchmark import side_by_side as sides
from litebnn.benchmark.side_by_side import percentiles_of
from litebnn.convert import convert_tflite
from litebnn.errors import ConversionError
from tests.support.float_models import FloatModel, any_size_model, op_names

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"
RESIDUAL = GOLDEN / "residual.lce.tflite"


@pytest.mark.usefixtures("library")
def test_models_are_measured_side_by_side() -> None:
    steps: list[str] = []
    contenders = [Contender(RESIDUAL, isa="portable"), Contender(GOLDEN / "residual.float.tflite", XNNPACK, threads=2)]
    ours, floats = measure(contenders, runs=3, progress=steps.append)
    assert [ours.contender, floats.contender] == contenders
    for one in (ours, floats):
        assert one.runs >= 3
        assert 0 < one.best <= one.median <= one.percentiles[90] <= one.percentiles[99]
        assert 0 < one.model_memory_bytes < one.peak_memory_bytes
        assert one.load_seconds > 0
        names = op_names(one.contender.model.read_bytes())
        assert [op.ops for op in one.ops] == [(place,) for place in range(len(names))]
        assert [op.names for op in one.ops] == [(name,) for name in names]
        assert all(op.seconds >= 0 for op in one.ops)
        assert 0 < sum(op.seconds for op in one.ops) <= one.median * (1 + 1e-9)
    assert ours.ops[-1].output
    assert steps[:2] == ["loading residual.lce.tflite", "loading residual.float.tflite"]
    json.dumps([ours.to_dict(), floats.to_dict()], allow_nan=False)
    assert ours.to_dict()["seconds"]["p50"] == ours.median


@pytest.mark.usefixtures("library")
def test_a_model_of_images_of_any_size(tmp_path: Path) -> None:
    source, converted = tmp_path / "float.tflite", tmp_path / "binary.tflite"
    source.write_bytes(any_size_model())
    converted.write_bytes(convert_tflite(any_size_model()))
    shapes = ((1, 40, 24, 3),)
    contenders = [Contender(converted, input_shapes=shapes), Contender(source, XNNPACK, input_shapes=shapes)]
    for one in measure(contenders, runs=3):
        assert one.runs >= 3
        assert [op.names for op in one.ops] == [(name,) for name in op_names(one.contender.model.read_bytes())]


def refusal(contender: Contender) -> str:
    with pytest.raises(ConversionError) as caught:
        measure([Contender(RESIDUAL), contender], runs=1)
    return str(caught.value)


@pytest.mark.usefixtures("library")
def test_what_cannot_be_measured_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.tflite"
    broken.write_bytes(b"broken" * 100)
    assert refusal(Contender(broken)).startswith(f"{broken}: not a .tflite file")
    unknown = tmp_path / "unknown.tflite"
    model = FloatModel()
    unknown.write_bytes(model.finish(model.op("ADD", [model.input(1, 4), model.input(1, 5)], (1, 4))))
    assert refusal(Contender(unknown)).startswith(f"{unknown} cannot be run: ")
    assert "expected one of" in refusal(Contender(RESIDUAL, isa="none"))
    assert refusal(Contender(RESIDUAL, python="no-such-python")).startswith("no-such-python cannot be started: ")
    assert f"{RESIDUAL} in {LARQ} cannot be run: " in refusal(Contender(RESIDUAL, LARQ))
    monkeypatch.setattr(sides, "_START", "import os; os.abort()")
    assert refusal(Contender(RESIDUAL)) == f"{RESIDUAL} ends the runtime's process with SIGABRT"


@pytest.mark.parametrize("ending", ["import os; os._exit(3)", "import sys; sys.stdin.readline(); sys.exit(3)"])
def test_a_process_that_ends_is_no_broken_pipe(monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    loaded = "print('{\"load_seconds\": 1}', flush=True)"
    monkeypatch.setattr(sides, "_START", f"{loaded}; {ending}")
    with pytest.raises(ConversionError, match=f"^{RESIDUAL} ends the runtime's process with exit code 3$"):
        measure([Contender(RESIDUAL, python=sys.executable)], runs=1)


def test_percentiles() -> None:
    assert percentiles_of([4.0]) == {50: 4.0, 90: 4.0, 99: 4.0}
    assert percentiles_of([1.0, 2.0]) == {50: 1.5, 90: 1.9, 99: 1.99}
    assert percentiles_of([float(value) for value in range(101)]) == {50: 50.0, 90: 90.0, 99: 99.0}
