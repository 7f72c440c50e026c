from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Op, Tensor
from litebnn.rules.build.int8 import int8_constant
from litebnn.runtime import describe_delegate, find_runtime, load_delegate
from litebnn.runtime.delegation import Delegation, delegation_of
from tests.support.float_models import FloatModel, sign_weights
from tests.support.quantized_models import Int8Model

RNG = np.random.default_rng(0)


def of(model: bytes) -> tuple[list[Op], Delegation]:
    """The ops of a model and what the delegate does with them. Each op is in one step, or left for a reason."""
    ops, found = read_model(model).graphs[0].ops, delegation_of(model)
    assert sorted([*found.step_of, *found.left]) == list(range(len(ops)))
    assert all(ops[step.main].name in step.op for step in found.steps)
    return ops, found


def conv(model: FloatModel, x: Tensor) -> Tensor:
    return model.conv(model.sign(x), sign_weights(RNG, 32, 1, 1, x.channels))


def normalized(model: FloatModel, x: Tensor, activation: str = "none") -> Tensor:
    values = model.const(RNG.choice([-1.5, 0.5, 1.0, 2.0], x.channels))
    return model.elementwise("ADD", model.elementwise("MUL", x, values), values, activation=activation)


@pytest.mark.usefixtures("library")
def test_an_addition_is_fused_into_its_convolution_and_a_float_layer_left() -> None:
    model = FloatModel()
    x = model.input(1, 8, 8, 32)
    total = model.elementwise("ADD", conv(model, x), x)
    converted = litebnn.convert_tflite(model.finish(model.conv(total, RNG.normal(size=(8, 1, 1, 32)))))
    ops, found = of(converted)
    assert [op.name for op in ops] == ["LceQuantize", "LceBconv2d", "ADD", "CONV_2D"]
    assert [(step.op, step.nodes, step.main) for step in found.steps] == [
        ("LceQuantize", (0,), 0),
        ("LceBconv2d with ADD", (1, 2), 1),
    ]
    assert found.left == {3: "litebnn has the op for other tensors or options"}


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("binarized", [True, False])
def test_an_addition_after_a_shortcut_is_computed_with_the_later_binary_layer(binarized: bool) -> None:
    model = FloatModel()
    x = model.input(1, 8, 8, 32)
    layer = conv(model, x)
    other = model.input(1, 8, 8, 32)
    shortcut = conv(model, other) if binarized else model.conv(x, RNG.normal(size=(32, 1, 1, 32)))
    ops, found = of(litebnn.convert_tflite(model.finish(model.elementwise("ADD", layer, shortcut))))
    convs = [i for i, op in enumerate(ops) if op.name == "LceBconv2d"]
    (addition,) = (i for i, op in enumerate(ops) if op.name == "ADD")
    assert addition > convs[0] + 1
    assert found.step_of[addition].main == convs[-1]


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("reads", "in_place"),
    [
        (lambda model, whole: model.max_pool(whole, 2, 2), True),
        (lambda model, whole: normalized(model, model.max_pool(whole, 2, 2), "relu"), True),
        (lambda model, whole: model.elementwise("ADD", whole, model.max_pool(whole, 1, 1)), False),
        (lambda model, whole: model.conv(whole, RNG.normal(size=(32, 1, 1, 64))), False),
    ],
)
def test_a_concatenation_whose_parts_are_read_in_place_is_fused(
    reads: Callable[[FloatModel, Tensor], Tensor], in_place: bool
) -> None:
    model = FloatModel()
    whole = model.op("CONCATENATION", [conv(model, model.input(1, 8, 8, 32)) for _ in range(2)], (1, 8, 8, 64), axis=3)
    ops, found = of(litebnn.convert_tflite(model.finish(reads(model, whole))))
    (join,) = (i for i, op in enumerate(ops) if op.name == "CONCATENATION" and op.output.type == "FLOAT32")
    assert (len(found.step_of[join].nodes) > 1) is in_place


@pytest.mark.usefixtures("library")
def test_signs_that_are_packed_with_batch_norms_are_one_step() -> None:
    model = FloatModel()
    parts = [normalized(model, model.input(1, 8, 8, 32)) for _ in range(2)]
    whole = model.op("CONCATENATION", [model.sign(part) for part in parts], (1, 8, 8, 64), axis=3)
    ops, found = of(litebnn.convert_tflite(model.finish(model.conv(whole, sign_weights(RNG, 32, 1, 1, 64)))))
    (join,) = (i for i, op in enumerate(ops) if op.name == "CONCATENATION")
    step = found.step_of[join]
    assert sorted(ops[node].name for node in step.nodes) == sorted(
        ["CONCATENATION", *2 * ["MUL", "ADD", "LceQuantize"]]
    )
    assert ops[step.main].name == "LceQuantize"


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("parts", "joined"), [((0, 1), 2), ((0, 0), 0)])
def test_signs_of_int8_batch_norms_are_one_step(parts: tuple[int, int], joined: int) -> None:
    grid = (0.05, 3)
    model = Int8Model()
    values = int8_constant("values", np.linspace(-1, 1, 32), *grid)
    packed = [model.packed(model.add8(model.input8(grid, 1, 8, 8, 32), values, grid)) for _ in range(2)]
    whole = model.op("CONCATENATION", [packed[part] for part in parts], (1, 8, 8, 2), type="INT32", axis=3)
    again = model.packed(model.add8(model.input8(grid, 1, 8, 8, 32), values, grid))
    whole = model.op("CONCATENATION", [again, whole], (1, 8, 8, 3), type="INT32", axis=3)
    ops, found = of(model.finish(whole))
    joins = [i for i, op in enumerate(ops) if op.name == "CONCATENATION"]
    assert sum(len(found.step_of[join].nodes) > 1 for join in joins) == joined


@pytest.mark.usefixtures("library")
def test_what_cannot_be_asked_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(litebnn.ConversionError, match="not a valid Flatbuffer"):
        delegation_of(b"hello" * 100)
    with pytest.raises(ValueError, match="loaded without describe=True"):
        describe_delegate(load_delegate())
    monkeypatch.setenv("LITEBNN_LIBRARY", "/nowhere")
    with pytest.raises(litebnn.ConversionError, match="LITEBNN_LIBRARY names /nowhere, which is no file"):
        delegation_of(b"")


@pytest.mark.usefixtures("library")
def test_an_interpreter_says_it_of_its_own_delegate() -> None:
    model = FloatModel()
    content = litebnn.convert_tflite(model.finish(conv(model, model.input(1, 8, 8, 32))))
    delegate = load_delegate(describe=True)
    interpreter: Any = find_runtime().Interpreter(model_content=content, experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    (graph,) = describe_delegate(delegate)["graphs"]
    (partition,) = graph["partitions"]
    assert [step["op"] for step in partition["steps"]] == ["LceQuantize", "LceBconv2d"]
