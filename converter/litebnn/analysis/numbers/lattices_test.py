from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.analysis.numbers.lattices import Lattice, lattice_of
from litebnn.contract import Padding
from litebnn.graph import Tensor
from tests.support.float_models import FloatModel, dyadic, sign_weights
from tests.support.level_spellings import dorefa
from tests.zeros.chains import chained

LINKS = ("doubled", "opposite", "of channels", "raised", "lowered", "zeros", "ones", "max", "mean", "TANH", "RELU")


def layer(model: FloatModel, x: Tensor, rng: np.random.Generator, kind: str) -> Tensor:
    if kind == "depthwise":
        return model.depthwise_conv(x, sign_weights(rng, 1, 3, 3, x.channels), np.zeros(x.channels))
    bias = rng.integers(-2, 3, 4) / 2 if kind == "biased" else None
    weights = sign_weights(rng, 4, 3, 3, x.channels, alpha=kind != "equal")
    if kind == "ternary":
        weights *= rng.integers(0, 2, weights.shape)
    return model.conv(x, weights, bias, same=kind == "padded")


KINDS = st.sampled_from(["plain", "equal", "padded", "biased", "ternary", "depthwise"])


@settings(max_examples=40)
@given(
    source=st.sampled_from(["sign", "two values", "levels"]),
    channels=st.sampled_from([3, 4]),
    kinds=st.lists(KINDS, max_size=1),
    links=st.lists(st.sampled_from(LINKS), max_size=3),
    added=st.sampled_from(["", "ADD", "SUB", "MUL"]),
    seed=st.integers(0, 99),
)
def test_all_numbers_are_of_the_lattice(
    source: str, channels: int, kinds: list[str], links: list[str], added: str, seed: int
) -> None:
    model, rng = FloatModel(), np.random.default_rng(seed)
    x = model.input(1, 8, 8, channels)
    spellings: dict[str, Any] = {
        "sign": model.sign,
        "two values": model.two_values,
        "levels": lambda x: dorefa(model, x),
    }
    tensor = spellings[source](x)
    for kind in kinds:
        tensor = layer(model, tensor, rng, kind)
    tensor = chained(model, tensor, links)
    if added:
        tensor = model.elementwise(added, tensor, model.sign(tensor))
    lattice = lattice_of(model.graph, tensor)
    if lattice is None:
        return
    values = litebnn.Interpreter(model.finish(tensor)).predict(dyadic(rng, 1, 8, 8, channels, largest=16))
    if np.all(np.isfinite(lattice.step)):
        distance = values / lattice.step - lattice.phase
        np.testing.assert_allclose(distance, np.rint(distance), atol=1e-4)
    assert not (lattice.is_never_zero and np.any(values == 0))
    assert lattice.has_zero or not np.any(values == 0)


def lattice(model: FloatModel, tensor: Tensor) -> tuple[list[float], list[float]]:
    found = lattice_of(model.graph, tensor)
    assert isinstance(found, Lattice)
    return found.step.tolist(), found.phase.tolist()


def test_sums_of_an_even_and_of_an_odd_number_of_signs() -> None:
    model = FloatModel()
    for channels, phase in ((4, 0.0), (5, 0.5)):
        sign = model.sign(model.input(1, 4, 4, channels))
        total = model.conv(sign, np.full((2, 1, 1, channels), 0.3))
        assert lattice(model, total)[1] == [phase] * 2
        assert lattice(model, model.transpose(total, 0, 3, 1, 2))[1] == [phase]
        assert lattice(model, model.elementwise("TANH", total))[1] == [phase] * 2


def test_a_step_for_each_channel_and_a_common_one() -> None:
    model = FloatModel()
    sign = model.sign(model.input(1, 4, 4, 3))
    scaled = model.elementwise("MUL", sign, model.const([0.5, -1, 1.5]))
    assert lattice(model, scaled) == ([1, 2, 3], [0.5, 0.5, 0.5])
    assert lattice(model, model.elementwise("ADD", scaled, sign)) == ([1, 2, 1], [0.5, 0, 0.5])
    shifted = model.elementwise("ADD", scaled, model.const([0.5, 0.5, 0]))
    assert lattice(model, shifted) == ([1, 2, 3], [0, 0.75, 0.5])
    assert lattice(model, model.elementwise("MUL", sign, model.const([0, 1, 2]))) == ([1, 2, 4], [0, 0.5, 0.5])


def test_means_and_products_of_signs() -> None:
    model = FloatModel()
    sign = model.sign(model.input(1, 4, 4, 3))
    assert lattice(model, model.op("MEAN", [sign, model.const([1, 2], np.int32)], (1, 3))) == ([1 / 8], [0])
    assert lattice(model, model.op("SUM", [sign, model.const([3], np.int32)], (1, 4, 4))) == ([2], [0.5])
    rows, columns = model.sign(model.input(1, 4, 3)), model.sign(model.input(1, 3, 4))
    product = model.op("BATCH_MATMUL", [rows, columns], (1, 4, 4), adj_x=False, adj_y=False)
    assert lattice(model, product) == ([2], [0.5])


def test_other_numbers_are_of_no_lattice() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 3)
    sign, other = model.sign(x), model.sign(model.input(1, 4, 4, 3))
    for tensor in (
        x,
        model.conv(x, sign_weights(np.random.default_rng(0), 2, 1, 1, 3)),
        model.conv(sign, np.random.default_rng(0).standard_normal((2, 1, 1, 3))),
        model.conv(sign, model.input(2, 1, 1, 3)),
        model.elementwise("ADD", sign, model.elementwise("MUL", other, model.const(np.pi))),
        model.elementwise("ADD", sign, x),
        model.pad(sign, [(1, 1), (1, 1)], -np.inf),
        model.op("AVERAGE_POOL_2D", [sign], (1, 4, 4, 3), padding=Padding.SAME, filter_height=2, filter_width=2),
    ):
        assert lattice_of(model.graph, tensor) is None
