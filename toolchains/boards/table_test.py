import json
from pathlib import Path

import pytest

from toolchains.boards.table import FOLDER, page
from toolchains.targets import ToolkitError

STATE = {"board": "Raspberry Pi 4 | Model B", "cpu": "Cortex-A72", "kernel": "Linux 6.6", "clock_mhz": "600"}
RESULT = {
    "format": "litebnn board benchmark 1",
    "before": STATE,
    "after": {**STATE, "clock_mhz": "1500", "throttled": "0x0"},
    "num_threads": 1,
    "litebnn_version": "0.1.0",
    "tflite_version": "LiteRT 2.3.0",
    "golden": [{"name": "a", "is_right": True}, {"name": "b", "is_right": False}],
    "network": [{"name": "quicknet", "median_ms": 12.345}],
}


def test_the_page_is_made_of_the_files() -> None:
    assert (FOLDER / "README.md").read_text() == page(sorted(FOLDER.glob("*.json")))


def test_a_board_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "pi.json").write_text(json.dumps(RESULT))
    row = page([tmp_path / "pi.json"]).splitlines()[-1]
    assert row.startswith("| [Raspberry Pi 4 \\| Model B](pi.json) | Cortex-A72 | Linux 6.6 | 600 → 1500 | not told |")
    assert row.endswith("| not told → 0x0 | 1 | 12.35 | 1 of 2 | 0.1.0 | LiteRT 2.3.0 |")


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format": "another"}'])
def test_other_files_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "pi.json").write_text(content)
    with pytest.raises(ToolkitError, match=r"pi\.json was not written by litebnn-board-benchmark"):
        page([tmp_path / "pi.json"])
