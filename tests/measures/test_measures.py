"""Tests that each rule of the converter lowers the measure that it names, whenever it changes a graph. Repeating the
rules until none changes anything therefore ends."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import litebnn
from litebnn.rules import phases as rules
from litebnn.rules.build.notes import Request, Rule
from tests.convert.random_graphs import Case, graphs
from tests.convert.random_quantized_graphs import int8_graphs, int16_graphs, trained_graphs
from tests.convert.test_random_graphs import EXAMPLES
from tests.measures.measures import MEASURES, measured

FILES = [
    *sorted(Path(__file__).parents[1].glob("golden/*.float.tflite")),
    *sorted(Path(__file__).parents[1].glob("golden_trainers/*.tflite")),
]
INT8 = {"experimental_default_int8_range": (-3.0, 3.0)}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "for Larq": {"larq_compatible": True},
    "low-bit weights": {"low_bit_weights": "int2"},
    "no zeros": {"assume_nonzero": True},
    "int8": {**INT8, "inference_input_type": "int8", "inference_output_type": "int8"},
    "int8 for Larq": {**INT8, "larq_compatible": True},
}
KINDS = {"float": graphs(), "int8": int8_graphs(), "int16": int16_graphs(), "trained": trained_graphs()}


@pytest.fixture(autouse=True)
def measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wraps all rules of the converter. A wrapped rule fails if it changes a graph without lowering the measure that
    the rule names, such as a number of ops.
    """

    def rules_of(phase: str, request: Request) -> list[Rule]:
        return [measured(rule) for rule in found(phase, request)]

    found: Callable[[str, Request], list[Rule]] = rules.rules_of
    monkeypatch.setattr(rules, "rules_of", rules_of)
    warnings.simplefilter("ignore")


def test_every_rule_names_a_measure_and_every_measure_has_a_rule() -> None:
    every = {vars(rule)["lowers"] for phase in rules.PHASES for rule in rules.rules_of(phase, _EVERYTHING)}
    assert every == set(MEASURES)


class _Everything(Request):
    """A conversion request in which every option is true, so that no rule is left out."""

    def __getattribute__(self, name: str) -> Any:
        return True


_EVERYTHING = _Everything()


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.deep if OPTIONS[each] else ()) for each in OPTIONS]
)
def test_files_of_trainers(name: str) -> None:
    for path in FILES:
        with contextlib.suppress(litebnn.ConversionError):  # the option does not suit each file
            litebnn.convert_tflite(path, **OPTIONS[name])


@pytest.mark.parametrize("kind", KINDS)
def test_random_graphs(kind: str, are_deep: bool) -> None:
    @settings(max_examples=40 if are_deep else 6, derandomize=True, **EXAMPLES)
    @given(KINDS[kind])
    def check(case: Case) -> None:
        litebnn.convert_tflite(case.source, **case.options)

    check()
