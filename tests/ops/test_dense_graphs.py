"""Tests dense networks, in which a layer reads the outputs of all earlier layers. Fused execution, part by part, must
give the same bits as execution op by op."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.graph import packed_words
from litebnn.runtime.find import find_runtime
from tests.support import lce_models, reference

pytestmark = pytest.mark.usefixtures("library")
SIZE = (2, 5, 6)  # images, height, width
CHAINS = [
    ["MUL", "ADD"],
    ["MUL", "MAX_POOL_2D", "ADD"],
    ["MAX_POOL_2D"],
    ["MAX_POOL_2D", "MUL", "ADD"],
    ["ADD"],
    [],
]


class ImageGraph(lce_models.Graph):
    """A graph of images and packed signs of one size, which records every computed tensor."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = np.random.default_rng(seed)
        self.computed: list[int] = []
        self.channels: dict[int, int] = {}

    def image(self, channels: int, dtype: str = "float32", computed: bool = True) -> int:
        tensor = self.tensor((*SIZE, channels), dtype)
        self.channels[tensor] = channels
        self.computed += [tensor] * computed
        return tensor

    def channel_values(self, channels: int) -> int:
        return self.constant(self.random.standard_normal(channels).astype(np.float32))

    def apply(self, chain: list[str], image: int) -> int:
        """Appends ops in sequence: MUL and ADD with a constant for each channel, or a max pool."""
        for op in chain:
            source, image = image, self.image(self.channels[image])
            if op == "MAX_POOL_2D":
                self.max_pool(source, image, (2, 3), (1, 1), reference.SAME, int(self.random.integers(2)))
                continue
            options = getattr(lce_models.schema, f"{op.title()}OptionsT")()
            self.builtin(op, [source, self.channel_values(self.channels[image])], [image], options)
        return image

    def pack(self, image: int) -> int:
        packed = self.image(packed_words(self.channels[image]), "int32")
        self.custom("LceQuantize", [image], [packed])
        return packed

    def join(self, parts: list[int], dtype: str) -> int:
        whole = self.image(sum(self.channels[part] for part in parts), dtype)
        options = lce_models.schema.ConcatenationOptionsT()
        options.axis = 3
        self.builtin("CONCATENATION", parts, [whole], options)
        return whole

    def convolve(
        self, words: int, channels_out: int, filter_size: tuple[int, int] = (3, 3), pad_values: int = 1
    ) -> int:
        conv = lce_models.Conv(
            input_shape=(*SIZE, 32 * self.channels[words]),
            channels_out=channels_out,
            filter_size=filter_size,
            padding=reference.SAME,
            pad_values=pad_values,
            seed=int(self.random.integers(2**31)),
        )
        image = conv.add_to(self, words)
        self.channels[image] = conv.channels_out
        self.computed.append(image)
        return image


def run(model: bytes, images: list[Any], num_threads: int) -> list[Any]:
    delegate = litebnn.load_delegate(num_threads=num_threads)
    interpreter = find_runtime().Interpreter(model_content=model, experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    for details, image in zip(interpreter.get_input_details(), images, strict=True):
        interpreter.set_tensor(details["index"], image)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def assert_fused_as_op_by_op(
    graph: ImageGraph, inputs: list[int], outputs: list[int], given: list[Any], num_threads: int
) -> None:
    found = run(graph.build(inputs, outputs), given, num_threads)
    # All computed tensors are outputs of this graph, so the delegate fuses nothing.
    rest = [tensor for tensor in graph.computed if tensor not in outputs]
    expected = run(graph.build(inputs, outputs + rest), given, 1)
    for one, other in zip(found, expected[: len(outputs)], strict=True):
        np.testing.assert_array_equal(one, other)


@given(
    channels=st.lists(st.sampled_from([1, 31, 32, 40, 64]), min_size=1, max_size=3),
    layers=st.integers(1, 4),
    first=st.sampled_from(CHAINS),
    norm=st.sampled_from([["MUL", "ADD"], ["ADD"], ["MUL"], []]),
    last=st.sampled_from(CHAINS),
    joins=st.sampled_from(["images", "signs", "signs twice"]),
    num_threads=st.integers(1, 3),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_runs_part_by_part_gives_the_bits_of_what_runs_op_by_op(
    channels: list[int],
    layers: int,
    first: list[str],
    norm: list[str],
    last: list[str],
    joins: str,
    num_threads: int,
    seed: int,
) -> None:
    graph = ImageGraph(seed)
    inputs = [graph.image(count, computed=False) for count in channels]
    parts = [graph.apply(first, image) for image in inputs]
    for _ in range(layers):
        if joins == "images":
            words = graph.pack(graph.apply(norm, graph.join(parts, "float32")))
        else:
            words = graph.join([graph.pack(graph.apply(norm, part)) for part in parts], "int32")
        if joins == "signs twice":
            words = graph.join([graph.pack(graph.apply(norm, parts[0])), words], "int32")
        parts.append(graph.convolve(words, int(graph.random.choice([8, 32, 40]))))
    whole = graph.apply(last, graph.join(parts, "float32"))
    images = [graph.random.standard_normal((*SIZE, count)).astype(np.float32) for count in channels]
    assert_fused_as_op_by_op(graph, inputs, [whole], images, num_threads)
