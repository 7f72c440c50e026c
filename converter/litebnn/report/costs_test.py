import json
from pathlib import Path

import numpy as np
import pytest

from litebnn.contract import BConv2DOptions, Padding, PadValues
from litebnn.flatbuffer import read_model
from litebnn.graph import Graph, Op, Tensor, packed_words
from litebnn.report.costs import FILE, boards, host_costs, read_costs, write_costs
from litebnn.report.workload import Workload, edge_share, windows_share_little, workload_of
from litebnn.rules.build.bconv import bconv_of
from tests.support.float_models import FloatModel

TABLE = read_costs(FILE.read_text(encoding="utf-8"))


def bconv(size: int, channels: int, outputs: int, taps: int, **options: int) -> Op:
    same = {"padding": Padding.SAME, "pad_values": PadValues.ZERO}
    stride = options.get("stride_height", 1)
    x = Tensor("x", "INT32", (1, size, size, packed_words(channels)))
    y = Tensor("y", "FLOAT32", (1, -(-size // stride), -(-size // stride), outputs))
    minus_one, ones = np.zeros((outputs, taps, taps, channels), np.bool_), np.ones(outputs, np.float32)
    return bconv_of(x, y, "filter", minus_one, ones, ones, BConv2DOptions(channels, **{**same, **options}))


def test_work_of_a_binary_layer_counts_padding_and_edges() -> None:
    op = bconv(9, 40, 20, 3)
    work = workload_of(op, (), tile=16)
    assert work is not None
    assert work.amounts["macs"] == 81 * 9 * 64 * 32
    assert work.amounts["window words"] == 81 * 9 * 2
    assert work.amounts["floats"] == 81 * 20
    assert edge_share(op) == pytest.approx(1 - 49 / 81)
    assert work.amounts["edge outputs"] == pytest.approx(32 * 20)


@pytest.mark.parametrize(
    ("op", "runs"),
    [
        (bconv(8, 64, 64, 3), 3),
        (bconv(8, 64, 64, 1), 1),
        (bconv(8, 64, 64, 3, dilation_height_factor=2, dilation_width_factor=2), 9),
    ],
)
def test_windows_lie_in_runs_of_words(op: Op, runs: int) -> None:
    work = workload_of(op, ())
    assert work is not None
    assert work.amounts["runs"] == 8 * 8 * 64 * runs


@pytest.mark.parametrize(
    ("op", "little"),
    [
        (bconv(8, 64, 64, 3), False),
        (bconv(8, 64, 32, 3), True),
        (bconv(8, 64, 64, 1), True),
        (bconv(8, 512, 512, 3), False),
        (bconv(8, 320, 64, 3), True),
        (bconv(8, 320, 256, 3), False),
        (bconv(8, 128, 256, 3, stride_height=2, stride_width=2), True),
        (bconv(8, 256, 512, 3, stride_height=2, stride_width=2), False),
    ],
)
def test_which_layers_are_left_to_another_isa(op: Op, little: bool) -> None:
    """Tests that `costs.py` and the C++ code of an ISA delegate the same layers to another ISA."""
    assert windows_share_little(op, 384, 360, 64) == little


def test_every_op_of_a_float_model_has_a_time_on_every_board() -> None:
    model = FloatModel()
    x = model.conv(model.input(1, 8, 8, 4), np.ones((8, 3, 3, 4)), same=True)
    x = model.dense(model.reshape(model.max_pool(x, 2, 2), 1, 128), np.ones((10, 128)))
    graph: Graph = read_model(model.finish(model.elementwise("RELU", x))).graphs[0]
    for row in boards():
        works = [workload_of(op, ()) for op in graph.ops]
        assert all(work is not None and row.seconds(work) > 0 for work in works), row.board


def test_more_work_takes_longer() -> None:
    for row in TABLE:
        times = [row.seconds(workload_of(bconv(size, 64, 64, 3), (), tile=row.tile)) for size in (7, 14, 28, 56)]
        assert times == sorted(times)
        assert row.seconds(Workload("no such kind", {})) is None


def test_the_host_is_the_first_row_whose_words_its_system_says() -> None:
    by_isa = {row.isa: row for row in TABLE}
    assert host_costs(TABLE, {"avx2", "fma"}).isa == "avx2"
    assert host_costs(TABLE, set(by_isa["avx512_vbmi"].needs)).isa == "avx512_vbmi"
    assert host_costs(TABLE, set()).isa == "portable"


def test_the_table_reads_what_it_writes() -> None:
    written = write_costs(TABLE)
    assert read_costs(written) == TABLE
    assert json.loads(written)[0]["board"] == "host"
    assert Path(FILE).read_text(encoding="utf-8") == written
