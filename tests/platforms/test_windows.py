"""Tests the library and the programs for Windows, under Wine: they give the same results as on Linux, bit for bit.

Wine loads LiteRT's own library for Windows. The tests use no Python for Windows.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litebnn.doctor.running import read_library
from litebnn.runtime.find import find_library
from litebnn.system import SYSTEMS
from tests.needs import imported, need
from tests.platforms import wine
from toolchains.binaries import EXPORTS, exported_names
from toolchains.build import build, programs_of
from toolchains.bundle import EXAMPLES, IMAGE, LABELS, MODEL
from toolchains.targets import ROOT, find_target

pytestmark = pytest.mark.deep

GOLDEN = ROOT / "tests" / "golden"
NAMES = sorted(path.name.removesuffix(".lce.tflite") for path in GOLDEN.glob("*.lce.tflite"))
# The system libraries that every Windows since 10 has: the kernel, the parts of the C library, and random numbers for
# the stack protector.
OF_WINDOWS = ("kernel32.dll", "api-ms-win-crt-", "ucrtbase.dll", "msvcrt.dll", "advapi32.dll")


@pytest.fixture(scope="module")
def products() -> Path:
    """The folder with the library and the programs for Windows. Clang builds them, because zig takes longer."""
    need("clang", "mingw-w64", "pypi", "npm-registry")
    wine.runtime()
    return build(wine.TARGET, "clang").parent


@pytest.fixture(scope="module")
def folder(products: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with all products, LiteRT for Windows, and the accelerator under the name that LiteRT looks for."""
    need("wine")
    folder = tmp_path_factory.mktemp("windows")
    row = find_target(wine.TARGET)
    for file in wine.runtime().iterdir():
        shutil.copy2(file, folder)
    for name in (row.names.library, *programs_of(row)):
        shutil.copy2(products / name, folder)
    accelerators = folder / "accelerators"
    accelerators.mkdir()
    shutil.copy2(products / row.names.library, accelerators / SYSTEMS["Windows"].accelerator)
    return folder


def test_exports_the_public_names_and_asks_for_windows_own_libraries(products: Path) -> None:
    lief: Any = imported("lief", "lief")
    library = lief.parse(str(products / find_target(wine.TARGET).names.library))
    assert sorted(entry.name for entry in library.exported_functions) == EXPORTS
    assert exported_names(products / find_target(wine.TARGET).names.library) == EXPORTS
    assert [entry.name for entry in library.imports if not entry.name.lower().startswith(OF_WINDOWS)] == []


def linux_outputs(name: str, values: np.ndarray) -> np.ndarray:
    """The model's output on Linux with the ISA "portable". XNNPACK is off, because TensorFlow Lite's C API on
    Windows does not apply it.
    """
    import litebnn

    runtime: Any = imported("ai_edge_litert.interpreter", "ai-edge-litert")
    interpreter = runtime.Interpreter(
        str(GOLDEN / f"{name}.lce.tflite"),
        experimental_delegates=[litebnn.load_delegate(num_threads=2, isa="portable")],
        experimental_op_resolver_type=runtime.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values)
    interpreter.invoke()
    return np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


def input_of(name: str) -> np.ndarray:
    """The input of a golden model, cut to the size of the model's batch."""
    runtime: Any = imported("ai_edge_litert.interpreter", "ai-edge-litert")
    detail = runtime.Interpreter(
        str(GOLDEN / f"{name}.lce.tflite"),
        experimental_op_resolver_type=runtime.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    ).get_input_details()[0]
    golden = np.load(GOLDEN / f"{name}.npz")["input"]
    return np.ascontiguousarray(golden[: detail["shape"][0]].astype(detail["dtype"]))


FLOAT32, INT8 = 1, 9
FOLDER = "folder"


@pytest.mark.needs("ai-edge-litert", "library")
def test_golden_models_on_every_isa_and_in_compiled_model(folder: Path) -> None:
    program = wine.compile_program(Path(__file__).with_name("run_models.cc"), folder)
    names = [*read_library(str(find_library()))["isas"], FOLDER]
    jobs, expected = [], {}
    for name in NAMES:
        values = input_of(name)
        expected[name] = linux_outputs(name, values)
        (folder / f"{name}.in").write_bytes(values.tobytes())
        shutil.copy2(GOLDEN / f"{name}.lce.tflite", folder)
        kind = {np.dtype(np.float32): FLOAT32, np.dtype(np.int8): INT8}[values.dtype]
        for isa in names:
            facts = (kind, expected[name].nbytes, *values.shape)
            jobs.append(" ".join(map(str, (isa, f"{name}.lce.tflite", f"{name}.in", f"{name}.{isa}", *facts))))
    (folder / "jobs").write_text("\n".join(jobs) + "\n")
    row = find_target(wine.TARGET)
    done = wine.run([program, row.names.litert, row.names.library, "accelerators", "jobs"], folder)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    for name in NAMES:
        want = expected[name]
        for isa in names:
            found = np.frombuffer((folder / f"{name}.{isa}").read_bytes(), want.dtype).reshape(want.shape)
            if isa != FOLDER:
                assert found.tobytes() == want.tobytes(), f"{name} in {isa}"
            elif name != "int8_qat":  # CompiledModel runs XNNPACK, which rounds an int8 ADD in another way
                np.testing.assert_allclose(found, want, rtol=0, atol=1e-4 * float(np.abs(want).max()), err_msg=name)


def ranking(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """The lines of output that name a digit and its score."""
    return [line for line in done.stdout.decode().splitlines() if re.match(r"\s*[\d.]+\W", line)]


def test_a_program_names_a_digit(folder: Path) -> None:
    for name in (MODEL, LABELS, IMAGE):
        shutil.copy2(EXAMPLES / name, folder)
    flags = [f"--tflite_model={MODEL}", f"--labels={LABELS}", f"--image={IMAGE}"]
    ours = wine.run([folder / "label_image.exe", *flags, "--lcompute=1"], folder)
    assert ours.returncode == 0, ours.stderr.decode()
    loaded = wine.run([folder / "label_image.exe", *flags, "--external_delegate_path=litebnn.dll"], folder)
    assert ranking(loaded) == ranking(ours)
    assert len(ranking(ours)) == 5


def test_a_program_measures_a_model(folder: Path) -> None:
    shutil.copy2(EXAMPLES / MODEL, folder)
    flags = ["--lcompute=1", "--use_xnnpack=1", "--num_runs=3", "--output=results.json"]
    done = wine.run([folder / "benchmark_model.exe", f"--graph={MODEL}", *flags], folder)
    assert done.returncode == 0, done.stderr.decode()
    results = json.loads((folder / "results.json").read_text())
    assert results["latency_ms"]["median"] > 0
    missing = wine.run([folder / "benchmark_model.exe", "--graph=nowhere.tflite"], folder)
    assert missing.returncode == 1
    assert len(missing.stderr.decode().strip().splitlines()) == 1


def test_a_program_runs_a_model_over_a_pipe(folder: Path) -> None:
    name = "1x1"
    shutil.copy2(GOLDEN / f"{name}.lce.tflite", folder)
    values = input_of(name)
    done = wine.run([folder / "run_model.exe", f"--graph={name}.lce.tflite", "--lcompute=1"], folder, values.tobytes())
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == linux_outputs(name, values).tobytes()
