"""The op contract is written down twice, in C++ and in Python: both say the same."""

import re
from dataclasses import fields
from pathlib import Path

from litebnn import contract

HEADER = Path(__file__).resolve().parents[2] / "ops" / "tflite" / "ops" / "contract.h"


def constants() -> dict[str, str]:
    """The constants of contract.h by name; strings without their quotes."""
    found = re.findall(r'^constexpr \w+ (k\w+)(?:\[\])? = "?([^";]+)"?;$', HEADER.read_text(encoding="utf-8"), re.M)
    return dict(found)


def test_op_names() -> None:
    names = {value for value in constants().values() if value.startswith("Lce")}
    assert names == set(contract.CUSTOM_OPS)


def test_option_names() -> None:
    options = {value for value in constants().values() if re.fullmatch("[a-z_]+", value)}
    kinds = (contract.BConv2DOptions, contract.BMaxPool2DOptions)
    assert options == {field.name for kind in kinds for field in fields(kind)}


def test_values() -> None:
    values = {name: int(value) for name, value in constants().items() if re.fullmatch("[0-9]+", value)}
    expected = {f"kPadding{padding.name.title()}": padding.value for padding in contract.Padding}
    expected |= {f"kPadValues{value.name.title()}": value.value for value in contract.PadValues}
    expected |= {
        f"kActivation{activation.name.title().replace('_', '')}": activation.value for activation in contract.Activation
    }
    assert values == expected
