from dataclasses import replace
from pathlib import Path

import pytest

from litebnn.errors import ConversionError
from litebnn.report.inspection import inspect_model
from litebnn.report.node_data import COLOURS, estimated_node_data, node_data

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"


def test_ops_have_their_time_and_the_colour_of_their_precision() -> None:
    inspection = inspect_model(GOLDEN / "int8_qat.lce.tflite")
    found = node_data(inspection, "measured", {row.index: row.index / 8 for row in inspection.ops[1:]})
    assert found["name"].startswith("ms measured (")
    assert list(found["results"]) == [str(row.index) for row in inspection.ops[1:]]
    for row in inspection.ops[1:]:
        result = found["results"][str(row.index)]
        assert result["value"] == row.index / 8
        assert (result.get("bgColor"), result.get("textColor")) == COLOURS.get(row.precision, (None, None))
    assert {row.precision for row in inspection.ops} >= {"binary"}


def test_estimates_are_of_a_board() -> None:
    inspection = inspect_model(GOLDEN / "bias.lce.tflite")
    rows = [replace(row, seconds={"rpi4": row.index / 1e3}) for row in inspection.ops]
    estimated = replace(inspection, ops=(*rows[:-1], replace(rows[-1], seconds={})))
    found = estimated_node_data(estimated, "rpi4")
    assert {key: result["value"] for key, result in found["results"].items()} == {
        str(row.index): float(row.index) for row in rows[:-1]
    }
    with pytest.raises(ConversionError, match="^nothing is estimated for rpi9: expected one of host, rpi3, rpi4, "):
        estimated_node_data(estimated, "rpi9")
