"""Tests the accelerator in C and C++ programs: with the libLiteRt.so of the installed ai-edge-litert, and without
it."""

import importlib.util
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.runtime.find import find_library
from litebnn.system import HERE
from tests.needs import need

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
MODEL = "residual"
INTERFACES = ["folder", "first", "last"]


def compile_program(source: Path, program: Path, *arguments: str | Path) -> None:
    """Compiles a program, and links it with litebnn's library so that the program finds the library at run time."""
    library = find_library()
    command = ["c++" if source.suffix == ".cc" else "cc", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'ops/include'}"]
    linked = [str(library), f"-Wl,-rpath,{library.parent}", *map(str, arguments)]
    subprocess.run([*command, str(source), "-o", str(program), *linked], check=True)


@pytest.fixture(scope="module")
def runtime() -> Path:
    """The path of libLiteRt.so."""
    need("compiled-model")
    spec = importlib.util.find_spec("ai_edge_litert")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "libLiteRt.so"


@pytest.fixture(scope="module")
def program(library: None, runtime: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("litert") / "program"
    compile_program(ROOT / "ops/tests/litert/program.c", path, runtime, f"-Wl,-rpath,{runtime.parent}")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "accelerators"
    path.mkdir()
    (path / HERE.accelerator).symlink_to(find_library())
    return path


def run(program: Path, way: str, folder: Path, output: Path, options: str = "verbose=1") -> tuple[int, str]:
    """Runs the test program, and returns the exit code and the text on stderr."""
    x = np.load(GOLDEN / f"{MODEL}.npz")["input"][:1]
    x.tofile(output.with_suffix(".input"))
    command = [program, GOLDEN / f"{MODEL}.lce.tflite", output.with_suffix(".input"), output, options, way, folder]
    finished = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    return finished.returncode, finished.stderr


@pytest.mark.parametrize("way", INTERFACES)
def test_a_program_computes_the_bits_of_the_interpreter(program: Path, way: str, folder: Path, tmp_path: Path) -> None:
    options = "verbose=1 isa=portable num_threads=2"
    code, log = run(program, way, folder if way == "folder" else tmp_path, tmp_path / "output", options)
    assert code == 0, log
    path = GOLDEN / f"{MODEL}.lce.tflite"
    x = np.load(GOLDEN / f"{MODEL}.npz")["input"][:1]
    assert (tmp_path / "output").read_bytes() == litebnn.Interpreter(path, isa="portable").predict(x).tobytes()
    assert re.search(r"partition of \d+ nodes, ISA portable, 2 threads", log)


def order(log: str) -> list[str]:
    """The names of the registered accelerators in their order, from the log of LiteRT."""
    return re.findall(r"RegisterAccelerator: .*name=(\w+)", log)


def test_what_is_registered_before_xnnpack_takes_additions_too(program: Path, folder: Path, tmp_path: Path) -> None:
    taken = {}
    for way in INTERFACES:
        log = run(program, way, folder if way == "folder" else tmp_path, tmp_path / "output")[1]
        assert order(log) == (["CpuAccelerator", "litebnn"] if way == "last" else ["litebnn", "CpuAccelerator"])
        taken[way] = sum(map(int, re.findall(r"the delegate takes (\d+) of", log)))
    assert taken["folder"] == taken["first"] > taken["last"] > 0


def test_a_linked_library_takes_no_gpus_place(program: Path, runtime: Path, tmp_path: Path) -> None:
    """To find a GPU accelerator, LiteRT searches all libraries of the process for a function that registers it."""
    code, log = run(program, "none", tmp_path, tmp_path / "output")
    assert code != 0
    assert "litebnn" not in order(log)


def test_it_stands_beside_the_accelerator_of_a_gpu(program: Path, runtime: Path, tmp_path: Path) -> None:
    code, log = run(program, "first", runtime.parent, tmp_path / "output")
    assert code == 0, log
    assert order(log)[-3:] == ["GPU", "litebnn", "CpuAccelerator"]


def test_a_refused_option_is_one_line(program: Path, folder: Path, tmp_path: Path) -> None:
    for way in INTERFACES:
        code, log = run(program, way, folder if way == "folder" else tmp_path, tmp_path / "output", "isa=sparc")
        assert code != 0
        assert re.search(r"^litebnn: option isa: expected one of .*, found 'sparc'$", log, re.MULTILINE)


CPP = """
#include "litebnn/litert.h"
namespace litert {  // as in LiteRT's litert/cc/litert_environment.h
struct Environment {
  struct Holder { const void* runtime; LiteRtEnvironmentT* handle; };
  Holder GetHolder() const noexcept { return {nullptr, nullptr}; }
};
}
int main() { return litebnn::RegisterAccelerator(litert::Environment()); }
"""


NO_LITERT = (
    "litebnn: this process has no LiteRT of version 2.1.6 or newer: LiteRtDestroyDelegateWrapper is not exported, "
    "use litebnn.Interpreter\n"
)
NO_ENVIRONMENT = "litebnn: litebnn_register_accelerator: expected an environment, found null\n"


@pytest.mark.parametrize(("with_litert", "message"), [(False, NO_LITERT), (True, NO_ENVIRONMENT)])
def test_what_cannot_be_registered_gets_one_line(
    library: None, runtime: Path, tmp_path: Path, with_litert: bool, message: str
) -> None:
    source, program = tmp_path / "program.cc", tmp_path / "program"
    source.write_text(CPP, encoding="utf-8")
    linked = ["-Wl,--no-as-needed", runtime, f"-Wl,-rpath,{runtime.parent}"] if with_litert else []
    compile_program(source, program, "-std=c++17", *linked)
    finished = subprocess.run([str(program)], capture_output=True, text=True)
    assert (finished.returncode, finished.stderr) == (0, message)
