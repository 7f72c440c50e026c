"""What the tests of the example programs share: the built programs, tiny models to feed them with, and running them."""

import functools
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from litebnn.flatbuffer import write_model
from litebnn.graph import Graph, Model, Op, OpCode, Options, Quantization, Tensor, constant
from toolchains.build import PROGRAMS, build
from toolchains.compilers import find_gcc
from toolchains.runtime_library import LIBRARY, fetch
from toolchains.targets import BUILD, ROOT, ToolkitError, find_target

# One golden model holds a SIGN of no binary layer. The published C library is older than that builtin.
NEEDS_NEWER_LIBRARY = ROOT / "tests" / "golden" / "heaviside_not_binary.lce.tflite"
GOLDEN = sorted(set((ROOT / "tests" / "golden").glob("*.lce.tflite")) - {NEEDS_NEWER_LIBRARY})


@functools.cache
def host_programs() -> Path:
    """Folder with the programs for this machine; skips the test where they cannot be had."""
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip(f"no C library of TensorFlow Lite is published for {platform.machine()}")
    try:
        fetch("host")
    except ToolkitError as error:
        pytest.skip(f"the runtime's C library cannot be had: {error}")
    return build("host").parent


@functools.cache
def sanitized_programs() -> Path:
    """Folder with the programs for this machine built with AddressSanitizer and UBSan."""
    host_programs()
    compiler = find_gcc(find_target("host"))
    folder = BUILD / "host-sanitized"
    options = {"LITEBNN_SANITIZE": "address,undefined", "LITEBNN_TFLITE_DIR": str(fetch("host"))}
    for step in (compiler.configure(folder, "Debug", **options), compiler.compile(folder, *PROGRAMS)):
        run = subprocess.run(step, capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr
    shutil.copy2(fetch("host") / LIBRARY, folder / "examples")
    return folder / "examples"


def run(command: Sequence[str | Path], **flags: object) -> subprocess.CompletedProcess[str]:
    """Runs a program with `--name=value` flags; sanitizers, where it has them, also watch its memory."""
    arguments = [f"--{name}={value}" for name, value in flags.items()]
    environment = os.environ | {"ASAN_OPTIONS": "hard_rss_limit_mb=2048:allocator_may_return_null=1"}
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, env=environment)


def error_of(result: subprocess.CompletedProcess[str]) -> str:
    """The one line that a program ends with."""
    assert result.returncode == 1, result
    lines = [line for line in result.stderr.splitlines() if not line.startswith("INFO: ")]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    return lines[0].removeprefix("error: ")


def scores(output: str) -> dict[int, float]:
    """The results of label_image by index, in the order of printing."""
    lines = output.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("average time: ")) + 1
    pairs = [line.split(": ", 1) for line in lines[start:]]
    return {int(rest.split(" ")[0]): float(score) for score, rest in pairs}


def tensor(name: str, shape: Sequence[int], dtype: str, scale: float = 0, zero_point: int = 0) -> Tensor:
    """A tensor of a model; quantized where `scale` is not 0."""
    quantization = None
    if scale:
        quantization = Quantization(np.array([scale], np.float32), np.array([zero_point]))
    return Tensor(name, dtype, tuple(shape), quantization=quantization)


def one_op_model(builtin: str, inputs: list[Tensor], output: Tensor, options: Options | None = None) -> bytes:
    """A model of a single builtin op; the inputs that are no constants are the model's."""
    code = OpCode(builtin)
    op = Op(code, list(inputs), [output], options or Options())
    graph = Graph("main", [*inputs, output], [t for t in inputs if not t.is_constant], [output], [op])
    return write_model(Model([graph], [], [code], [], None, None, 3, None))


def pixels_model(
    shape: Sequence[int], dtype: str = "FLOAT32", scale: float = 0, zero_point: int = 0, output: str = "scores"
) -> bytes:
    """A model whose scores are its input's values: what label_image prints is what it fed."""
    flat = (1, int(np.prod(shape)))
    image = tensor("image", shape, dtype, scale, zero_point)
    shape_of_output = constant("shape", np.array(flat, np.int32))
    return one_op_model("RESHAPE", [image, shape_of_output], tensor(output, flat, dtype, scale, zero_point))
