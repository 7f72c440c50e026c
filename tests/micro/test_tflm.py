"""The ops for TensorFlow Lite Micro, in the interpreters of the package tflite-micro, and built for a Cortex-M4."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from litebnn.flatbuffer import read_model
from tests.micro.host import SOURCES
from tests.needs import need
from tests.runtimes import environments
from toolchains.needs import LAST_OLD_TFLM
from toolchains.targets import ROOT

pytestmark = pytest.mark.deep
GOLDEN = ROOT / "tests" / "golden"
MICRO = ROOT / "ops" / "micro"
CPP = [*sorted((MICRO / "tflm").glob("*.cc")), ROOT / "ops" / "tflite" / "runtime" / "flexbuffer_map.cc"]
INCLUDES = [
    f"-I{folder}" for folder in (ROOT / "ops", MICRO, MICRO / "tflm", ROOT / "tests" / "micro" / "tflm_headers")
]
FLAGS = ["-std=c++11", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
NEW = "-DTFLM_IS_NEW"
# Cases that the interpreter cannot run, whatever the binary ops do, and the reason in its messages.
LEFT_OUT = {"batch_of_four": "Dimension mismatch", "golden_heaviside_not_binary": "'SIGN'"}


def run(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stderr


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The kernels, compiled for this machine."""
    need("gcc", "g++")
    folder = tmp_path_factory.mktemp("kernels")
    made = [folder / f"{source.stem}.o" for source in SOURCES]
    for source, target in zip(SOURCES, made, strict=True):
        run("gcc", "-std=c99", "-O2", "-fPIC", "-fvisibility=hidden", f"-I{MICRO}", "-c", source, "-o", target)
    return made


@pytest.fixture(scope="module")
def cases() -> Path:
    """The suite of all runtimes, and the golden model with int8 layers, with one level as its tolerance."""
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


@pytest.mark.needs("tflite-micro")
@pytest.mark.parametrize("requirement", [LAST_OLD_TFLM, "tflite-micro"])
def test_suite_in_the_interpreter(requirement: str, cases: Path, objects: list[Path], tmp_path: Path) -> None:
    package, library, outputs = (tmp_path / name for name in ("package", "liblitebnn_tflm.so", "outputs.npz"))
    run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", package, requirement)
    runtime = package / "tflite_micro" / "python" / "tflite_micro" / "_runtime.so"
    is_new = b"N6tflite5micro12MicroContext" in runtime.read_bytes()
    assert is_new == (requirement != LAST_OLD_TFLM)
    build = ["-O2", "-fPIC", "-fvisibility=hidden", "-shared", *([NEW] if is_new else [])]
    entry = ROOT / "tests" / "micro" / "tflm_entry.cc"
    run("g++", *FLAGS, *build, *INCLUDES, entry, *CPP, *objects, "-o", library)
    log = run(sys.executable, ROOT / "tests" / "micro" / "run_tflm.py", package, library, cases, outputs)
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
            assert LEFT_OUT.get(name, "?") in messages[name], f"{name}: {messages[name]}"
        else:
            recorded = np.load(path.with_suffix(".npz"))
            assert found[name].dtype == recorded["expected"].dtype
            # Differences of int8 would overflow.
            values, expected = found[name].astype(np.float64), recorded["expected"].astype(np.float64)
            np.testing.assert_allclose(values, expected, rtol=0, atol=recorded["tolerance"], err_msg=name)
            compared += 1
    assert compared >= 120


# Debian's compiler for microcontrollers has no C++ library, whose headers this one has.
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
