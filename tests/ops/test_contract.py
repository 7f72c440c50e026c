"""The op contract is written down in C++, in Python and in docs/ops.md: all say the same."""

import ctypes
import re
from dataclasses import fields
from pathlib import Path

import pytest

from litebnn import contract
from litebnn.runtime.find import find_library

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "ops" / "tflite" / "ops" / "contract.h"
OPTIONS = {contract.LCE_BCONV_2D: contract.BConv2DOptions, contract.LCE_BMAXPOOL_2D: contract.BMaxPool2DOptions}


def constants() -> dict[str, str]:
    """The constants of contract.h by name; strings without their quotes."""
    found = re.findall(r'^constexpr \w+ (k\w+)(?:\[\])? = "?([^";]+)"?;$', HEADER.read_text(encoding="utf-8"), re.M)
    return dict(found)


def test_op_names() -> None:
    names = {value for value in constants().values() if value.startswith("Lce")}
    assert names == set(contract.CUSTOM_OPS)


def test_option_names() -> None:
    options = {value for value in constants().values() if re.fullmatch("[a-z_]+", value)}
    assert options == {field.name for kind in OPTIONS.values() for field in fields(kind)}


def test_documented_ops() -> None:
    rows = re.findall(r"^\| `(Lce\w+)` \|.*\|([^|]*)\|$", (ROOT / "docs" / "ops.md").read_text(encoding="utf-8"), re.M)
    documented = {op: set(re.findall(r"`(\w+)`", options)) for op, options in rows}
    assert documented == {
        op: {field.name for field in fields(OPTIONS[op])} if op in OPTIONS else set() for op in contract.CUSTOM_OPS
    }


@pytest.mark.usefixtures("library")
def test_registered_ops() -> None:
    class Op(ctypes.Structure):
        _fields_ = (("name", ctypes.c_char_p), ("registration", ctypes.c_void_p))

    library, count = ctypes.CDLL(str(find_library())), ctypes.c_size_t()
    library.litebnn_ops.restype = ctypes.POINTER(Op)
    ops = library.litebnn_ops(ctypes.byref(count))
    assert {ops[i].name.decode() for i in range(count.value)} == set(contract.CUSTOM_OPS)


def test_values() -> None:
    values = {name: int(value) for name, value in constants().items() if re.fullmatch("[0-9]+", value)}
    expected = {f"kPadding{padding.name.title()}": padding.value for padding in contract.Padding}
    expected |= {f"kPadValues{value.name.title()}": value.value for value in contract.PadValues}
    expected |= {
        f"kActivation{activation.name.title().replace('_', '')}": activation.value for activation in contract.Activation
    }
    assert values == expected
