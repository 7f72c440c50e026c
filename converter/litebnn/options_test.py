from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.options import DEFAULTS, OPTIONS, checked
from litebnn.rules.int8.narrow_weights import FORMATS

FUNCTIONS = [getattr(litebnn, name) for name in litebnn.__all__ if name.startswith("convert_")]
# The names and defaults of larq-compute-engine 0.16.
OF_LARQ = {
    "inference_input_type": "float32",
    "inference_output_type": "float32",
    "target": "arm",
    "experimental_default_int8_range": None,
}
FLAGS = [name for name, option in OPTIONS.items() if option.default is False]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_help_spells_out_every_option(function: Any) -> None:
    parameters = inspect.signature(function).parameters.values()
    inputs = [parameter for parameter in parameters if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    keywords = [parameter for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    own, options = keywords[: -len(OPTIONS)], keywords[-len(OPTIONS) :]  # an exporter may take arguments of its own
    assert inputs
    assert [*inputs, *keywords] == [*parameters]
    assert {option.name: option.default for option in options} == DEFAULTS
    assert OF_LARQ.items() <= DEFAULTS.items()
    assert all(parameter.name in inspect.getdoc(function) for parameter in (*inputs, *own))


def test_every_option_is_documented() -> None:
    # Python 3.13 removes the indentation of docstrings itself.
    documented = inspect.getdoc(litebnn.convert_tflite) or ""
    explained = re.findall(r"^ {4}(\w+): ", documented.split("Args:")[1].split("Returns:")[0], re.MULTILINE)
    assert explained == ["model", *OPTIONS]


def _inputs_of(function: Any) -> list[Any]:
    """Values for the positional arguments of a conversion function, which are the arguments that are not options."""
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    return [b""] * kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_unknown_option_is_named(function: Any) -> None:
    with pytest.raises(TypeError, match=r'there is no option "quantize": expected one of inference_input_type, .*'):
        function(*_inputs_of(function), quantize=True)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"inference_input_type": "uint16"}, "inference_input_type is uint16, expected float32, int8 or uint8"),
        ({"inference_output_type": "int16"}, "inference_output_type is int16, expected float32, int8 or uint8"),
        ({"inference_output_type": 3}, "inference_output_type is 3, expected float32, int8 or uint8"),
        ({"target": "xcore"}, 'target is "xcore", expected "arm"'),
        ({"target": ["arm"]}, "target is .*, expected"),
        ({"low_bit_weights": "int8"}, 'low_bit_weights is "int8", expected int4 or int2'),
        ({"dynamic_range": True}, "dynamic_range is given without low_bit_weights: type of the ternary"),
        ({"stem": "int4", "input_range": (0, 1)}, 'stem is "int4", expected int8'),
        ({"stem": "int8"}, r"stem is given without input_range: \(min, max\) of the network\'s images"),
        ({"stem": "int8", "input_range": (1, 0)}, r"input_range is \(1, 0\), expected \(min, max\) with min < max"),
        ({"stem": "int8", "input_range": (0, np.inf)}, r"input_range is .*, expected numbers up to 1e\+15 that differ"),
        ({"stem": "int8", "input_range": (0, 1e-16)}, "input_range is .*, expected numbers up to"),
        ({"input_range": (0, 1)}, "input_range is given without stem: type of the first convolutions"),
        ({"stem": "int8", "input_range": (0, 1), "representative_dataset": []}, "stem and representative_dataset excl"),
        (
            {"stem": "int8", "input_range": (0, 1), "experimental_default_int8_range": (0, 1)},
            "stem and experimental_default_int8_range exclude each other",
        ),
        ({"experimental_default_int8_range": (1, 1)}, "min < max"),
        ({"experimental_default_int8_range": (float("nan"), 1)}, "min < max"),
        ({"experimental_default_int8_range": 3}, "min < max"),
        ({"experimental_default_int8_range": "12"}, "experimental_default_int8_range is 12, expected .* min < max"),
        ({"experimental_default_int8_range": (0, np.inf)}, r"range is \(0, inf\), expected numbers up to 1e\+15"),
        ({"stem": "int8", "input_range": (-1, 10**400)}, r"input_range is \(-1, 10+\.\.\.0+\), expected numbers up to"),
        ({"stem": "int8", "input_range": (-(10**5000), 1)}, "input_range is tuple, expected numbers up to"),
        ({"stem": np.zeros((9, 9))}, r'stem is "array\(.*", expected int8'),
        (
            {"inference_input_type": np.zeros((9, 9))},
            "inference_input_type is array.*, expected float32, int8 or uint8",
        ),
        ({"target": "x\n" * 2000}, r'target is "x x .*\.\.\..* x", expected "arm"'),
        ({"experimental_default_int8_range": (0, 1), "verify": True}, "range and verify exclude each other"),
        ({"experimental_default_int8_range": (0, 1), "representative_dataset": []}, "dataset exclude each other"),
    ],
)
def test_a_value_that_an_option_cannot_have(options: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        checked(options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        *(
            ({name: value}, f"{name} is {type(value).__name__}, expected True or False")
            for name in FLAGS
            for value in (1, "no", None)
        ),
        ({"representative_dataset": 3}, "representative_dataset is int, expected samples, a function"),
        ({"representative_dataset": "x.npy"}, "representative_dataset is str, expected samples, a function"),
        ({"verify": 3}, "verify is int, expected True, False, an array"),
        ({"verify": "x.npy"}, "verify is str, expected"),
        ({"progress": 3}, "progress is int, expected a function"),
        ({"progress": None}, "progress is NoneType, expected a function"),
    ],
)
def test_a_value_of_a_type_that_an_option_cannot_have(options: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        checked(options)


def test_values_of_every_type_that_an_option_can_have() -> None:
    array = np.zeros((1, 4), np.float32)
    samples: list[Any] = [[array], {"x": array}, array, iter([array]), litebnn.DataSet("folder")]
    for value in (*samples, lambda: iter([array]), None):
        assert checked({"representative_dataset": value})["representative_dataset"] is value
    for value in (*samples, True, False, None):
        assert checked({"verify": value})["verify"] is value
    for name in FLAGS:
        given: Any = {name: np.True_, "low_bit_weights": "int4"}
        assert dict(checked(given))[name] is True


def test_what_is_not_given_is_the_default() -> None:
    options = checked({"experimental_default_int8_range": [-1, 2]})  # type: ignore[typeddict-item]
    assert options["experimental_default_int8_range"] == (-1.0, 2.0)
    assert options == DEFAULTS | {"experimental_default_int8_range": (-1.0, 2.0)}


def test_the_narrow_types_are_those_that_the_pass_writes() -> None:
    arguments = OPTIONS["low_bit_weights"].kind.arguments or {}
    assert {name.upper() for name in arguments["choices"]} == set(FORMATS)
