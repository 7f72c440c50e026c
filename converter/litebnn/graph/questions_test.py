from litebnn.graph import Graph, Question, Tensor
from tests.support.float_models import FloatModel

asked: list[str] = []


def _depth(graph: Graph, tensor: Tensor) -> int:
    asked.append(tensor.name)
    op = graph.producer(tensor)
    return 0 if op is None else 1 + depth(graph, op.input(0))


depth = Question(_depth, lambda op: op.inputs[:1])


def chain(length: int) -> tuple[FloatModel, list[Tensor]]:
    model = FloatModel()
    tensors = [model.input(1, 4)]
    for _ in range(length):
        tensors.append(model.elementwise("NEG", tensors[-1]))
    asked.clear()
    return model, tensors


def test_a_question_is_answered_once() -> None:
    model, tensors = chain(3)
    assert [depth(model.graph, tensor) for tensor in (tensors[3], tensors[2], tensors[3])] == [3, 2, 3]
    assert asked == [tensor.name for tensor in tensors]


def test_an_edit_drops_the_answers_downstream_and_no_others() -> None:
    model, tensors = chain(4)
    graph = model.graph
    assert depth(graph, tensors[4]) == 4
    asked.clear()
    graph.set_input(graph.ops[2], 0, tensors[0])
    assert depth(graph, tensors[4]) == 2
    assert asked == [tensors[3].name, tensors[4].name]
    removed = graph.ops[3]
    graph.remove(removed)
    assert depth(graph, tensors[4]) == 0
    graph.insert(removed)
    assert depth(graph, tensors[4]) == 2
    graph.set_output(removed, Tensor("other", "FLOAT32", (1, 4)))
    assert [depth(graph, removed.output), depth(graph, tensors[4])] == [2, 0]


def test_a_long_chain_takes_no_recursion() -> None:
    model, tensors = chain(5000)
    assert depth(model.graph, tensors[-1]) == 5000


def test_a_change_of_options_is_reconsidered() -> None:
    model, tensors = chain(2)
    activation = Question(lambda graph, tensor: graph.producer(tensor).options.table)
    assert activation(model.graph, tensors[2]) == "NegOptions"
    model.graph.ops[1].options.table = "other"
    model.graph.reconsider(model.graph.ops[1])
    assert activation(model.graph, tensors[2]) == "other"
