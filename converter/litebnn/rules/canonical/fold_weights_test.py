from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.canonical.fold_weights import fold_weights
from tests.support.float_models import FloatModel, op_names, run_pass

RNG = np.random.default_rng(0)


def scaled_signs(model: FloatModel, *shape: int) -> Tensor:
    latent = model.const(RNG.choice([-0.5, -0.25, 0.25, 0.5], shape))
    axes = model.const(range(1, len(shape)), np.int32)
    magnitude = model.op("MEAN", [model.elementwise("ABS", latent), axes], (shape[0], *[1] * (len(shape) - 1)))
    next(op for op in model.graph.ops if op.output is magnitude).options.keep_dims = True
    return model.elementwise("MUL", model.sign(latent), magnitude)


def test_the_weights_of_any_layer_are_folded_and_nothing_else() -> None:
    model = FloatModel()
    x = model.elementwise("ADD", model.input(1, 6, 6, 8), model.elementwise("NEG", model.const(1)))
    built = model.model(model.conv(x, scaled_signs(model, 16, 3, 3, 8)))
    changed, names = run_pass(fold_weights, built)
    assert changed
    assert names[-1] == "CONV_2D"
    assert built.graphs[0].ops[-1].input(1).is_constant
    assert not built.graphs[0].ops[names.index("ADD")].input(1).is_constant
    assert not run_pass(fold_weights, built)[0]


def test_weights_that_would_grow_stay_as_they_are() -> None:
    model = FloatModel()
    half = model.const(RNG.standard_normal((16, 8)), np.float16)
    built = model.model(model.dense(model.input(1, 8), model.op("DEQUANTIZE", [half], half.shape)))
    assert run_pass(fold_weights, built) == (False, ["DEQUANTIZE", "FULLY_CONNECTED"])


@pytest.mark.parametrize("reader", ["layer", "other weights", "output", "output of a part", "none"])
def test_weights_whose_constants_stay_for_another_reader_are_not_stored_beside_these(reader: str) -> None:
    model = FloatModel()
    x, latent = model.input(1, 8), model.const(RNG.standard_normal((16, 8)))
    part = model.elementwise("NEG", latent)
    weights = model.elementwise("TANH", part)
    outputs = [model.dense(x, weights), model.dense(x, weights, activation="relu")]
    if reader == "layer":
        outputs.append(model.dense(x, latent))
    elif reader == "other weights":
        outputs.append(model.dense(x, model.elementwise("EXP", part)))
    elif reader.startswith("output"):
        outputs.append(part if "part" in reader else weights)
    assert run_pass(fold_weights, model.model(*outputs))[0] == (reader == "none")


@pytest.mark.filterwarnings("ignore:no binary layer")
def test_a_model_without_a_binary_layer_has_its_weights_folded_all_the_same() -> None:
    model = FloatModel()
    x = model.elementwise("RELU", model.input(2, 24))
    matrix = model.transpose(scaled_signs(model, 16, 24), 1, 0)
    source = model.finish(model.op("BATCH_MATMUL", [x, matrix], (2, 16)))
    result, report = litebnn.convert_tflite(source, verify=True, return_report=True)
    assert op_names(read_model(result)) == ["RELU", "BATCH_MATMUL"]
    assert report.status == "no binary layer"
    assert report.bytes_after == len(result) < len(source)
    assert report.difference < 1e-6


@pytest.mark.filterwarnings("ignore:no binary layer")
@pytest.mark.parametrize(("is_computed", "times"), [(False, 1), (True, 2)])
def test_a_model_without_a_binary_layer_is_read_again_only_to_fold_weights(
    is_computed: bool, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = FloatModel()
    weights = model.const(RNG.standard_normal((16, 24)))
    weights = model.elementwise("TANH", weights) if is_computed else weights
    source = model.finish(model.dense(model.input(2, 24), weights))
    read: list[bytes] = []

    def counted(content: bytes) -> Any:
        read.append(content)
        return read_model(content)

    monkeypatch.setattr("litebnn.convert.read_model", counted)
    assert (litebnn.convert_tflite(source) != source) is is_computed
    assert read.count(source) == times
