import numpy as np

from litebnn.flatbuffer import read_model
from litebnn.frontends.tensor_names import Part, part_name, rename_tensors
from tests.support.float_models import FloatModel

PARTS = {"Dense_1": Part("dense", 64), "Norm_2": Part("norm", 8), "Dense_3": Part("dense_1", 32)}


def test_layers_have_the_names_of_their_parts_whatever_else_became_one_with_them() -> None:
    model = FloatModel()
    x = model.input(1, 8)
    first, second = (model.dense(x, np.ones((8, 8), np.float32) * factor) for factor in (1, 2))
    last = model.dense(model.elementwise("ADD", first, second), np.ones((4, 8), np.float32))
    first.name, second.name, last.name = "Norm_2;;Dense_1;1", "Dense_1;;Norm_2;", "output"
    weights = model.model(last).graphs[0].ops[-1].input(1)
    weights.name = "Dense_3;4"
    source = model.finish(last)
    renamed = rename_tensors(source, lambda graph, tensor: part_name(graph, tensor, PARTS.get))
    ops = read_model(renamed).graphs[0].ops
    assert [op.output.name for op in ops if op.name == "FULLY_CONNECTED"] == ["dense", "dense_2", "dense_1"]
