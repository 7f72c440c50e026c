"""Tests the ops for TensorFlow Lite Micro, in the interpreters of the package tflite-micro, and compiled for a
Cortex-M4."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from litebnn.flatbuffer import read_model
from tests.micro.host import SOURCES
from tests.runtimes import environments
from tests.support.cpp_builds import preloaded
from toolchains.fetch import pypi
from toolchains.fetch.lock import find
from toolchains.targets import ROOT

pytestmark = pytest.mark.deep
GOLDEN = ROOT / "tests" / "golden"
MICRO = ROOT / "ops" / "micro"
CPP = [*sorted((MICRO / "tflm").glob("*.cc")), ROOT / "ops" / "tflite" / "runtime" / "flexbuffer_map.cc"]
INCLUDES = [
    f"-I{folder}" for folder in (ROOT / "ops", MICRO, MICRO / "tflm", ROOT / "tests" / "micro" / "tflm_headers")
]
FLAGS = ["-std=c++11", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
RUNNER = ROOT / "tests" / "micro" / "run_tflm.py"
NEW = "-DTFLM_IS_NEW"
# The sanitizer vptr checks calls of virtual functions. The flag turns vptr off, because the ops are compiled without
# the type information that vptr needs.
CHECKS = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize=vptr", "-fno-sanitize-recover=all"]
# The cases that TFLM's interpreter cannot run, each with the text of its message.
LEFT_OUT = {
    "batch_of_four": "Dimension mismatch",
    "golden_heaviside_not_binary": "'SIGN'",
}


def run(*command: str | Path, **variables: str) -> str:
    environment = os.environ | variables
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stderr


def build(folder: Path, is_new: bool, *options: str) -> Path:
    """Builds a shared library of the ops for this machine."""
    library, common = folder / "liblitebnn_tflm.so", ["-fPIC", "-fvisibility=hidden", *options]
    for source in SOURCES:
        run("gcc", "-std=c99", *common, f"-I{MICRO}", "-c", source, "-o", folder / f"{source.stem}.o")
    sources = [ROOT / "tests" / "micro" / "tflm_entry.cc", *CPP, *sorted(folder.glob("*.o"))]
    run("g++", *FLAGS, *common, *([NEW] if is_new else []), *INCLUDES, "-shared", *sources, "-o", library)
    return library


def install(name: str, folder: Path) -> bool:
    """Installs a locked tflite-micro into a folder. Returns true if its types are in the namespace tflite::micro."""
    pypi.install(find(name), f"--target={folder}")
    runtime = folder / "tflite_micro" / "python" / "tflite_micro" / "_runtime.so"
    return b"N6tflite5micro12MicroContext" in runtime.read_bytes()


@pytest.fixture(scope="module")
def cases() -> Path:
    """The cases of tests/runtimes, and the golden model with int8 layers, whose tolerance is one level."""
    folder = environments.write_cases()
    path = GOLDEN / "int8_qat.lce.tflite"
    recorded = np.load(path.with_name("int8_qat.npz"))
    (folder / "golden_int8_qat.tflite").write_bytes(path.read_bytes())
    tensors = read_model(path.read_bytes()).graphs[0].tensors
    scales = [float(t.quantization.scale.max()) for t in tensors if t.type == "INT8" and t.quantization]
    np.savez(
        folder / "golden_int8_qat.npz",
        input=recorded["input"],
        expected=recorded["lce"],
        tolerance=1.001 * max(scales),
    )
    return folder


@pytest.mark.needs("tflite-micro", "gcc", "g++", "gcc-sanitizers")
@pytest.mark.parametrize("name", ["tflite-micro-old", "tflite-micro"])
def test_suite_in_the_interpreter(name: str, cases: Path, tmp_path: Path) -> None:
    package, outputs = tmp_path / "package", tmp_path / "outputs.npz"
    is_new = install(name, package)
    assert is_new == (name == "tflite-micro")
    library = build(tmp_path, is_new, *(CHECKS if is_new else ["-O2"]))
    log = run(sys.executable, RUNNER, package, library, cases, outputs, **(preloaded("gcc") if is_new else {}))
    messages = {name: text for name, _, text in (part.partition("\n") for part in log.split("== ")[1:])}

    found = np.load(outputs)
    compared = 0
    for path in sorted(cases.glob("*.tflite")):
        name, refusal = path.stem, path.with_suffix(".json")
        if refusal.exists():
            assert name not in found, f"{name} was accepted"
            op = json.loads(refusal.read_text(encoding="utf-8"))["op"]
            assert f"{op}: " in messages[name], messages[name]
        elif name not in found:
            # TFLM has the ops of Larq Compute Engine alone.
            missing = "op code CUSTOM" if b"Litebnn" in path.read_bytes() else "?"
            assert LEFT_OUT.get(name, missing) in messages[name], f"{name}: {messages[name]}"
        else:
            recorded = np.load(path.with_suffix(".npz"))
            assert found[name].dtype == recorded["expected"].dtype
            # The difference of two int8 results may not fit in int8, so results and expected values are converted to
            # float64.
            values, expected = found[name].astype(np.float64), recorded["expected"].astype(np.float64)
            np.testing.assert_allclose(values, expected, rtol=0, atol=recorded["tolerance"], err_msg=name)
            compared += 1
    assert compared >= 120


# Debian's compiler for microcontrollers comes without a C++ library, so the test uses the headers of another cross
# compiler.
@pytest.mark.needs("arm-linux-gnueabihf-g++")
@pytest.mark.parametrize("version", [[], [NEW]], ids=["old", "new"])
def test_no_heap_is_called_on_arm(version: list[str], tmp_path: Path) -> None:
    made = [tmp_path / f"{source.stem}.o" for source in CPP]
    for source, target in zip(CPP, made, strict=True):
        options = ["-mthumb", "-Os", "-c", source, "-o", target]
        run("arm-linux-gnueabihf-g++", *FLAGS, *version, *INCLUDES, *options)
    command = ["arm-linux-gnueabihf-nm", "-u", "-C", *map(str, made)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    called = {line.split(None, 1)[1] for line in lines if line.startswith(" ")}
    own = ("litebnn_", "litebnn::", "tflite::micro::lce::", "__aeabi_", "_GLOBAL_OFFSET_TABLE_")
    rest = {name for name in called if not name.startswith(own)}
    assert rest == {"MicroPrintf(char const*, ...)", "memcmp", "memset", "strlen", "floor"}
