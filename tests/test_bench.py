"""Tests the code of the benchmarks. The measured values are not checked."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

import bench.zoo
from bench import layers, models, threads
from bench.kernels import __main__ as kernels
from bench.kernels import model
from bench.start import __main__ as start
from litebnn.benchmark import LARQ, LARQ_DEFAULT, LITEBNN, XNNPACK, Contender, Measurement
from litebnn.convert import convert_tflite
from litebnn.flatbuffer import read_model
from litebnn.runtime import Interpreter
from tests.needs import need
from tests.support.float_models import FloatModel, dyadic, op_names, sign_weights
from toolchains.targets import ROOT, ToolkitError, find_target


def run(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.deep
@pytest.mark.parametrize("output", kernels.OUTPUTS)
def test_the_kernels_of_this_machine_are_timed(output: str) -> None:
    printed = run("bench.kernels", "--only=bconv 1x1 7x7", f"--output={output}")
    assert re.search(r"^bconv 1x1 7x7x512 .* ms .* GMAC/s", printed, re.MULTILINE), printed


@pytest.mark.usefixtures("library")
def test_int8_convolutions_are_timed() -> None:
    printed = run("bench.int8_convs", "--rounds=1", "--layer=9,3,8,3,2")
    assert re.search(r"^\| 3×3 / 2, 3 to 8, 9×9 \| [\d.]+ \| [\d.]+ \| [\d.]+ \|$", printed, re.MULTILINE), printed


@pytest.mark.usefixtures("library")
def test_layers_are_timed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(layers, "TRANSPOSED", ((4, 32, 8, 3, 2),))
    monkeypatch.setattr(layers, "DEPTHWISE", ((5, 40),))
    layers.compare_all(threads=1, rounds=1)
    transposed, depthwise = re.findall(r"^  .* float .* us .*$", capsys.readouterr().out, re.MULTILINE)
    assert re.search(r"4x4x32 -> 8, 3x3 / 2 .* binary +[\d.]+ us \( *[\d.]+ times\)", transposed)
    assert re.search(r"5x5x40 .* to floats .* us .* to bits .* us", depthwise)


@pytest.mark.deep
@pytest.mark.usefixtures("library")
def test_threads_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    threads.compare([threads.DIGITS], threads=2, turns=1)
    printed = capsys.readouterr().out
    assert re.findall(r"digits\.tflite +(\d) threads +median +[\d.]+ us", printed) == ["1", "2"] * 2
    assert "beside a busy process" in printed


@pytest.mark.usefixtures("library")
def test_starts_are_timed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(start, "model_file", lambda *_: threads.DIGITS)
    figures = start.first_result(LITEBNN, "digits")
    assert figures["seconds"] > 0
    assert figures["memory_bytes"] >= 0
    with pytest.raises(ToolkitError, match=r"xnnpack does not run .*digits\.tflite: "):
        start.first_result(XNNPACK, "digits")
    monkeypatch.setattr(start, "first_result", lambda *_: figures)
    start.compare(["digits"], peer=True, turns=2)
    lines = re.findall(r"^  (\S+) +median .* ms +best .* ms +CPU .* ms .* MiB$", capsys.readouterr().out, re.MULTILINE)
    assert lines == [LITEBNN, LARQ, LARQ_DEFAULT, XNNPACK]


@pytest.mark.deep
def test_the_kernels_of_another_cpu_are_counted() -> None:
    need("aarch64-linux-gnu-g++", "qemu-aarch64")
    printed = run("bench.kernels", "--target=rpi4", "--only=bconv 1x1 7x7", "--model=Nothing")
    counts = re.findall(r"^bconv 1x1 7x7x512 +[\d.]+ M instructions, ([\d.]+) per multiply-add$", printed, re.MULTILINE)
    *neon, sme2 = kernels.CORES
    if f"{sme2} is not counted: " not in printed:
        assert 0 < float(counts.pop()) < 1 / 128
    assert len(counts) == len(neon)
    # A multiply-add takes one bit, and a NEON vector instruction handles at most 128 bits.
    assert all(1 / 128 < float(each) < 1 for each in counts)
    assert "Nothing is not counted: there is no " in printed
    modelled = re.findall(r"([\w-]+): ([\d.]+) multiply-adds a cycle in the inner loop, ([\d.]+) in the", printed)
    if model.analyzer() is not None:
        assert [core for core, *_ in modelled] == [core for cores in kernels.CORES.values() for core in cores]
        assert all(float(inner) >= float(whole) > 1 for _, inner, whole in modelled)


def test_nobody_is_sent_to_make_a_model_that_nothing_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For 32-bit Arm, no runtime runs in the emulator, so instructions cannot be counted. The benchmark says so without
    looking for the network's file.
    """
    monkeypatch.setattr(kernels, "model_file", lambda *_: pytest.fail("the model is looked for"))
    kernels.count_model(SimpleNamespace(), find_target("armv7"), Path("liblitebnn.so"), "QuickNet")
    assert capsys.readouterr().out == "QuickNet is not counted: no C library is published for armv7 (armv7l)\n"


def test_loops_are_told_by_how_often_they_are_executed() -> None:
    instructions = {0: "ldr q0, [x0]", 4: "tbl v1.16b, {v0.16b}, v2.16b", 8: "b.ne #0", 12: "ret"}
    # The last block, which was executed twice, is not among `instructions`. Therefore its 5 * 2 executed instructions
    # are counted in `others`.
    blocks = model.Blocks({(0, 3): 1, (4, 2): 9, (12, 1): 1, (4096, 5): 2})
    loops, others = model.loops_of(blocks, instructions)
    assert [(loop.executions, len(loop.instructions), loop.macs) for loop in loops] == [
        (1, 1, 0),
        (10, 2, 128),
        (1, 1, 0),
    ]
    assert others == 10


def test_a_layer_takes_the_cycles_of_its_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "cycles_of", lambda loop, core: 2.0 * len(loop))
    loops = [model.Loop(("tbl",), 100), model.Loop(("cnt", "cnt"), 10), model.Loop(("add",), 1000)]
    assert model.model_layer(loops, 7, "neoverse-n1") == model.LayerModel(inner_loop=64.0, cycles=200 + 40 + 2000 + 7)


def test_a_failing_command_is_one_line() -> None:
    with pytest.raises(ToolkitError, match=r"^sh ended with code 3: a\.cc: error: no such thing$"):
        kernels.output_of(["sh", "-c", "echo first; echo 'a.cc: error: no such thing' >&2; exit 3"])


def test_a_network_that_was_not_made_says_what_makes_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench.zoo, "ZOO", tmp_path)
    with pytest.raises(ToolkitError, match=r"QuickNet\.lce\.tflite: bench/zoo/make_models.py writes it"):
        bench.zoo.model_file("QuickNet", "lce")


def test_networks_are_written_in_an_environment_without_litebnn() -> None:
    script = "import sys; sys.modules['litebnn'] = None; import bench.zoo"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_the_peer_that_is_not_installed_says_how(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(models, "PEER_PYTHON", tmp_path / "python")
    with pytest.raises(ToolkitError, match=r"bench/zoo/make_models.py says how to make that environment"):
        models.compare_all(["QuickNet"], [], peer=True, threads=1, rounds=1)


def test_what_was_measured_is_printed_and_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Contender] = []

    def measure(contenders: list[Contender], **options: object) -> list[Measurement]:
        assert options == {"turns": 2, "runs": 1, "ops": False}
        asked.extend(contenders)
        milliseconds = {LITEBNN: (6, 1.0, 2.0), XNNPACK: (2, 4.0, 4.0)}
        figures = [milliseconds[each.runtime] for each in contenders]
        return [
            Measurement(each, runs, best / 1e3, dict.fromkeys((50, 90, 99), median / 1e3), 0.0, 2**20, 0, ())
            for each, (runs, best, median) in zip(contenders, figures, strict=True)
        ]

    monkeypatch.setattr(models, "measure", measure)
    monkeypatch.setattr(models, "model_file", lambda name, form: tmp_path / form)
    monkeypatch.setattr(models, "convert_network", lambda name: tmp_path / "litebnn")
    models.compare("QuickNet", ["litebnn", "xnnpack"], threads=1, rounds=2)
    assert asked == [Contender(tmp_path / "litebnn"), Contender(tmp_path / "float", XNNPACK)]
    header, ours, theirs = capsys.readouterr().out.splitlines()
    assert header == "QuickNet, 1 thread, 2 turns each"
    assert "median     2.00 ms ( 1.00)   best     1.00 ms ( 1.00)       6 runs   peak    1.0 MiB" in ours
    assert "median     4.00 ms ( 2.00)   best     4.00 ms ( 4.00)       2 runs" in theirs
    models.compare_all(["QuickNet"], [], peer=False, threads=1, rounds=2, output=tmp_path / "times.json")
    written = json.loads((tmp_path / "times.json").read_text())
    assert written["threads"] == 1
    assert written["models"]["QuickNet"] == {
        "litebnn": {"median_ms": 2.0, "best_ms": 1.0, "runs": 6, "peak_bytes": 2**20},
        "xnnpack": {"median_ms": 4.0, "best_ms": 4.0, "runs": 2, "peak_bytes": 2**20},
    }


@pytest.mark.usefixtures("library")
def test_the_floor_has_the_float_layers_alone() -> None:
    from bench.zoo.floor import float_layers

    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.input(1, 8, 8, 3), dyadic(rng, 32, 3, 3, 3), stride=(2, 2), same=True, activation="relu")
    x = model.conv(model.elementwise("ADD", x, x), dyadic(rng, 32, 1, 1, 32))
    x = model.conv(model.sign(x), sign_weights(rng, 8, 3, 3, 32), same=True)
    x = model.dense(model.reshape(x, 1, 128), dyadic(rng, 5, 128))
    layers = float_layers(convert_tflite(model.finish(x)))
    assert op_names(layers) == ["CONV_2D", "CONV_2D", "FULLY_CONNECTED"]
    interpreter = Interpreter(layers)
    assert [shape[-1] for shape in interpreter.input_shapes] == [3, 32, 128]
    shapes = [output.shape for output in interpreter.predict([np.zeros(s, "f4") for s in interpreter.input_shapes])]
    assert shapes == [(1, 4, 4, 32), (1, 4, 4, 32), (1, 5)]


@pytest.mark.usefixtures("library")
def test_float_and_int8_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bench.zoo import int8

    monkeypatch.setattr(bench.zoo, "ZOO", tmp_path)
    with pytest.raises(ToolkitError, match="there is no network in"):
        int8.compare_all([], runs=1, isa=None)
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.input(1, 224, 224, 3), dyadic(rng, 32, 3, 3, 3), stride=(4, 4), same=True)
    (tmp_path / "Tiny.float.tflite").write_bytes(
        model.finish(model.conv(model.sign(x), sign_weights(rng, 8, 1, 1, 32)))
    )
    int8.compare_all([], runs=2, isa=None)
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\| Tiny( \| \d+\.\d\d){6} \|", lines[-1])
    assert {path.name for path in tmp_path.iterdir()} >= {"Tiny.litebnn.tflite", "Tiny.int8.tflite"}
    with pytest.raises(ToolkitError, match="sparc"):
        int8.compare_all(["Tiny"], runs=1, isa="sparc")


@pytest.mark.usefixtures("library")
def test_all_layers_of_a_quantized_network_are_int8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.zoo.convert import quantize_network

    monkeypatch.setattr(bench.zoo, "ZOO", tmp_path)
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.input(1, 224, 224, 3), dyadic(rng, 32, 3, 3, 3), stride=(4, 4), same=True)
    source = model.finish(model.conv(model.sign(x), sign_weights(rng, 8, 1, 1, 32)))
    (tmp_path / "Tiny.float.tflite").write_bytes(source)
    quantized = quantize_network("Tiny").read_bytes()
    layers = [op for op in read_model(quantized).ops() if op.name == "CONV_2D"]
    assert [op.output.type for op in layers] == ["INT8", "INT8"]
    assert len(quantized) < len(source)
    images = np.zeros((1, 224, 224, 3), np.float32)
    assert Interpreter(quantized).predict(images).shape == Interpreter(source).predict(images).shape


@pytest.mark.usefixtures("library")
def test_int8_layers_run_alone() -> None:
    from bench.zoo.floor import float_layers

    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.input(1, 8, 8, 3), dyadic(rng, 32, 3, 3, 3), same=True)
    x = model.conv(model.sign(x), sign_weights(rng, 32, 1, 1, 32))
    source = model.finish(model.dense(model.reshape(x, 1, 2048), dyadic(rng, 5, 2048)))
    samples = [rng.standard_normal((1, 8, 8, 3)).astype(np.float32)]
    layers = float_layers(convert_tflite(source, representative_dataset=samples))
    assert op_names(layers) == ["CONV_2D", "FULLY_CONNECTED"]
    interpreter = Interpreter(layers)
    assert interpreter.input_types == [np.int8, np.int8]
    assert [output.shape for output in interpreter.predict([np.zeros(s, "i1") for s in interpreter.input_shapes])] == [
        (1, 8, 8, 32),
        (1, 5),
    ]


@pytest.mark.usefixtures("library")
def test_the_bound_counts_outputs_and_what_moves() -> None:
    from bench.zoo.floor import BinaryWork, binary_work

    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.input(1, 8, 8, 3), dyadic(rng, 32, 1, 1, 3))
    x = model.elementwise("ADD", model.conv(model.sign(x), sign_weights(rng, 32, 1, 1, 32)), x)
    x = model.conv(model.sign(x), sign_weights(rng, 32, 1, 1, 32))
    converted = convert_tflite(model.finish(model.dense(model.reshape(x, 1, 2048), dyadic(rng, 5, 2048))))
    pixels, tensor = 64, 64 * 32 * 4
    # The bytes that this network with two binary layers moves. The float layer's output is read twice: by the first
    # packing of signs, and by the addition. The sum stays in registers until its signs are packed. Packed signs are
    # written and read. The last binary layer's output is written, and the RESHAPE reads and writes it.
    moved = 2 * tensor + 2 * 2 * pixels * 4 + tensor + 2 * tensor
    assert binary_work(converted) == BinaryWork(2 * pixels * 32 * 32, 2 * pixels * 32, moved, 0)
    assert BinaryWork(4, 6, 8, 10).seconds(BinaryWork(2, 3, 4, 5)) == (2, 2, 2, 2)


@pytest.mark.usefixtures("library")
def test_the_bound_counts_weights_that_are_used_once() -> None:
    from bench.zoo.floor import binary_work

    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 4, 4, 64)), sign_weights(rng, 32, 4, 4, 64))
    converted = convert_tflite(model.finish(model.dense(model.reshape(x, 1, 32), dyadic(rng, 5, 32))))
    assert binary_work(converted).weights == 32 * 4 * 4 * 64 / 8


def test_the_macs_of_weights_are_done_while_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.zoo import floor

    line = "bounds, best: loop {} GMAC/s, outputs 2.0 G/s, read and written 3.0 GB/s, weights 4.0 GB/s"
    monkeypatch.setattr(floor, "build", lambda target: Path())
    for macs, weights in ((64.0, 8e9), (16.0, math.inf)):
        monkeypatch.setattr(floor, "output_of", Mock(return_value=line.format(macs)))
        assert floor.speeds("") == pytest.approx((macs * 1e9, 2e9, 3e9, weights))


def test_the_zoo_is_a_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from bench.zoo import __main__ as zoo
    from bench.zoo.floor import BinaryWork

    def measure(contenders: list[Contender], **options: object) -> list[Measurement]:
        seconds = {"A.litebnn.tflite": 2e-3, "A.float.tflite": 30e-3, "A.lce.tflite": 9e-3, "A.floor.tflite": 1e-3}
        seconds |= {"A.int8.tflite": 1.5e-3, "A.int8-floor.tflite": 0.4e-3, "A.lce-int8.tflite": 6e-3}
        seconds |= {"A.quantized.tflite": 18e-3}
        return [
            Measurement(each, 1, 0.0, {50: seconds[each.model.name]}, 0.0, 0, 0, ())  # figures for one line
            for each in contenders
        ]

    for form in ("float", "litebnn", "floor", "int8", "int8-floor", "quantized"):
        (tmp_path / f"A.{form}.tflite").touch()
    monkeypatch.setattr(zoo, "quantize_network", lambda name: None)
    monkeypatch.setattr(models, "measure", measure)
    monkeypatch.setattr(zoo, "prepare", lambda name, int8: BinaryWork(macs=3e6, outputs=1e6, moved=6e6, weights=4e6))
    monkeypatch.setattr(zoo, "speeds", lambda isa: BinaryWork(macs=5e9, outputs=1e10, moved=1.2e11, weights=8e10))
    monkeypatch.setattr(zoo, "ZOO", tmp_path)
    monkeypatch.setattr(bench.zoo, "ZOO", tmp_path)
    monkeypatch.setattr(zoo, "PEER_PYTHON", Path(sys.executable))
    zoo.measure_all([], "host", "", 1, tmp_path / "zoo.json")
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "| A | 2.00 | – | 30.00 | 1.60 | 1.80 | 1.25 | 1.11 | – | 15.0 |",
        "| A, int8 | 1.50 | – | 18.00 | 1.00 | 1.20 | 1.50 | 1.25 | – | 12.0 |",
    ]
    for form in ("lce", "lce-int8"):
        (tmp_path / f"A.{form}.tflite").touch()
    zoo.measure_all(["A"], "host", "", 1, tmp_path / "zoo.json")
    table = capsys.readouterr().out.splitlines()
    assert table[-2:] == [
        "| A | 2.00 | 9.00 | 30.00 | 1.60 | 1.80 | 1.25 | 1.11 | 4.5 | 15.0 |",
        "| A, int8 | 1.50 | 6.00 | 18.00 | 1.00 | 1.20 | 1.50 | 1.25 | 4.0 | 12.0 |",
    ]
    assert json.loads((tmp_path / "zoo.json").read_text())["models"]["A"]["floor"] == pytest.approx(1.6)
    monkeypatch.setattr(bench.zoo, "ZOO", tmp_path / "empty")
    with pytest.raises(ToolkitError, match=r"there is no network in .*empty: bench/zoo/make_models.py writes them"):
        zoo.measure_all([], "host", "", 1)


def test_the_chart_is_that_of_the_measured_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("bench")
    from bench.zoo import chart

    times = json.loads(chart.TIMES.read_text())
    medians = [each[kind]["median_ms"] for each in times["models"].values() for kind in chart.KINDS if kind in each]
    drawn = [f">{median:.3g} ms<" for median in medians]
    assert [label for label in drawn if label not in chart.CHART.read_text()] == []
    monkeypatch.setattr(chart, "CHART", tmp_path / "zoo.svg")
    assert chart.main() == 0
    svg = (tmp_path / "zoo.svg").read_text()
    assert [label for label in drawn if label not in svg] == []
    for light, dark in chart.COLOURS.values():
        assert f"{light}" in svg.partition("</style>")[2]
        assert f"{dark}!important" in svg.partition("</style>")[0]


@pytest.mark.deep
def test_what_is_timed_here_is_counted_for_boards() -> None:
    """If an op has measured costs on this machine, boards must have costs for it too. Otherwise the total of a
    network on a board would leave the op out.
    """
    need("bench")
    from bench.costs.boards import COUNTED, own_ops
    from bench.costs.fit import workloads_of
    from bench.costs.suite import binary_networks, other_networks
    from litebnn.report.costs import boards

    def kinds(networks: Iterable[bytes]) -> set[str]:
        return {work.kind for network in networks for work in workloads_of(network, boards()[-1])[0]}

    others, own = dict(other_networks()), dict(binary_networks())
    timed = kinds([*others.values(), *own.values()])
    assert {"transposed conv int8", "int8 and back", "LceDequantize", "max_pool of litebnn"} <= timed
    assert kinds([*(others[name] for name in COUNTED), *own_ops().values()]) == timed - {"LceBconv2d"}
