"""Helpers for the tests of the programs: the built programs, tiny models, and a function that runs a
program."""

import functools
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from litebnn.flatbuffer import write_model
from litebnn.graph import Buffer, Graph, Model, Op, OpCode, Options, Quantization, Tensor, constant
from tests.needs import need
from tests.support.cpp_builds import BUILDS, sharing_compiler
from toolchains.build import PROGRAMS, build, copy_whole, locked
from toolchains.compilers import Compiler
from toolchains.runtime_library import LITERT_WHEELS, fetch, fetch_c_library, library_in
from toolchains.targets import BUILD, ROOT

GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.lce.tflite"))
# A model with a SIGN op, which TensorFlow Lite 2.9 does not know.
WITH_SIGN = ROOT / "tests" / "golden" / "heaviside_not_binary.lce.tflite"


@functools.cache
def host_programs() -> Path:
    """The folder with the programs for this machine. Skips the test if they cannot be built."""
    if platform.machine() not in LITERT_WHEELS:
        pytest.skip(f"there is no LiteRT for {platform.machine()}")
    need("pypi", "npm-registry")
    fetch("host")
    return build("host").parent


@functools.cache
def sanitized_programs() -> Path:
    """The folder with the programs for this machine, built with AddressSanitizer and UBSan."""
    host_programs()
    # Compiler and options are those of the C++ tests, so that ccache compiles the library once.
    address = BUILDS["address"]
    compiler = address.compiler()
    return _own_build(f"host-sanitized-{compiler.name}", fetch("host"), compiler, **address.options)


@functools.cache
def tflite_programs() -> Path:
    """The folder with the programs on TensorFlow Lite's C library, which boards without a LiteRT library use."""
    host_programs()
    return _own_build("host-tflite", fetch_c_library("host"), sharing_compiler())


# Parameters of a test that runs with each runtime. Each value is the function that builds the programs with that
# runtime.
RUNTIMES = [
    pytest.param(host_programs, id="litert"),
    pytest.param(tflite_programs, id="tflite", marks=pytest.mark.deep),
]


def _own_build(name: str, runtime: Path, compiler: Compiler, **options: str) -> Path:
    """Builds the programs with a runtime in a separate folder, and returns that folder."""
    folder = BUILD / name
    configure = compiler.configure(folder, LITEBNN_TFLITE_DIR=str(runtime), **options)
    with locked(folder):
        for step in (configure, compiler.compile(folder, *PROGRAMS)):
            run = subprocess.run(step, capture_output=True, text=True)
            assert run.returncode == 0, run.stdout + run.stderr
        copy_whole(library_in(runtime), folder / "programs")
    return folder / "programs"


def run(command: Sequence[str | Path], **flags: object) -> subprocess.CompletedProcess[str]:
    """Runs a program with `--name=value` flags, and with options for its sanitizers if it was built with any."""
    arguments = [f"--{name}={value}" for name, value in flags.items()]
    environment = os.environ | {"ASAN_OPTIONS": "hard_rss_limit_mb=2048:allocator_may_return_null=1"}
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, env=environment)


def error_of(result: subprocess.CompletedProcess[str]) -> str:
    """Returns the error message of a program that failed, which must be one line."""
    assert result.returncode == 1, result
    lines = [line for line in result.stderr.splitlines() if not line.startswith("INFO: ")]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    return lines[0].removeprefix("error: ")


def scores(output: str) -> dict[int, float]:
    """The scores that label_image printed by index, in the order of printing."""
    lines = output.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("average time: ")) + 1
    pairs = [line.split(": ", 1) for line in lines[start:]]
    return {int(rest.split(" ")[0]): float(score) for score, rest in pairs}


def tensor(name: str, shape: Sequence[int], dtype: str, scale: float = 0, zero_point: int = 0) -> Tensor:
    """A tensor of a model, quantized if `scale` is not 0."""
    quantization = None
    if scale:
        quantization = Quantization(np.array([scale], np.float32), np.array([zero_point]))
    return Tensor(name, dtype, tuple(shape), quantization=quantization)


def graph_model(inputs: list[Tensor], output: Tensor, ops: list[Op]) -> bytes:
    """A model of one graph with the given ops."""
    tensors = dict.fromkeys(t for op in ops for t in (*op.inputs, *op.outputs) if t is not None)
    graph = Graph("main", list(tensors), inputs, [output], ops)
    codes = list(dict.fromkeys(op.code for op in ops))
    # Runtimes expect the first buffer to be empty, for tensors without data.
    return write_model(Model([graph], [Buffer()], codes, [], None, None, 3, None))


def one_op_model(builtin: str, inputs: list[Tensor], output: Tensor, options: Options | None = None) -> bytes:
    """A model with a single builtin op. Inputs of the op that have no constant data are inputs of the model."""
    op = Op(OpCode(builtin), list(inputs), [output], options or Options())
    return graph_model([t for t in inputs if not t.is_constant], output, [op])


def pixels_model(
    shape: Sequence[int], dtype: str = "FLOAT32", scale: float = 0, zero_point: int = 0, output: str = "scores"
) -> bytes:
    """A model that returns the values of its input as scores, so that label_image prints the pixels that it passed
    to the model.
    """
    flat = (1, int(np.prod(shape)))
    image = tensor("image", shape, dtype, scale, zero_point)
    shape_of_output = constant("shape", np.array(flat, np.int32))
    return one_op_model("RESHAPE", [image, shape_of_output], tensor(output, flat, dtype, scale, zero_point))
