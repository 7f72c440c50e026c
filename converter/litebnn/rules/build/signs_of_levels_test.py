import numpy as np

from litebnn.analysis.few_values import FewValues, few_values
from litebnn.graph import Op, Tensor
from litebnn.rules.build.signs import moved_source
from tests.support.float_models import FloatModel
from tests.support.level_spellings import dorefa

WEIGHTS = np.ones((8, 1, 1, 32), np.float32)


def found(model: FloatModel, tensor: Tensor) -> FewValues:
    levels = few_values(model.graph, tensor)
    assert levels is not None
    assert levels.are_levels
    return levels


def pooled_twice() -> tuple[FloatModel, list[Tensor], list[Op]]:
    """Makes a model with two max pools, of sizes 2 and 3, that read the same activation levels. Two convolutions read
    each pool."""
    model = FloatModel()
    level = dorefa(model, model.input(1, 8, 8, 32))
    pooled = [model.max_pool(level, size, 2) for size in (2, 3)]
    layers = [model.conv(x, WEIGHTS) for x in pooled for _ in range(2)]
    return model, pooled, [op for op in model.graph.ops if op.output in layers]


def test_what_is_moved_in_another_way_is_another_tensor() -> None:
    model, pooled, layers = pooled_twice()
    moved = [
        moved_source(model.graph, found(model, x), before=layer)
        for x, layer in zip((pooled[0], pooled[0], *pooled[1:] * 2), layers, strict=True)
    ]
    assert moved[0] is moved[1] is not moved[2] is moved[3]
    assert [x.dims for x in moved[1:3]] == [(1, 4, 4, 32), (1, 3, 3, 32)]


def test_what_is_moved_for_a_later_layer_is_not_read_by_an_earlier_one() -> None:
    model, pooled, layers = pooled_twice()
    for layer in layers[1::-1]:
        producer = model.graph.producer(moved_source(model.graph, found(model, pooled[0]), before=layer))
        assert producer is not None
        assert model.graph.ops.index(producer) < model.graph.ops.index(layer)
