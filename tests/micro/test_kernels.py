"""Tests the kernels for microcontrollers on this machine, against the NumPy reference."""

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebnn.micro.fixed_output import fixed_output
from litebnn.micro.pack import pack_bconv2d
from tests.micro.host import HOST_KERNELS, Pool, guarded, micro_library, pointer, run_layer
from tests.micro.layers import case_of, geometry_of
from tests.ops.test_properties import convs
from tests.support import lce_models, reference

pytestmark = pytest.mark.usefixtures("built")


@pytest.fixture(scope="module")
def built() -> None:
    """Builds the kernels once, so that a compiler error does not appear as a failed example."""
    micro_library()


def check(conv: lce_models.Conv, kernel: str) -> None:
    case = case_of(conv, kernel)
    np.testing.assert_array_equal(run_layer(case), case.expected)
    if conv.output == "int8":
        fixed = fixed_output(case.geometry, case.multiplier, case.bias, case.clamp, case.zero_point)
        if fixed:
            np.testing.assert_array_equal(run_layer(replace(case, fixed=fixed)), case.expected)


@given(conv=convs(), kernel=st.sampled_from(HOST_KERNELS))
@settings(max_examples=80)
def test_any_layer(conv: lce_models.Conv, kernel: str) -> None:
    check(conv, kernel)


@pytest.mark.parametrize("kernel", HOST_KERNELS)
@pytest.mark.parametrize("output", ["packed", "int8", "float32"])
@pytest.mark.parametrize("channels", [1, 31, 2000])
def test_dense_layers(kernel: str, output: str, channels: int) -> None:
    conv = lce_models.Conv((1, 1, 4, channels), 100, (1, 1), output=output, padding=reference.VALID)
    check(conv, kernel)


def test_filters_of_a_file_are_the_weights_of_popcount() -> None:
    conv = lce_models.Conv((1, 4, 4, 64), 40, output="packed")
    constants = conv.constants()
    packed = pack_bconv2d("popcount", geometry_of(conv), constants["filter"], constants["output_threshold"])
    np.testing.assert_array_equal(packed.weights, constants["filter"].view(np.uint32).reshape(-1))
    np.testing.assert_array_equal(packed.presets, constants["output_threshold"].view(np.uint32))


@pytest.mark.parametrize(
    ("conv", "message"),
    [
        (lce_models.Conv((1, 1, 1, 65536), 32, (1, 1), output="packed"), "65536 products: .* pairs counts to 65535"),
        (lce_models.Conv((1, 4, 4, 33), 32, pad_values=0, output="packed"), "33 channels .* even number"),
    ],
)
def test_what_cannot_be_counted(conv: lce_models.Conv, message: str) -> None:
    constants = conv.constants()
    with pytest.raises(ValueError, match=message):
        pack_bconv2d("pairs", geometry_of(conv), constants["filter"], constants["output_threshold"])


SPECIAL = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-45, -1e-45, 3, -3], np.float32)


@given(
    rows=st.integers(1, 3), channels=st.integers(1, 100), seed=st.integers(0, 2**31), zero_point=st.integers(-128, 127)
)
@settings(max_examples=25)
def test_signs(rows: int, channels: int, seed: int, zero_point: int) -> None:
    rng = np.random.default_rng(seed)
    words = -(-channels // 32)
    inputs = {
        "float": rng.choice(SPECIAL, (rows, channels)),
        "int8": rng.integers(-128, 128, (rows, channels)).astype(np.int8),
        "bool": rng.random((rows, channels)) < 0.5,
    }
    library = micro_library()
    for name, values in inputs.items():
        output = guarded(rows * words)
        zero = [ctypes.c_int32(zero_point)] if name == "int8" else []
        function = getattr(library, f"litebnn_quantize_{name}")
        function(ctypes.c_void_p(pointer(values)), rows, channels, *zero, ctypes.c_void_p(pointer(output)))
        expected = reference.lce_quantize(values, zero_point)
        np.testing.assert_array_equal(output[: rows * words].reshape(rows, words), expected.view(np.uint32))
        assert np.all(output[rows * words :] == 0xA5A5A5A5)
    packed = reference.pack(rng.choice([-1, 1], (rows, channels)))
    floats = np.empty((rows, channels), np.float32)
    library.litebnn_dequantize_float(ctypes.c_void_p(pointer(packed)), rows, channels, ctypes.c_void_p(pointer(floats)))
    np.testing.assert_array_equal(floats, reference.lce_dequantize(packed, channels, np.float32))
    bytes_ = np.empty((rows, channels), np.int8)
    values = [ctypes.c_int8(value) for value in (100, -7)]
    library.litebnn_dequantize_int8(
        ctypes.c_void_p(pointer(packed)), rows, channels, *values, ctypes.c_void_p(pointer(bytes_))
    )
    np.testing.assert_array_equal(bytes_, np.where(floats > 0, 100, -7))


@given(
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    filter_size=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    words=st.integers(1, 3),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=25)
def test_max_pools(size: Any, filter_size: Any, stride: Any, words: int, seed: int) -> None:
    x = np.random.default_rng(seed).integers(-(2**31), 2**31, (1, *size, words)).astype(np.int32)
    expected = reference.lce_bmaxpool2d(x, filter_size, stride, reference.SAME)
    axes = [reference.axis_window(size[i], filter_size[i], stride[i], 1, reference.SAME) for i in (0, 1)]
    (height, top), (width, left) = axes
    pool = Pool(words, *size, height, width, *filter_size, *stride, top, left)
    output = guarded(expected.size)
    micro_library().litebnn_bmax_pool2d_run(
        ctypes.byref(pool), ctypes.c_void_p(pointer(x)), ctypes.c_void_p(pointer(output))
    )
    np.testing.assert_array_equal(output[: expected.size].view(np.int32).reshape(expected.shape), expected)
    assert np.all(output[expected.size :] == 0xA5A5A5A5)
