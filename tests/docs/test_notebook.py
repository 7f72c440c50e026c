"""Tests that the notebook runs from its first cell to its last, and is stored without outputs."""

from pathlib import Path
from typing import Any

import pytest

from tests.needs import imported, need
from tests.support.documents import links, read
from toolchains.targets import ROOT

NOTEBOOK = "examples/quickstart.ipynb"


def load() -> Any:
    nbformat = imported("nbformat", "notebook")
    notebook = nbformat.reads(read(NOTEBOOK), as_version=4)
    nbformat.validate(notebook)
    return notebook


def printed(notebook: Any) -> str:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return "".join(output.get("text", "") for output in outputs)


@pytest.mark.deep
@pytest.mark.usefixtures("library")
def test_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = imported("nbclient", "notebook")
    need("keras")
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    notebook = load()
    resources = {"metadata": {"path": str(ROOT / "examples")}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    text = printed(notebook)
    accuracy, again = (float(line.partition("%")[0]) for line in text.splitlines() if "of the test digits" in line)
    assert accuracy > 80
    assert abs(accuracy - again) < 1
    assert "binary: " in text


def test_it_is_kept_without_outputs() -> None:
    code = [cell for cell in load().cells if cell.cell_type == "code"]
    assert len(code) > 4
    assert [cell for cell in code if cell.outputs or cell.execution_count is not None] == []


def test_its_links_lead_somewhere() -> None:
    found = [file for cell in load().cells if cell.cell_type == "markdown" for file, _ in links(cell.source)]
    assert len(found) > 1
    assert [file for file in found if not Path(ROOT, "examples", file).is_file()] == []
