import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Buffer, Counted, Negated, Origin, Reshaped, Tensor, Transposed, read_origins, then
from litebnn.graph.origin import METADATA
from litebnn.verify.divergence import LayerComparison
from litebnn.verify.pairs import pairs_of
from tests.support.float_models import FloatModel, sign_weights

RNG = np.random.default_rng(0)
MOVES = (Transposed((0, 2, 3, 1)), Reshaped((-1, 3, 5, 4), (-1, 60)), Negated("01" * 30))


@settings(max_examples=20)
@given(st.integers(0, 3))
def test_what_moves_do_is_undone(count: int) -> None:
    signs = RNG.choice([True, False], (2, 4, 3, 5))
    origin = Origin("x", MOVES[:count])
    np.testing.assert_array_equal(origin.restored(origin.made(signs)), signs)


@pytest.mark.parametrize("rising", [(True, True, True), (True, False, False), (False, False, False)])
def test_levels_are_counted_by_signs_and_back(rising: tuple[bool, ...]) -> None:
    ends = np.array([1.0, 1.0, -1.0])
    counted = Counted(0.5, tuple(np.where(rising, ends, -ends)), rising)
    levels = 0.5 + np.array([[-1.0, 1.0, 3.0]]) - 0.0
    signs = counted.done(levels)
    assert signs.shape == (1, 9)
    np.testing.assert_array_equal(counted.undone(signs), levels)


def test_what_only_a_run_tells_twice_has_no_origin() -> None:
    tensor = Tensor("x", "FLOAT32", (1, 1, 4), origin=Origin("x"))
    assert then(tensor, Reshaped((-1, 4), (-1, 2, 2)), signs=2) == Origin("x", (Reshaped((-1, 4), (-1, 2, 2)),), 2)
    assert then(tensor, Reshaped((-1, -1, 4), (-1, 4))) is None
    assert then(Tensor("y", "FLOAT32", (1, 4))) is None


def channels_first(name: str) -> FloatModel:
    model = FloatModel()
    x = model.transpose(model.input(1, 6, 6, 32), 0, 3, 1, 2)
    scaled = model.elementwise("MUL", x, model.const(RNG.choice([-0.75, 0.5], (32, 1, 1))))
    sign = model.sign(model.elementwise("ADD", scaled, model.const(RNG.standard_normal((32, 1, 1)))))
    sign.name = name
    model.graph.outputs.append(model.conv(model.transpose(sign, 0, 2, 3, 1), sign_weights(RNG, 8, 3, 3, 32)))
    return model


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("name", ["sign", "sign/bits", "a;b/levels", "sign/unturned/negated"])
def test_names_of_a_source_mean_nothing(name: str) -> None:
    model = channels_first(name)
    source = model.finish(*model.graph.outputs)
    comparison = LayerComparison("compare", source, litebnn.convert_tflite(source))
    [pair] = [pair for pair in comparison._pairs if pair.result.tensor.type == "INT32"]
    assert pair.source.tensor.name == name
    assert pair.result.origin.moves
    sample = [RNG.standard_normal((1, 6, 6, 32)).astype(np.float32)]
    assert list(comparison.divergences(sample)) == []


@pytest.mark.usefixtures("library")
def test_pairing_changes_neither_model() -> None:
    model = channels_first("sign")
    source = model.finish(*model.graph.outputs)
    models = [read_model(content) for content in (source, litebnn.convert_tflite(source))]
    before = [write_model(one) for one in models]
    for one in models:
        read_origins(one)
    assert pairs_of(models[0].graphs[0], models[1].graphs[0])
    assert [write_model(one) for one in models] == before


RECORDS = [
    b"", b"[]", b"{", b"\xff", b'{"0":1}', b'{"0":[]}', b'{"99":["x",0]}', b'{"-1":["x",0]}', b'{"x":["x",0]}',
    b'{"0":["x",32,["moved"]]}', b'{"0":["x",32,["transposed",[0,0,9]]]}', b'{"0":["x",32,["transposed",5]]}',
    b'{"0":["x",32,["reshaped",[7],[0]]]}', b'{"0":["x",-5]}', b'{"0":["x",99999999999]}',
    b'{"0":["x",0,["negated","1"]]}', b'{"0":["x",32,["negated","10"]]}', b'{"0":["x",32,["transposed",[1e999]]]}',
    b'{"0":["x",32,["counted",0,[],[]]]}', b'{"0":["x",32,["counted",1e999,[1],[1,1]]]}',
    b'{"0":["x",32,["counted",1e999,[1,2],[1,1]]]}', b"[" * 100_000,
]  # fmt: skip


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("record", RECORDS)
def test_a_record_that_is_none_of_ours_breaks_nothing(record: bytes) -> None:
    model = channels_first("sign")
    source = model.finish(*model.graph.outputs)
    result = read_model(litebnn.convert_tflite(source))
    place = next(i for i, tensor in enumerate(result.graphs[0].all_tensors()) if tensor.name.startswith("sign/"))
    record = record.replace(b'{"0"', f'{{"{place}"'.encode()).replace(b'"x"', b'"sign"')
    buffer = Buffer(np.frombuffer(record, np.uint8))
    result.buffers.append(buffer)
    result.metadata = [(METADATA, buffer)]
    comparison = LayerComparison("compare", source, write_model(result))
    sample = [RNG.standard_normal((1, 6, 6, 32)).astype(np.float32)]
    assert all(np.isfinite(one.flipped) for one in comparison.divergences(sample))
    comparison.given_the_sources_signs(sample)


@pytest.mark.usefixtures("library")
def test_a_record_is_short() -> None:
    model = channels_first("a_layer/with/a/long/name")
    result = read_model(litebnn.convert_tflite(model.finish(*model.graph.outputs)))
    [record] = [bytes(buffer.data) for name, buffer in result.metadata if name == METADATA and buffer.data is not None]
    assert b"long" not in record
    assert list(json.loads(record).values())[-1][:2] == [len("a_layer/with/a/long/name"), 32]
