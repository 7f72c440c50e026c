"""Runs every fuzz target from its seeds, and expects no finding. A finding is reported in a few lines."""

import base64
import re
from pathlib import Path

import pytest

from fuzz.__main__ import FOLDER, build, describe, fuzz, needs_of, run, targets
from fuzz.coverage import covered_parts
from fuzz.seeds import OPS
from tests.needs import need
from tests.support.programs import host_programs
from toolchains.targets import ROOT

# The number of inputs that each target makes. A target takes a few seconds for them on one core. A time limit would
# let the speed of a machine decide what is tested.
INPUTS = {
    "conversions": 4000,
    "delegate": 40_000,
    "graphs": 4000,
    "images": 60_000,
    "layers": 400,
    "options": 300_000,
    "passes": 60,
    "reader": 14_000,
    "verify": 60,
}
# The seed of the fuzzers is fixed, so that a run finds something new only if the code has changed.
SEED = 1

CRASH = """\
INFO: Seed: 1
graphs.cc:7:3: runtime error: signed integer overflow
==1== ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1
    #0 0x55 in __sanitizer_print_stack_trace (/program+0x1)
    #1 0x56 in litebnn::Pack(int) /ops/pack.cc:7:3
    #2 0x57 in fuzzer::Fuzzer::RunOne(unsigned char const*) (/program+0x2)
SUMMARY: AddressSanitizer: heap-buffer-overflow
stat::number_of_executed_units: 8
"""
EXCEPTION = """\
INFO: Instrumenting litebnn
 === Uncaught Python exception: ===
Defect: it comes to no end
Traceback (most recent call last):
  File "conversions_fuzz.py", line 35, in converts
    convert(data)
Defect: it comes to no end

==1== ERROR: libFuzzer: fuzz target exited
SUMMARY: libFuzzer: fuzz target exited
"""


@pytest.mark.parametrize("name", [name for name, target in targets().items() if not target.is_cpp])
def test_seeds_find_nothing(name: str, tmp_path: Path) -> None:
    check(name, 0, tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("name", targets())
def test_finds_nothing(name: str, tmp_path: Path) -> None:
    """A target processes its seeds first."""
    check(name, INPUTS[name], tmp_path)


def check(name: str, inputs: int, corpus: Path) -> None:
    """Builds and runs a target. The target must process its seeds and the inputs that it makes, and find nothing."""
    target = targets()[name]
    if name == "images":
        host_programs()
    need(*needs_of(target))
    if target.is_cpp:
        build([target])
    seeds = len(list((FOLDER / "corpus" / name).iterdir()))
    assert run(target, SEED, corpus, inputs=inputs) >= seeds + inputs > 0


@pytest.mark.deep
def test_fuzzing_prints_the_covered_code(capsys: pytest.CaptureFixture[str]) -> None:
    host_programs()
    need(*needs_of(targets()["images"]))
    fuzz(["images"], seconds=1, seed=SEED)
    assert re.search(
        r"^label_image: [1-9][0-9.]* % of lines and [1-9][0-9.]* % of branches covered$", capsys.readouterr().out, re.M
    )


@pytest.mark.parametrize(
    ("output", "kind", "place"),
    [
        (CRASH, "graphs.cc:7:3: runtime error: signed integer overflow; ==1== ERROR: AddressSan", "litebnn::Pack(int)"),
        (EXCEPTION, "Defect: it comes to no end", "conversions_fuzz.py"),
    ],
)
def test_a_finding_is_what_and_where_and_the_input(output: str, kind: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / "crash-1"
    path.write_bytes(b"an input")
    text = describe(f"{output}Test unit written to {path}\n")
    assert text.startswith(kind)
    assert place in text
    assert text.endswith(base64.b64encode(b"an input").decode())
    assert "INFO" not in text
    assert "fuzzer::" not in text


def test_a_large_input_is_named_only(tmp_path: Path) -> None:
    path = tmp_path / "crash-1"
    path.write_bytes(bytes(100_000))
    assert describe(f"{CRASH}Test unit written to {path}\n").endswith(f"input: {path}")


def test_what_no_target_is_compiled_from_has_no_share() -> None:
    def file(name: str, covered: int) -> dict[str, object]:
        counts = {"count": 4, "covered": covered}
        return {"filename": str(ROOT / name), "summary": {"lines": counts, "branches": counts}}

    image = file("examples/label_image/bmp.cc", 1)
    assert covered_parts([image]) == "label_image: 25.0 % of lines and 25.0 % of branches covered"
    ops = [file("ops/kernels/bitpack.cc", 4), file("ops/tflite/ops/gate.cc", 2), file("fuzz/run_graph.cc", 0)]
    assert covered_parts(ops) == "ops: 75.0 % of lines and 75.0 % of branches covered"
    assert len(covered_parts([image, *ops]).splitlines()) == 2


def test_the_graphs_target_has_all_ops_of_the_library() -> None:
    folder = ROOT / "ops" / "tflite" / "ops"
    sources = "".join(path.read_text() for path in (folder / "contract.h", *folder.glob("*.cc")))
    names = []
    for op in re.findall(r"OP\((k\w+)\)", (folder / "op_list.h").read_text()):
        [name] = re.findall(rf"\b{op} = {{\s*(?:\.name = )?([^,]+),", sources)
        if name.startswith("contract::"):
            [name] = re.findall(rf"\b{name.removeprefix('contract::')}\[\] = ([^;]+);", sources)
        names.append(name.strip('"'))
    assert len(names) > len(OPS) == len(set(OPS))
    assert list(dict.fromkeys(names)) == OPS


def test_the_seeds_are_small() -> None:
    files = [path for path in (FOLDER / "corpus").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 2**20
