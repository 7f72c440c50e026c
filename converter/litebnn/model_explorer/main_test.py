"""Tests the adapter in the real Model Explorer, if that is installed. Model Explorer takes hundreds of megabytes."""

import sys
from pathlib import Path
from typing import Any

import pytest

import litebnn
from litebnn.flatbuffer import read_model
from tests.convert.test_subgraphs import loop
from tests.needs import imported

extensions = imported("model_explorer.extension_manager", "model-explorer")
TESTS = Path(__file__).resolve().parents[3] / "tests"
MODELS = sorted([*(TESTS / "golden").glob("*.tflite"), *(TESTS / "golden_trainers").glob("*.tflite")])


@pytest.fixture(scope="module")
def manager() -> Any:
    found = extensions.ExtensionManager(["litebnn.model_explorer"])
    found.load_extensions()
    return found


def converted(manager: Any, path: Path, **settings: int) -> list[dict]:
    command = {"extensionId": "litebnn", "cmdId": "convert", "modelPath": str(path), "deleteAfterConversion": False}
    [collection] = manager.run_cmd({**command, "settings": settings})["graphCollections"]
    return collection["graphs"]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_nodes_are_named_by_the_ops_places(manager: Any, path: Path) -> None:
    [graph] = converted(manager, path)
    nodes = {node["id"]: node for node in graph["nodes"]}
    for place, op in enumerate(read_model(path.read_bytes()).graphs[0].ops):
        outputs = [
            each["value"]
            for output in nodes[str(place)]["outputsMetadata"]
            for each in output["attrs"]
            if each["key"] == "tensor_name"
        ]
        assert outputs == [tensor.name for tensor in op.outputs]


def test_signs_are_shown_in_every_graph(manager: Any, tmp_path: Path) -> None:
    path = tmp_path / "loop.tflite"
    path.write_bytes(litebnn.convert_tflite(loop()))
    graphs = converted(manager, path, const_element_count_limit=5)
    values = [each["value"] for graph in graphs for node in graph["nodes"] for each in node["attrs"]]
    assert len(graphs) == 3
    assert any(str(value).startswith(("[[[[+1, ", "[[[[-1, ")) for value in values)
    assert "litebnn.model_explorer.main" in sys.modules
