"""Tests the limits on the size of files, functions and folders, and the names of rules and ISAs."""

import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from litebnn.build.notes import Request
from litebnn.graph import constant
from litebnn.rules import BINARY_PHASES, FINAL_PHASES, PHASES, rules_of
from tests.support.documents import FOLDERS, read
from tests.support.sizes import cpp_functions, python_functions
from toolchains.needs import needs
from toolchains.targets import ROOT

LINES_OF_A_FILE = 400
LINES_OF_A_FUNCTION = 80
MODULES_OF_A_FOLDER = 16

CPP = (".c", ".cc", ".h")
FILES = sorted(
    [*ROOT.glob("*.py")]
    + [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".S", *CPP)]
)


def is_test(path: Path) -> bool:
    return "tests" in path.relative_to(ROOT).parts or path.stem.endswith("_test") or path.name == "conftest.py"


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_production_file_is_too_long() -> None:
    lengths = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES if not is_test(path)}
    assert {name: lines for name, lines in lengths.items() if lines > LINES_OF_A_FILE} == {}


@pytest.mark.parametrize(("suffixes", "functions_of"), [((".py",), python_functions), (CPP, cpp_functions)])
def test_no_function_is_too_long(suffixes: tuple[str, ...], functions_of) -> None:
    files = [path for path in FILES if path.suffix in suffixes]
    found = {path: functions_of(path.read_text(encoding="utf-8")) for path in files}
    assert sum(map(len, found.values())) > 400
    long = {
        f"{name_of(path)}: {function}": lines
        for path, functions in found.items()
        for function, lines in functions.items()
        if lines > LINES_OF_A_FUNCTION
    }
    assert long == {}


def test_no_folder_has_too_many_modules() -> None:
    """A source file and its header count as one module. A test file counts as a module only if its folder has nothing
    but tests."""
    modules: dict[str, set[str]] = defaultdict(set)
    for path in FILES:
        only_tests = "tests" in path.relative_to(ROOT).parts
        if path.stem != "__init__" and (only_tests or not is_test(path)):
            modules[name_of(path.parent)].add(path.stem)
    too_many = {folder: len(names) for folder, names in modules.items() if len(names) > MODULES_OF_A_FOLDER}
    assert too_many == {}


FOLDERS_OF_RULES = sorted(path.name for path in (ROOT / "converter/litebnn/rules").iterdir() if path.is_dir())


@pytest.mark.parametrize("name", [name for name in FOLDERS_OF_RULES if not name.startswith("_")])
def test_a_folder_holds_rules_of_the_order_each_with_its_test(name: str) -> None:
    package = f"litebnn.rules.{name}"
    everything = Request(True, {constant("x", np.zeros(1)): (0.0, 1.0)}, low_bit_weights="INT4", larq_compatible=True)
    rules = [rule for phase in PHASES for rule in rules_of(phase, everything)]
    assert len(rules) == sum(map(len, PHASES.values()))
    assert all(one.__module__.endswith(f".{one.__name__}") for one in rules)
    here = {one.__name__ for one in rules if one.__module__.startswith(f"{package}.")}
    folder = ROOT / "converter" / Path(*package.split("."))
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    tests = {stem for stem in files if stem.endswith("_test")}
    assert files - tests == here
    assert {f"{name}_test" for name in here} <= tests
    assert [test for test in tests if not any(test.startswith(name) for name in here)] == []


# For each file, the number of skips for a reason other than a missing requirement, such as a feature that a CPU lacks.
OTHER_SKIPS = {
    "converter/litebnn/cli/command_line_test.py": 1,
    "converter/litebnn/flatbuffer/constants_test.py": 1,
    "converter/litebnn/flatbuffer/schema_test.py": 1,
    "converter/litebnn/keras/layers_test.py": 1,
    "converter/litebnn/runtime/interpreter_test.py": 1,
    "tests/docs/test_blocks.py": 1,
    "tests/convert/test_quantized_sources.py": 1,
    "tests/emulated/test_emulated.py": 3,
    "tests/emulated/test_sme2.py": 1,
    "tests/ops/test_golden.py": 1,
    "tests/runtimes/suite.py": 7,
    "tests/support/programs.py": 1,
    "tests/test_bare.py": 1,
    "tests/toolchains/test_wheel.py": 1,
}
SKIPS = r"pytest\.skip\(|mark\.skip(?:if)?\b|importorskip"
LOOKS = r"importorskip|shutil\.which|except ToolkitError(?: as \w+)?:\n\s+(?:pytest|return|pass)"


def test_one_place_turns_what_is_missing_into_a_skip() -> None:
    tests = {name_of(path): path.read_text(encoding="utf-8") for path in FILES if is_test(path)}
    own = {"tests/needs.py", "tests/test_house.py", "conftest.py"}
    skips = {name: len(re.findall(SKIPS, text)) for name, text in tests.items() if name not in own}
    assert {name: count for name, count in skips.items() if count} == OTHER_SKIPS
    looking = [name for name, text in tests.items() if name not in own and re.search(LOOKS, text)]
    assert looking == []


def test_marks_name_rows_of_the_table() -> None:
    tests = {name_of(path): path.read_text(encoding="utf-8") for path in FILES if is_test(path)}
    calls = [words for text in tests.values() for words in re.findall(r"\bneeds?\(((?:\"[\w+-]+\"(?:, )?)+)\)", text)]
    named = {name for words in calls for name in re.findall(r"\"([\w+-]+)\"", words)}
    assert len(named) > 20
    assert named - set(needs()) == set()


def test_the_table_of_phases_is_the_order() -> None:
    assert tuple(PHASES)[:-1] == BINARY_PHASES + FINAL_PHASES


SAMPLE = """
#define BODY(x) { x(
namespace a {
// A comment { with ( a brace.
constexpr Row kRows[] = {
    {"one", Make(1)},
    {"two {", Make('{')},
};

struct alignas(16) Block {
  int Get() const { return value; }
  int value = 0;
};

template <typename T>
Widget::Widget(T first,
               int second)
    : first_{first}, second_{Pair{second, 1}} {
  if (second > 1'000'000) {
    Do([] {
      return 1;
    });
  }
}

int Sum(const Row& row = {}, int more = 0) {
  return more;
}

void Declared(int x);
}  // namespace a
"""


def test_functions_of_cpp_are_found() -> None:
    assert cpp_functions(SAMPLE) == {
        "int Get() const": 1,
        "template <typename T> Widget::Widget(T first, int second) : first_ , second_": 10,
        "int Sum(const Row& row = {}, int more = 0)": 3,
    }


def test_functions_of_python_are_found() -> None:
    text = "class A:\n    async def b(self):\n\n        return 1\n\ndef c(): pass\n"
    assert python_functions(text) == {"b": 3, "c": 1}


def test_every_isa_can_be_chosen() -> None:
    declared = re.findall(r"^extern const Isa (k\w+Isa);$", read("ops/kernels/isa/isa.h"), re.MULTILINE)
    chosen = re.findall(r"&(k\w+Isa),", read("ops/kernels/isa/select.cc"))
    assert len(declared) > 4
    assert sorted(chosen) == sorted(declared)
