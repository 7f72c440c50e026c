"""Tests that other compilers compile the kernels without a warning, and that the kernels run under sanitizers."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import litebnn
from bench.micro.source import program_source
from tests.micro.host import SOURCES, WARNINGS
from tests.micro.layers import RANDOM_LAYERS, case_of
from tests.needs import need
from toolchains.bare_metal import HERE
from toolchains.compilers import find_clang_tool, ziglang_program
from toolchains.targets import ROOT, find_target

pytestmark = pytest.mark.deep
INCLUDES = [f"-I{HERE}", f"-I{ROOT / 'ops' / 'micro'}"]
SANITIZERS = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


# The name in toolchains/needs.py of each compiler.
COMPILERS = {"cc": "gcc", "clang": "clang", "zig": "cross", "arm-none-eabi-gcc": "arm-none-eabi-g++"}


def compiler(name: str) -> Sequence[str]:
    """The command of a C compiler. Skips the test if the compiler is missing."""
    need(COMPILERS[name])
    if name == "zig":
        return [ziglang_program(), "cc"]
    if name == "clang":
        return [find_clang_tool("clang")]
    # The program runs on no board, so newlib's stubs stand for the functions of an operating system.
    return [name, *find_target("cortex-m4").gcc_flags, "--specs=nosys.specs"] if name.startswith("arm") else [name]


def run(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["cc", "clang", "zig"])
def test_no_compiler_warns(name: str, tmp_path: Path) -> None:
    for source in SOURCES:
        run(*compiler(name), "-c", "-O2", *WARNINGS, source, "-o", tmp_path / "object.o")


@pytest.mark.parametrize("name", ["cc", "clang"])
def test_sanitizers_find_nothing(name: str, tmp_path: Path) -> None:
    cases = [
        case_of(conv, kernel) for conv in RANDOM_LAYERS for kernel in ("popcount", "pairs", "pairs_of_masks", "triples")
    ]
    source, program = tmp_path / "cases.c", tmp_path / "cases"
    source.write_text(program_source(cases), encoding="utf-8")
    shim = ROOT / "tests" / "micro" / "board_on_host.c"
    run(*compiler(name), *WARNINGS, *SANITIZERS, *INCLUDES, source, shim, *SOURCES, "-o", program)
    lines = run(program).splitlines()
    assert [line.split()[::2] for line in lines] == [[case.name, "0"] for case in cases]


# The networks that are compiled in each deep run. The other golden models are compiled with --long only.
FEW = ("int8_qat.lce", "odd_channels.lce")
NETWORKS = [
    pytest.param(path, id=path.stem, marks=() if path.stem in FEW else pytest.mark.long)
    for path in sorted((ROOT / "tests" / "golden").glob("*.tflite"))
]


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("kernels", [pytest.param("compact", marks=pytest.mark.long), "fast"])
@pytest.mark.parametrize("model", NETWORKS)
@pytest.mark.parametrize("name", ["arm-none-eabi-gcc", "clang", "zig"])
def test_no_compiler_warns_of_an_exported_network(name: str, model: Path, kernels: str, tmp_path: Path) -> None:
    command = compiler(name)
    folder, program = tmp_path / "network", tmp_path / "selftest"
    litebnn.export_c(model, folder, kernels=kernels)
    sources = [*(folder / "src").glob("*.c"), folder / "main.c"]
    run(*command, "-O2", "-ffp-contract=off", *WARNINGS, f"-I{folder / 'src'}", *sources, "-o", program)
    if not name.startswith("arm"):
        assert run(program).endswith("passed\n")
