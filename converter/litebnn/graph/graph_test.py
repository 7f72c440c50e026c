import itertools

import numpy as np
import pytest

from litebnn.errors import ConversionError
from litebnn.graph import Buffer, Graph, Model, Op, OpCode, Quantization, Signature, Tensor, constant, packed_words

Chain = tuple[Graph, list[Tensor], list[Op]]


def relu(x: Tensor, y: Tensor) -> Op:
    return Op(OpCode("RELU"), [x], [y])


def chain(length: int) -> Chain:
    """A chain of ops from the graph's input to its output."""
    tensors = [Tensor(f"t{i}", "FLOAT32", (1, 4)) for i in range(length + 1)]
    ops = [relu(x, y) for x, y in itertools.pairwise(tensors)]
    return Graph("main", tensors, tensors[:1], tensors[-1:], ops), tensors, ops


def test_who_computes_and_who_reads_a_tensor() -> None:
    graph, [x, y, z], [first, second] = chain(2)
    assert (graph.producer(x), graph.producer(y), graph.producer(z), graph.producer(None)) == (
        None,
        first,
        second,
        None,
    )
    assert (graph.consumers(x), graph.consumers(y), graph.consumers(z)) == ([first], [second], [])
    assert graph.holds(first)
    graph.remove(first)
    assert not graph.holds(first)
    assert (graph.producer(y), graph.consumers(x), graph.ops) == (None, [], [second])


def test_the_producer_may_be_asked_for_by_its_kind() -> None:
    graph, [x, y, _], [first, _] = chain(2)
    assert graph.producer(y, "TANH", "RELU") is first
    assert graph.producer(y, "TANH") is None
    assert graph.producer(x, "RELU") is None


def test_a_tensor_is_read_by_an_op_or_from_outside() -> None:
    graph, [_, y, z], [_, second] = chain(2)
    assert (graph.is_read(y), graph.is_read(z)) == (True, True)
    graph.remove(second)
    assert (graph.is_read(y), graph.is_read(z)) == (False, True)


def test_an_op_reads_a_tensor_once_for_each_of_its_inputs() -> None:
    graph, [x, y], [op] = chain(1)
    both = graph.insert(Op(OpCode("ADD"), [y, y, None], [Tensor("sum", "FLOAT32", (1, 4))]))
    assert graph.consumers(y) == [both, both]
    graph.set_input(both, 1, None)
    assert graph.consumers(y) == [both]
    graph.set_input(both, 2, x)
    assert graph.consumers(x) == [op, both]
    graph.redirect(x, y)
    assert (op.inputs, both.inputs) == ([y], [y, None, y])
    assert graph.consumers(x) == []


def test_what_others_see_has_no_sole_consumer() -> None:
    graph, [x, y, z], [_, second] = chain(2)
    assert (graph.sole_consumer(x), graph.sole_consumer(y), graph.sole_consumer(z)) == (None, second, None)
    assert [graph.is_output(tensor) for tensor in (x, y, z)] == [True, False, True]
    graph.pinned.add(y)
    assert graph.is_output(y)
    assert graph.sole_consumer(y) is None
    graph.pinned.clear()
    graph.insert(relu(y, Tensor("other", "FLOAT32", (1, 4))))
    assert graph.sole_consumer(y) is None


def test_ops_are_inserted_next_to_others_or_at_the_end() -> None:
    graph, [x, *_], [first, second] = chain(2)
    made = [relu(x, Tensor(name, "FLOAT32", (1, 4))) for name in "abc"]
    assert graph.insert(made[0], before=second) is made[0]
    graph.insert(made[1], after=first)
    graph.insert(made[2])
    assert graph.ops == [first, made[1], made[0], second, made[2]]


def test_what_replaces_an_op_stands_and_computes_in_its_place() -> None:
    graph, [x, y, _], [first, second] = chain(2)
    new = Op(OpCode("TANH"), [x], [y])
    assert graph.replace(first, new) is new
    assert (graph.ops, graph.producer(y), graph.holds(first)) == ([new, second], new, False)
    other = Tensor("other", "FLOAT32", (1, 4))
    graph.set_output(new, other)
    assert (graph.producer(y), graph.producer(other), new.output) == (None, new, other)


def test_an_op_that_lost_its_output_to_another_may_be_removed() -> None:
    graph, [x, y, _], [first, _] = chain(2)
    other = graph.insert(relu(x, y))
    graph.remove(first)
    assert graph.producer(y) is other


@pytest.mark.parametrize("count", [0, 1, 3])
def test_work_is_in_proportion_to_the_constants(count: int) -> None:
    """If constants share their bytes, these bytes count once."""
    data = np.zeros(1 << 18, np.uint8)
    buffers = [Buffer(data), Buffer(data)]
    constants = [Tensor(f"c{i}", "INT8", data.shape, buffers[i % 2]) for i in range(count)]
    graph = Graph("main", [*constants, Tensor("x", "INT8", data.shape)], [], [], [])
    allowed = (1 << 24) + 64 * data.size * min(count, 2)
    graph.spend(allowed - 1)
    graph.spend(1)
    with pytest.raises(ConversionError, match="far more is computed from the model's constants"):
        graph.spend(1)


def test_tensors_are_listed_once_those_of_the_file_first() -> None:
    graph, tensors, [first, _] = chain(2)
    tensors.reverse()
    graph.tensors = [tensors[0]]
    graph.set_input(first, 0, None)
    apart = Tensor("apart", "FLOAT32", (1, 4))
    graph.outputs.append(apart)
    assert list(graph.all_tensors()) == [tensors[0], tensors[1], apart]


def test_only_plain_constants_have_values() -> None:
    values = np.arange(6, dtype=np.int16).reshape(2, 3)
    tensor = constant("c", values)
    assert (tensor.type, tensor.shape, tensor.is_constant) == ("INT16", (2, 3), True)
    np.testing.assert_array_equal(tensor.array, values)
    for changed in ("is_sparse", "is_variable"):
        setattr(tensor, changed, True)
        assert tensor.array is None
        setattr(tensor, changed, False)
    tensor.type = "INT4"
    assert tensor.array is None
    assert not constant("empty", np.zeros(0, np.float32)).is_constant
    assert Tensor("x", "FLOAT32", (1,)).array is None


def test_sizes_that_only_a_run_tells_are_minus_one() -> None:
    known, unknown = Tensor("x", "FLOAT32", (1, 4)), Tensor("y", "FLOAT32", (1, 1), shape_signature=(-1, -1))
    assert (known.dims, known.channels) == ((1, 4), 4)
    assert (unknown.dims, unknown.channels) == ((-1, -1), -1)
    assert Tensor("z", "FLOAT32", ()).channels == -1


def test_a_grid_is_one_scale_above_zero() -> None:
    def grid(*scales: float) -> tuple[float, int] | None:
        points = np.full(len(scales), 7, np.int64)
        q = Quantization(np.asarray(scales, np.float32), points, 0)
        return Tensor("x", "INT8", (1,), quantization=q).per_tensor_quantization

    assert (grid(0.5), grid(), grid(0.5, 0.5), grid(0.0), grid(-1.0), grid(np.nan)) == ((0.5, 7), *[None] * 5)
    assert Tensor("x", "INT8", (1,)).per_tensor_quantization is None


def test_inputs_that_an_op_may_lack() -> None:
    [x, y] = (Tensor(name, "FLOAT32", (1,)) for name in "xy")
    op = Op(OpCode("CUSTOM", "LceBconv2d"), [x, None], [y])
    assert (op.name, op.input(0), op.optional(0), op.optional(1), op.optional(2)) == ("LceBconv2d", x, x, None, None)
    assert Op(OpCode("RELU"), [], [y]).name == "RELU"


def test_inputs_are_called_as_the_first_signature_calls_them() -> None:
    graph, [x, *_], _ = chain(1)
    signatures = [Signature(key, graph, [(key, x)], []) for key in ("first", "second")]
    model = Model([graph], [], [], [], None, signatures, 3, None)
    assert model.input_names == ["first"]
    model.graphs.append(Graph("body", [], [], [], []))
    assert model.input_names == ["first"]
    model.signatures = None
    assert model.input_names == ["t0"]


def test_channels_are_packed_into_whole_words() -> None:
    assert [packed_words(channels) for channels in (1, 31, 32, 33, 64)] == [1, 1, 1, 2, 2]
