"""A plugin of pytest, `-p mutants.recording`, that records which lines each test executes and its processor time.

Writes JSON to $LITEBNN_RECORDING: for each file below $LITEBNN_RECORDED and each of its lines the tests ("" for an
import), and the seconds of each test.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

from coverage import Coverage

_SECONDS: dict[str, float] = {}
_COVERAGE = Coverage(data_file=None, source=os.environ["LITEBNN_RECORDED"].split(os.pathsep))
_COVERAGE.start()


def pytest_runtest_protocol(item: Any) -> None:
    _COVERAGE.switch_context(item.nodeid)
    _SECONDS[item.nodeid] = -time.process_time()


def pytest_runtest_logfinish(nodeid: str) -> None:
    _SECONDS[nodeid] += time.process_time()
    _COVERAGE.switch_context("")


def pytest_sessionfinish() -> None:
    _COVERAGE.stop()
    data = _COVERAGE.get_data()
    lines = {str(Path(file).relative_to(Path.cwd())): data.contexts_by_lineno(file) for file in data.measured_files()}
    Path(os.environ["LITEBNN_RECORDING"]).write_text(json.dumps([lines, _SECONDS]), encoding="utf-8")
