"""Tests the table of networks, also against the source code of larq-zoo."""

import ast
import hashlib
import importlib.util
import json
import re
from pathlib import Path

import pytest

from litebnn.zoo.networks import NETWORKS, RELEASES, find_network, imagenet_classes
from tests.needs import need


@pytest.mark.parametrize("name", ["quicknet", "QuickNet", "quick_net", "QUICK-NET"])
def test_a_name_is_found_however_it_is_written(name: str) -> None:
    assert find_network(name).name == "QuickNet"


def test_an_unknown_name_is_one_line_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match='^the zoo has no network "resnet50", expected one of .*quicknet.*$'):
        find_network("resnet50")


def test_rows_differ() -> None:
    assert len(NETWORKS) == 14
    files = [network.file(include_top) for network in NETWORKS.values() for include_top in (True, False)]
    assert len({file.sha256 for file in files}) == len({file.name for file in files}) == 28
    assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in files)
    assert len({network.model for network in NETWORKS.values()}) == 14


def test_addresses() -> None:
    quicknet, densenet = NETWORKS["QuickNet"], NETWORKS["BinaryDenseNet37Dilated"]
    assert quicknet.address() == f"{RELEASES}/quicknet-v1.0/quicknet_weights.h5"
    assert densenet.address(False) == f"{RELEASES}/binary_densenet-v0.1.1/binary_densenet_37_dilated_weights_notop.h5"


def larq_zoo() -> tuple[list[dict[str, str]], str, dict[str, tuple[str, float, float]]]:
    """Facts from larq-zoo's source: the arguments of its downloads, the address with which they begin, and the
    accuracies by network."""
    need("larq-zoo")
    spec = importlib.util.find_spec("larq_zoo")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent
    downloads, accuracies, root = [], {}, ""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "utils.download_pretrained_model":
                downloads.append({str(each.arg): ast.literal_eval(each.value) for each in node.keywords})
            elif isinstance(node, ast.FunctionDef) and node.name in NETWORKS:
                row = re.search(r"^\s*\| ([\d.]+) % +\| ([\d.]+) % ", ast.get_docstring(node) or "", re.M)
                assert row, node.name
                accuracies[node.name] = path.parent.name, float(row[1]), float(row[2])
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "root_url":
                root = ast.literal_eval(node.value)
    return downloads, root, accuracies


def test_files_and_accuracies_are_those_of_larq_zoo() -> None:
    downloads, root, accuracies = larq_zoo()
    assert root == f"{RELEASES}/"
    expected = {(each["model"], each["version"], each["file"], each["file_hash"]) for each in downloads}
    files = [(network, network.file(top)) for network in NETWORKS.values() for top in (True, False)]
    assert {(network.release, file.version, file.name, file.sha256) for network, file in files} == expected
    assert {name: (each.kind, each.top_1, each.top_5) for name, each in NETWORKS.items()} == accuracies


# The MD5 of imagenet_class_index.json, with which keras.applications.imagenet_utils checks the list that it fetches.
KERAS_CLASS_INDEX = "c2c37ea517e94d9795004a39431a14cb"


def test_classes_are_in_the_order_of_their_synsets() -> None:
    classes = imagenet_classes()
    assert len(classes) == 1000
    assert [each.synset for each in classes] == sorted({each.synset for each in classes})
    assert (classes[0].synset, classes[0].name) == ("n01440764", "tench")
    assert (classes[292].synset, classes[292].name) == ("n02129604", "tiger")
    assert (classes[999].synset, classes[999].name) == ("n15075141", "toilet tissue")


def test_classes_are_keras_own() -> None:
    classes = enumerate(imagenet_classes())
    index = {str(number): [each.synset, each.name.replace(" ", "_")] for number, each in classes}
    assert hashlib.md5(json.dumps(index).encode()).hexdigest() == KERAS_CLASS_INDEX
