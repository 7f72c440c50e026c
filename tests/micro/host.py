"""Calls the kernels of ops/micro on this machine: builds them as a shared library and fills in their structs."""

import ctypes
import functools
import subprocess
from dataclasses import asdict
from typing import Any

import numpy as np

from bench.micro.source import FUNCTIONS, Case
from litebnn.micro.pack import KERNELS
from toolchains.build import locked
from toolchains.targets import BUILD, ROOT

SOURCES = sorted((ROOT / "ops" / "micro").glob("*.c"))
WARNINGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
POINTERS = (
    *("kernel", "weights", "presets", "depths", "row_class", "column_class", "multiplier", "bias"),
    *("fixed_multiplier", "fixed_bias", "fixed_shift"),
)
NUMBERS = (
    *("planes", "window_words", "tap_bits", "clamp_min", "clamp_max", "output_zero_point"),
    *("input_height", "input_width", "channels_in", "output_height", "output_width", "channels_out", "groups"),
    *("filter_height", "filter_width", "stride_height", "stride_width", "dilation_height", "dilation_width"),
    *("pad_top", "pad_left"),
)
POOL = (
    *("words", "input_height", "input_width", "output_height", "output_width", "filter_height", "filter_width"),
    *("stride_height", "stride_width", "pad_top", "pad_left"),
)
# The kernels that run on any CPU.
HOST_KERNELS = tuple(name for name in KERNELS if name != "helium")
# The number of guard words after each output and after scratch memory. No kernel may change them.
GUARD = 16


class Layer(ctypes.Structure):
    """The C structure `litebnn_bconv2d`, which describes a binary convolution."""

    _fields_ = [*((name, ctypes.c_void_p) for name in POINTERS), *((name, ctypes.c_int32) for name in NUMBERS)]


class Pool(ctypes.Structure):
    """The C structure `litebnn_bmax_pool2d`, which describes a max pool of packed signs."""

    _fields_ = [(name, ctypes.c_int32) for name in POOL]


@functools.cache
def micro_library() -> ctypes.CDLL:
    """The kernels as a shared library for this machine."""
    folder = BUILD / "tests" / "micro"
    with locked(folder):
        product = folder / "micro.so"
        newest = max(path.stat().st_mtime for path in (ROOT / "ops" / "micro").iterdir())
        if not product.exists() or product.stat().st_mtime < newest:
            command = ["cc", "-O2", "-shared", "-fPIC", *WARNINGS, *map(str, SOURCES), "-o", str(product)]
            run = subprocess.run(command, capture_output=True, text=True)
            assert run.returncode == 0, run.stderr
    return ctypes.CDLL(str(product))


def pointer(array: Any) -> int | None:
    """The address of an array's first value; None if there is no array."""
    return None if array is None else array.ctypes.data


def guarded(words: int) -> Any:
    """Allocates memory of `words` words, followed by guard words."""
    return np.full(words + GUARD, 0xA5A5A5A5, np.uint32)


def run_layer(case: Case) -> Any:
    """Runs a layer and returns its output: packed words, int8 or float32. Checks that the guard words are unchanged."""
    library, packed = micro_library(), case.packed
    numbers = {name: value for name, value in asdict(case.geometry).items() if name in NUMBERS}
    numbers |= {name: getattr(packed, name) for name in ("planes", "window_words", "tap_bits")}
    numbers |= {"clamp_min": case.clamp[0], "clamp_max": case.clamp[1], "output_zero_point": case.zero_point}
    arrays = {name: getattr(packed, name) for name in ("weights", "presets", "depths", "row_class", "column_class")}
    arrays |= {"multiplier": case.multiplier, "bias": case.bias}
    if case.fixed:
        arrays |= {f"fixed_{name}": getattr(case.fixed, name) for name in ("multiplier", "bias", "shift")}
    kernel = ctypes.addressof(ctypes.c_char.in_dll(library, f"litebnn_{packed.kernel}"))
    layer = Layer(kernel=kernel, **{name: pointer(array) for name, array in arrays.items()}, **numbers)
    assert library.litebnn_bconv2d_scratch_words(ctypes.byref(layer)) == packed.scratch_words

    expected = case.expected
    result, scratch = guarded(-(-expected.nbytes // 4)), guarded(packed.scratch_words)
    function = getattr(library, f"litebnn_bconv2d_{FUNCTIONS[expected.dtype.name]}")
    words = np.ascontiguousarray(case.words)
    function(ctypes.byref(layer), *(ctypes.c_void_p(pointer(array)) for array in (words, result, scratch)))
    assert np.all(result[-GUARD:] == 0xA5A5A5A5)
    assert np.all(scratch[-GUARD:] == 0xA5A5A5A5)
    return result.view(np.uint8)[: expected.nbytes].view(expected.dtype).reshape(expected.shape)
