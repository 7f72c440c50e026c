"""Tests that the contract of the ops is the same in C++, in Python and in docs/ops.md."""

import ctypes
import re
from dataclasses import fields
from pathlib import Path

import pytest

from litebnn import contract
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model
from litebnn.runtime.find import find_library
from litebnn.safety import check_model
from tests.runtimes import mutants
from tests.runtimes.backends import DELEGATE, PythonRuntime, Refused

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "ops" / "tflite" / "ops" / "contract.h"
OPTIONS = {contract.LCE_BCONV_2D: contract.BConv2DOptions, contract.LCE_BMAXPOOL_2D: contract.BMaxPool2DOptions}


def constants() -> dict[str, str]:
    """The constants of contract.h by name; strings have no quotes."""
    found = re.findall(r'^constexpr \w+ (k\w+)(?:\[\])? = "?([^";]+)"?;$', HEADER.read_text(encoding="utf-8"), re.M)
    return dict(found)


def test_op_names() -> None:
    names = {value for value in constants().values() if value.startswith(("Lce", "Litebnn"))}
    assert names == set(contract.CUSTOM_OPS)


def test_option_names() -> None:
    options = {value for value in constants().values() if re.fullmatch("[a-z_]+", value)}
    assert options == {field.name for kind in OPTIONS.values() for field in fields(kind)}


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


@pytest.mark.usefixtures("library")
def test_damaged_ops_are_refused_by_both() -> None:
    """`litebnn check` refuses the same ops as the library. The exceptions are tensors with wrong shapes or too short
    buffers, which the library corrects."""
    runtime = PythonRuntime()
    verdicts = set()
    for seed in range(400):
        content, model = mutants.mutant(seed)
        if mutants.LARGEST_TO_RUN < mutants.largest_tensor(model) < mutants.SMALLEST_TO_REFUSE:
            continue
        refused = checked = ""
        try:
            runtime.prepare(content, DELEGATE)
        except Refused as refusal:
            refused = str(refusal)
        try:
            check_model(read_model(content))
        except ConversionError as error:
            checked = str(error)
        verdicts.add((bool(refused), bool(checked)))
        assert checked or not refused, f"seed {seed}: only the library: {refused}"
        assert refused or not checked or re.search("has shape|its buffer has|less than 2 GiB", checked), (
            f"seed {seed}: only {checked}"
        )
    assert {(False, False), (True, True)} <= verdicts
