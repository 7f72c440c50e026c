"""Tests that every block of commands and of Python in the documents runs, or says why it cannot.

The examples in the docstrings of litebnn.keras run here too, because they need Keras 3 like some of the documents.
"""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import need
from tests.support.documents import DOCUMENTS, Block, blocks
from tests.trainers.environments import python_path, torch_python, without_keras_choice
from toolchains.targets import ROOT

RUN = {"python", "sh"}
SHOWN = {"c", "cmake", "cpp", "java", "kotlin", "mermaid", "text", "toml", "{eval-rst}"}

# The pattern of an example in a docstring: the indented lines after a line that ends with two colons.
EXAMPLE = re.compile(r"^(?P<indent> *).*::\n\n(?P<text>(?:(?P=indent) {4}.*\n|\n)+)", re.MULTILINE)
# The imports and variables that the examples in litebnn.keras do not define themselves.
KERAS = """
import keras

import litebnn.keras as lq
from litebnn.keras.callbacks import HyperparameterScheduler

bop = lq.optimizers.Bop()
model = keras.Sequential([keras.Input((4,)), lq.layers.QuantDense(2, kernel_quantizer="ste_sign")])
"""


def keras_examples() -> Iterator[Block]:
    """The examples of litebnn.keras as blocks."""
    for path in sorted((ROOT / "converter" / "litebnn" / "keras").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for found in EXAMPLE.finditer(text):
            line = text.count("\n", 0, found.start("text")) + 1
            yield Block(str(path.relative_to(ROOT)), line, "python", textwrap.dedent(found["text"]), "", KERAS)


BLOCKS = [*(block for path in DOCUMENTS for block in blocks(str(path.relative_to(ROOT)))), *keras_examples()]
PYTORCHS = ("docs/torch.md", "docs/training.md")  # those that need PyTorch, which has an environment of its own

# Small versions of the models that the documents mention.
FILES = {
    "float.tflite": "tests/golden/conv_pool_bn_conv.float.tflite",
    "model.tflite": "tests/golden/conv_pool_bn_conv.lce.tflite",
    "model.float.tflite": "tests/golden/conv_pool_bn_conv.float.tflite",
    "small.tflite": "tests/golden/1x1.lce.tflite",
    "large.tflite": "tests/golden/residual.lce.tflite",
    "digits.tflite": "examples/label_image/digits.tflite",
    "digit.bmp": "examples/label_image/digit.bmp",
    "labels.txt": "examples/label_image/labels.txt",
}


def is_run(block: Block) -> bool:
    return block.language in RUN and not block.not_run


def results_of(chosen: list[Block], folder: Path, python: Path | str) -> dict[Block, str]:
    """Runs blocks, and returns the error of each one."""
    for name, source in FILES.items():
        shutil.copy2(ROOT / source, folder / name)
    path = os.pathsep.join([str(Path(python).parent), os.environ["PATH"]])
    done = subprocess.run(
        [str(python), "-m", "tests.docs.run_blocks"],
        input=json.dumps([dataclasses.asdict(block) for block in chosen]),
        cwd=folder,
        env=without_keras_choice(PATH=path, PYTHONPATH=python_path(ROOT)),
        stdout=subprocess.PIPE,
        text=True,
    )
    return dict(zip(chosen, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.fixture(scope="module")
def results(
    library: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[Block, str]:
    need("keras")
    # The blocks of a document build on each other, so a document runs whole or not at all.
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    asked = [item.callspec.params.get("block") for item in items if not item.get_closest_marker("skip")]
    documents = {block.document for block in asked if isinstance(block, Block)} - {*PYTORCHS}
    chosen = [block for block in BLOCKS if is_run(block) and block.document in documents]
    return results_of(chosen, tmp_path_factory.mktemp("documents"), sys.executable)


@pytest.fixture(scope="module")
def pytorchs(library: None, tmp_path_factory: pytest.TempPathFactory) -> dict[Block, str]:
    chosen = [block for block in BLOCKS if is_run(block) and block.document in PYTORCHS]
    return results_of(chosen, tmp_path_factory.mktemp("pytorch"), torch_python())


def test_the_language_of_a_block_says_whether_it_is_run() -> None:
    assert {f"{block.document}:{block.line}" for block in BLOCKS if block.language not in RUN | SHOWN} == set()


def test_only_what_could_run_says_why_it_does_not() -> None:
    marked = [block for block in BLOCKS if block.not_run or block.given]
    assert len([block for block in marked if block.not_run]) > 10
    assert [block for block in marked if block.language not in RUN] == []


@pytest.mark.deep
@pytest.mark.parametrize(
    "block",
    [pytest.param(block, id=f"{block.document}:{block.line}") for block in BLOCKS if block.language in RUN],
)
def test_a_block_runs(block: Block, request: pytest.FixtureRequest) -> None:
    if block.not_run:
        pytest.skip(f"{block.document}: {block.not_run}")
    failure = request.getfixturevalue("pytorchs" if block.document in PYTORCHS else "results")[block]
    assert failure == ""
