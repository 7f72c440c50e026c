"""Calls ops/micro on this machine: builds it as a shared library and fills in its structs."""

import ctypes
import functools
import subprocess
from dataclasses import asdict
from typing import Any

import numpy as np

from litebnn.micro.pack import Geometry, Packed
from toolchains.build import locked
from toolchains.targets import BUILD, ROOT

SOURCES = sorted((ROOT / "ops" / "micro").glob("*.c"))
WARNINGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
POINTERS = ("kernel", "weights", "presets", "depths", "row_class", "column_class", "multiplier", "bias")
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
# Words behind each output and scratch memory, which no kernel may change.
GUARD = 16


class Layer(ctypes.Structure):
    """`litebnn_bconv2d`."""

    _fields_ = [*((name, ctypes.c_void_p) for name in POINTERS), *((name, ctypes.c_int32) for name in NUMBERS)]


class Pool(ctypes.Structure):
    """`litebnn_bmax_pool2d`."""

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
    """The address of an array's values; None of None."""
    return None if array is None else array.ctypes.data


def guarded(words: int) -> Any:
    """Memory of so many words, with more behind it that must stay as it is."""
    return np.full(words + GUARD, 0xA5A5A5A5, np.uint32)


def run_layer(
    geometry: Geometry,
    packed: Packed,
    words: Any,
    output: str,
    multiplier: Any = None,
    bias: Any = None,
    clamp: tuple[int, int] = (-(2**31), 2**31 - 1),
    zero_point: int = 0,
) -> Any:
    """The layer's output for one image: packed words, int8 or float32; checks the memory behind it."""
    library = micro_library()
    numbers = {name: value for name, value in asdict(geometry).items() if name in NUMBERS}
    numbers |= {name: getattr(packed, name) for name in ("planes", "window_words", "tap_bits")}
    numbers |= dict(zip(("clamp_min", "clamp_max"), clamp, strict=True), output_zero_point=zero_point)
    arrays = {name: getattr(packed, name) for name in ("weights", "presets", "depths", "row_class", "column_class")}
    arrays |= {"multiplier": multiplier, "bias": bias}
    kernel = ctypes.addressof(ctypes.c_char.in_dll(library, f"litebnn_{packed.kernel}"))
    layer = Layer(kernel=kernel, **{name: pointer(array) for name, array in arrays.items()}, **numbers)
    assert library.litebnn_bconv2d_scratch_words(ctypes.byref(layer)) == packed.scratch_words

    dtype = {"packed": np.uint32, "int8": np.int8, "float32": np.float32}[output]
    channels = -(-geometry.channels_out // 32) if output == "packed" else geometry.channels_out
    shape = (geometry.output_height, geometry.output_width, channels)
    bytes_of_output = int(np.prod(shape)) * np.dtype(dtype).itemsize
    result, scratch = guarded(-(-bytes_of_output // 4)), guarded(packed.scratch_words)
    name = {"packed": "bits", "int8": "int8", "float32": "float"}[output]
    function = getattr(library, f"litebnn_bconv2d_{name}")
    words = np.ascontiguousarray(words)
    function(ctypes.byref(layer), *(ctypes.c_void_p(pointer(array)) for array in (words, result, scratch)))
    assert np.all(result[-GUARD:] == 0xA5A5A5A5)
    assert np.all(scratch[-GUARD:] == 0xA5A5A5A5)
    return result.view(np.uint8)[:bytes_of_output].view(dtype).reshape(shape)
