"""Tests that the inputs and outputs of converted Keras models keep Keras's order and names, in lists and in
dictionaries."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import need
from tests.trainers.environments import without_keras_choice

pytestmark = pytest.mark.usefixtures("library")

ROOT = Path(__file__).parents[2]


def run(*arguments: str | int) -> None:
    need("keras")
    command = [sys.executable, "-m", "tests.support.keras_interfaces", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=without_keras_choice())
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.deep
@pytest.mark.parametrize("version", [2, 3])
def test_random_models_of_several_inputs_and_outputs(version: int) -> None:
    run(version, 0, 12)


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
def test_many_random_models_of_several_inputs_and_outputs(version: int) -> None:
    run(version, 1000, 200)
