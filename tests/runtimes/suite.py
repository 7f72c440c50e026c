"""Tests that must pass in every runtime; `environments.py` starts them.

The environment variable LITEBNN_RUNTIME names the runtime, LITEBNN_CASES the folder that `cases.py` wrote, and
LITEBNN_LIBRARY litebnn's library.
"""

import ctypes
import importlib
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.runtime.find import find_library
from tests.runtimes.backends import COMPILED, DELEGATE, REGISTRATION, PythonRuntime, Refused, backend

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(os.environ["LITEBNN_CASES"])
VALUES = sorted(path.stem for path in CASES.glob("*.npz"))
REFUSALS = sorted(path.stem for path in CASES.glob("*.json"))
COMPUTED_SHAPE = "after_a_dynamic_tensor"


@pytest.fixture(scope="session")
def runtime() -> Any:
    return backend()


@pytest.fixture(scope="session")
def interfaces(runtime: Any) -> list[str]:
    """The ways in which the runtime can get litebnn's ops: from a delegate, and in some runtimes as registered custom
    ops."""
    try:
        runtime.prepare(model_of("chain_7"), REGISTRATION)
    except Refused as refusal:
        # A runtime may refuse to register custom ops, but only with an error message that recommends load_delegate.
        if "load_delegate" not in str(refusal):
            raise
        return [interface for interface in runtime.interfaces if interface != REGISTRATION]
    return list(runtime.interfaces)


def model_of(name: str) -> bytes:
    return (CASES / f"{name}.tflite").read_bytes()


def test_there_are_cases() -> None:
    assert len(VALUES) > 100
    assert len(REFUSALS) > 200


def test_a_compiled_model_takes_no_shape_that_is_computed(runtime: Any, interfaces: list[str]) -> None:
    if COMPILED not in interfaces:
        pytest.skip("the runtime has no compiled models")
    with pytest.raises(Refused, match="use litebnn.Interpreter: the shape of RESHAPE .* is known only when it runs"):
        runtime.prepare(model_of(COMPUTED_SHAPE), COMPILED)


@pytest.mark.parametrize("name", VALUES)
def test_values(runtime: Any, interfaces: list[str], name: str) -> None:
    case = np.load(CASES / f"{name}.npz")
    interfaces = [interface for interface in interfaces if (interface, name) != (COMPILED, COMPUTED_SHAPE)]
    try:
        results = [
            runtime.session(model_of(name), interface, threads)(case["input"])
            for interface in interfaces
            for threads in (1, 3)
        ]
    except Refused as refusal:
        if "builtin_code out of range" not in str(refusal):
            raise
        pytest.skip("the model holds a float op that is younger than the runtime")
    expected = case["expected"]
    assert (results[0].dtype, results[0].shape) == (expected.dtype, expected.shape)
    difference = np.abs(results[0].astype(np.float64) - expected.astype(np.float64))
    assert difference.max() <= case["tolerance"]
    for other in results[1:]:
        # The outputs have the same bits, however the ops are added and with any number of threads.
        assert other.tobytes() == results[0].tobytes()


# XNNPACK also claims nodes of the models with gates. In tflite-runtime, XNNPACK makes the runtime undo all delegates
# and apply them again.
@pytest.mark.parametrize("name", ["chain_12", *(name for name in VALUES if name.startswith("gated_"))])
def test_resizing_between_invocations(runtime: Any, interfaces: list[str], name: str) -> None:
    case = np.load(CASES / f"{name}.npz")
    for interface in interfaces:
        run = runtime.session(model_of(name), interface, 2)
        for batch in (1, 3, 2, 1):
            found = run(np.repeat(case["input"], batch, axis=0))
            expected = np.repeat(case["expected"], batch, axis=0)
            np.testing.assert_allclose(found, expected, rtol=0, atol=float(case["tolerance"]))


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(runtime: Any, interfaces: list[str], name: str) -> None:
    case = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    for interface in interfaces:
        with pytest.raises(Refused) as refusal:
            runtime.prepare(model_of(name), interface)
        text = str(refusal.value)
        assert re.search(case["message"], text), text
        assert re.search(rf"litebnn: {case['op']}\b", text), text
        # A registered custom op does not know the index of its node. Therefore the index is in the message of the
        # runtime.
        assert re.search(r"Node number 0\b" if interface == REGISTRATION else r"node 0\b", text), text


def test_options_of_the_delegate(runtime: Any) -> None:
    if not isinstance(runtime, PythonRuntime):
        pytest.skip("the C library has no loader for plugins of its own")
    load = runtime.module.load_delegate
    known = "num_threads, isa, verbose, describe"
    with pytest.raises(ValueError, match=f"unknown option 'threads': expected one of {known}"):
        load(str(find_library()), {"threads": "2"})
    with pytest.raises(ValueError, match="option num_threads: expected an integer from 1 to 256, found '0'"):
        load(str(find_library()), {"num_threads": "0"})
    with pytest.raises(ValueError, match="option isa: expected one of .*portable.*, found 'sparc'"):
        load(str(find_library()), {"isa": "sparc"})
    with pytest.raises(ValueError, match="option verbose: expected 0 or 1, found 'yes'"):
        load(str(find_library()), {"verbose": "yes"})
    load(str(find_library()), {"num_threads": "2", "isa": "portable", "verbose": "0"})


def test_float_ops_stay_with_the_runtime(runtime: Any, capfd: pytest.CaptureFixture[str]) -> None:
    if not isinstance(runtime, PythonRuntime):
        pytest.skip("verbose logging is asked for through a loader for plugins")
    delegate = litebnn.load_delegate(verbose=True)
    interpreter = runtime.module.Interpreter(
        model_content=model_of("between_float_ops"), experimental_delegates=[delegate]
    )
    interpreter.allocate_tensors()
    log = capfd.readouterr().err
    assert "the delegate takes 2 of 5 nodes" in log
    assert re.search(r"partition of 2 nodes, ISA \w+, 1 threads: arena of \d+ bytes \(\d+ without reuse\)", log)


def test_convolutions_run_with_what_waits_for_the_runtimes_own_ops(
    runtime: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    if not isinstance(runtime, PythonRuntime):
        pytest.skip("verbose logging is asked for through a loader for plugins")
    delegate = litebnn.load_delegate(verbose=True)
    runtime.module.Interpreter(model_content=model_of("delayed"), experimental_delegates=[delegate]).allocate_tensors()
    log = capfd.readouterr().err
    # The first partition packs signs. The second partition fuses a convolution with its addition, and packs signs
    # again.
    sizes = [int(size) for size in re.findall(r"partition of (\d+) nodes", log)]
    assert sizes[:2] == [1, 2]
    assert "the delegate takes 8 of 11 nodes" in log


def test_the_arena_reuses_memory(runtime: Any, capfd: pytest.CaptureFixture[str]) -> None:
    if not isinstance(runtime, PythonRuntime):
        pytest.skip("verbose logging is asked for through a loader for plugins")
    delegate = litebnn.load_delegate(verbose=True)
    runtime.module.Interpreter(model_content=model_of("chain_12"), experimental_delegates=[delegate]).allocate_tensors()
    used, unshared = map(int, re.search(r"arena of (\d+) bytes \((\d+) without", capfd.readouterr().err).groups())
    assert used < unshared


REGISTRAR = """
#include <cstdint>
#include "litebnn/register_ops.h"
struct TfLiteRegistration;
namespace tflite {
class MutableOpResolver {
 public:
  void AddCustom(const char* name, const TfLiteRegistration* registration, int version = 1);
};
}
extern "C" void RegisterLitebnn(std::uintptr_t resolver) {
  litebnn::RegisterOps(*reinterpret_cast<tflite::MutableOpResolver*>(resolver));
}
"""


def test_cpp_registrar(runtime: Any, interfaces: list[str], tmp_path: Path) -> None:
    """A C++ library calls register_ops.h with the runtime's resolver. The test calls this library through an exported C
    function."""
    if not isinstance(runtime, PythonRuntime) or REGISTRATION not in interfaces:
        pytest.skip("the runtime exports no tflite::MutableOpResolver")
    source, program = tmp_path / "registrar.cc", tmp_path / "libregistrar.so"
    source.write_text(REGISTRAR, encoding="utf-8")
    command = ["c++", "-std=c++17", "-shared", "-fPIC", f"-I{ROOT / 'ops/include'}", str(source), str(find_library())]
    subprocess.run([*command, f"-Wl,-rpath,{find_library().parent}", "-o", str(program)], check=True)

    case = np.load(CASES / "chain_12.npz")
    loaded = []

    def register(resolver: int) -> None:
        # Loading the runtime with RTLD_GLOBAL makes its symbols visible to libraries that are loaded later.
        shared_object_of = importlib.import_module("litebnn.runtime.register_ops")._shared_object_of
        ctypes.CDLL(shared_object_of(resolver), mode=ctypes.RTLD_GLOBAL)
        loaded.append(ctypes.CDLL(str(program)))
        loaded[0].RegisterLitebnn(ctypes.c_void_p(resolver))

    interpreter = runtime.module.InterpreterWithCustomOps(
        model_content=model_of("chain_12"), custom_op_registerers=[register]
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], case["input"])
    interpreter.invoke()
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert found.tobytes() == runtime.session(model_of("chain_12"), DELEGATE)(case["input"]).tobytes()
