import copy
import json
from pathlib import Path

import numpy as np
import pytest

from litebnn.flatbuffer import read_model
from litebnn.model_explorer.signs import nested, show_signs
from litebnn.report.inspection import inspect_model
from litebnn.report.node_data import node_data

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"
# The graphs that ai-edge-model-explorer 0.1.34 makes of three files. They show 16 elements of each constant.
RECORDED = json.loads((GOLDEN / "model_explorer.json").read_text())


def read(name: str) -> bytes:
    return (GOLDEN / f"{name}.tflite").read_bytes()


def shown(name: str, limit: int = 16) -> dict:
    """The nodes of Model Explorer's graph by their ids."""
    [graph] = copy.deepcopy(RECORDED[name])
    show_signs(read_model(read(name)).graphs[0], graph, limit)
    return {node["id"]: node for node in graph["nodes"]}


def attributes(item: dict) -> dict[str, str]:
    return {each["key"]: each["value"] for each in item["attrs"]}


def filter_of(nodes: dict, op: str) -> dict:
    edges = {edge["targetNodeInputId"]: edge["sourceNodeId"] for edge in nodes[op]["incomingEdges"]}
    return nodes[edges["1"]]


@pytest.mark.parametrize("name", RECORDED)
def test_nodes_are_named_by_the_ops_places(name: str) -> None:
    [graph] = RECORDED[name]
    inspection = inspect_model(read(name))
    found = node_data(inspection, "measured", {row.index: 1.0 for row in inspection.ops})["results"]
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert len(found) == len(inspection.ops)
    for row in inspection.ops:
        node = nodes[str(row.index)]
        assert str(row.index) in found
        names = [attributes(output)["tensor_name"] for output in node["outputsMetadata"]]
        assert names == [inspection.tensors[index].name for index in row.outputs]


def test_a_filter_is_shown_as_signs() -> None:
    nodes = shown("grouped.lce", 40)
    shape = attributes(filter_of(nodes, "1")["outputsMetadata"][0])["tensor_shape"]
    value = attributes(filter_of(nodes, "1"))["__value"]
    # At each position of the filter, the signs of 32 input channels fill one word. The 40 signs that the test requests
    # are the 32 signs of the first position, and 8 signs of the second position.
    assert shape == "signs[32,3,3,32]"
    assert value.startswith("[[[[-1, -1, +1, +1, ")
    rows = json.loads(value.replace("+", ""))[0][0]
    assert [len(row) for row in rows] == [32, 8]
    words = read_model(read("grouped.lce")).graphs[0].ops[1].input(1).array
    assert words is not None
    bits = [int(words[0, 0, 0, 0]) >> place & 1 for place in range(32)]
    assert rows[0] == [-1 if bit else 1 for bit in bits]


def test_tensors_of_bits_have_their_real_channels_and_options_their_names() -> None:
    nodes = shown("bmaxpool.lce")
    assert attributes(nodes["1"]["outputsMetadata"][0])["tensor_shape"] == "signs[1,5,6,64]"
    assert attributes(nodes["1"])["padding"] == "SAME"
    options = attributes(nodes["2"])
    assert (options["padding"], options["pad_values"], options["fused_activation_function"]) == (
        "VALID",
        "ZERO",
        "NONE",
    )
    assert attributes(nodes["2"]["outputsMetadata"][0])["tensor_shape"].startswith("float32[")


def test_what_holds_no_signs_stays() -> None:
    before = {node["id"]: node for node in RECORDED["bmaxpool.lce"][0]["nodes"]}
    after = shown("bmaxpool.lce")
    assert {key for key in before if before[key] == after[key]} == {"3", "5", "6", "7"}


def test_as_many_signs_as_asked_for() -> None:
    signs = np.array([[1, -1], [-1, 1]])
    found = [nested(signs, limit) for limit in (-1, 0, 1, 2, 3, 9)]
    assert found == ["[[+1, -1], [-1, +1]]", "[]", "[[+1]]", "[[+1, -1]]", "[[+1, -1], [-1]]", found[0]]
    assert nested(np.zeros((0, 3)), 4) == "[]"
