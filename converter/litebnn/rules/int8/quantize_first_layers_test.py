import numpy as np
import pytest

from litebnn.analysis.quantization import parameters
from litebnn.graph import Tensor
from litebnn.rules.build.notes import Notes
from litebnn.rules.int8.quantize_first import quantize_first
from litebnn.rules.phases import BINARY_PHASES, run_phases
from tests.support.float_models import FloatModel, assert_same_values, binarized, op_names, run_pass, sign_weights

# The scale is chosen so that no dot product is halfway between two int8 values. Runtimes would round such a dot product
# differently.
SCALE = np.float32(np.pi)
WEIGHTS = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)


def quantized(model: FloatModel, x: Tensor, scale: float = SCALE) -> Tensor:
    levels = model.op("QUANTIZE", [x], x.dims, type="INT8")
    levels.quantization = parameters(scale, -3)
    return levels


def binary_layer(*, sign_only: bool = False) -> tuple[FloatModel, Tensor]:
    model = FloatModel()
    x = model.sign(model.input(1, 6, 6, 32))
    return model, x if sign_only else model.conv(x, WEIGHTS, np.arange(8))


@pytest.mark.parametrize("sign_only", [False, True])
def test_the_op_rounds_as_quantize_does(sign_only: bool) -> None:
    model, x = binary_layer(sign_only=sign_only)
    built = model.model(quantized(model, x))
    source = model.finish(*built.graphs[0].outputs)
    notes = Notes(built)
    run_phases(built, BINARY_PHASES, notes)
    assert quantize_first(built.graphs[0], notes)
    assert op_names(built) == ["LceQuantize", "LceDequantize" if sign_only else "LceBconv2d"]
    assert built.graphs[0].ops[-1].output.per_tensor_quantization == (SCALE, -3)
    assert_same_values(source, built)


@pytest.mark.parametrize("other", ["float reader", "other grid", "output"])
def test_what_is_read_otherwise_too_stays_float(other: str) -> None:
    model, x = binary_layer()
    outputs = [quantized(model, x)]
    outputs += {
        "float reader": lambda: [model.elementwise("ABS", x)],
        "other grid": lambda: [quantized(model, x, 2.0)],
        "output": lambda: [x],
    }[other]()
    built, _ = binarized(model, *outputs)
    assert not run_pass(quantize_first, built)[0]


def test_a_dense_layer_writes_int8_before_its_reshape() -> None:
    model = FloatModel()
    weights = sign_weights(np.random.default_rng(0), 8, 64)
    built = model.model(quantized(model, model.dense(model.sign(model.input(1, 64)), weights, np.arange(8))))
    source = model.finish(*built.graphs[0].outputs)
    notes = Notes(built)
    run_phases(built, BINARY_PHASES, notes)
    assert quantize_first(built.graphs[0], notes)
    assert quantize_first(built.graphs[0], notes)
    assert op_names(built) == ["LceQuantize", "RESHAPE", "LceBconv2d", "RESHAPE"]
    assert [op.output.type for op in built.graphs[0].ops[2:]] == ["INT8", "INT8"]
    assert_same_values(source, built)
