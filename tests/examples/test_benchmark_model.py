import json
import os
import re

import numpy as np
import pytest

from litebnn.flatbuffer.schema import OPERATOR_NAMES
from litebnn.graph import Options, constant
from tests.support.lce_models import quantize_model, unpack_weights_model
from tests.support.programs import (
    GOLDEN,
    RUNTIMES,
    WITH_SIGN,
    error_of,
    host_programs,
    one_op_model,
    pixels_model,
    run,
    sanitized_programs,
    tensor,
    tflite_programs,
)
from toolchains.targets import ROOT


@pytest.fixture(params=RUNTIMES)
def benchmark_model(request):
    return [request.param() / "benchmark_model"]


@pytest.mark.parametrize("model", [model for model in GOLDEN if model != WITH_SIGN], ids=lambda m: m.name)
@pytest.mark.parametrize("use_xnnpack", [0, 1])
def test_runs_every_golden_model(benchmark_model, model, use_xnnpack):
    result = run(benchmark_model, graph=model, lcompute=1, use_xnnpack=use_xnnpack, num_runs=2, warmup_runs=0)
    assert result.returncode == 0, result.stderr
    assert "latency: median " in result.stdout


def test_runs_a_float_sign():
    result = run([host_programs() / "benchmark_model"], graph=WITH_SIGN, lcompute=1, num_runs=2)
    assert result.returncode == 0, result.stderr


@pytest.mark.deep
def test_a_builtin_that_the_library_lacks_is_one_line():
    message = error_of(run([tflite_programs() / "benchmark_model"], graph=WITH_SIGN, lcompute=1))
    assert message.endswith("It needs a newer runtime than TensorFlow Lite 2.9.0.")


@pytest.fixture
def measured(benchmark_model, tmp_path):
    """Runs benchmark_model on a golden model, and returns the content of the file of --output."""

    def measure(name="residual", **flags):
        output = tmp_path / "out.json"
        result = run(
            benchmark_model, graph=GOLDEN[0].with_name(f"{name}.lce.tflite"), lcompute=1, output=output, **flags
        )
        assert result.returncode == 0, result.stderr
        return json.loads(output.read_text())

    return measure


def test_json_holds_the_statistics_of_its_runs(measured):
    results = measured(num_runs=23, warmup_runs=3, num_threads=2)
    runs, latency = np.array(results["run_ms"]), results["latency_ms"]
    assert len(runs) == results["num_runs"] == 23
    assert results["warmup_runs"] == 3
    assert results["num_threads"] == 2
    expected = {"mean": runs.mean(), "std": runs.std(), "min": runs.min(), "max": runs.max(), "median": np.median(runs)}
    expected |= {f"p{percent}": np.percentile(runs, percent) for percent in (5, 90, 95, 99)}
    assert latency == pytest.approx(expected, rel=1e-6)
    assert 2**20 < results["peak_memory_bytes"] < 2**30
    assert results["ops"] == []


def test_one_run_has_statistics_too(measured):
    results = measured(num_runs=1, warmup_runs=0)
    assert set(results["latency_ms"].values()) == {results["run_ms"][0], 0}


def test_op_profile_names_our_ops_and_counts_their_calls(measured):
    results = measured(num_runs=10, warmup_runs=2, enable_op_profiling=1)
    ops = results["ops"]
    assert [op["op"] for op in ops] == ["LceQuantize", "LceBconv2d", "ADD"] * 2
    assert [op["node"] for op in ops] == [0, 1, 2, 3, 4, 5]
    assert all(op["calls"] == 10 and op["mean_ms"] >= 0 for op in ops)
    assert 0 < sum(op["mean_ms"] for op in ops) <= results["latency_ms"]["mean"]


def test_xnnpack_takes_the_float_ops_and_is_named(measured):
    ops = [op["op"] for op in measured(enable_op_profiling=1, use_xnnpack=1)["ops"]]
    assert ops == ["LceQuantize", "LceBconv2d", "TfLiteXNNPackDelegate"] * 2


def test_runs_with_our_library_as_external_delegate(measured):
    delegate = host_programs() / "liblitebnn.so"
    results = measured(enable_op_profiling=1, external_delegate_path=delegate, use_xnnpack=1)
    assert not [op for op in results["ops"] if op["op"].startswith("Lce")]


@pytest.mark.deep
@pytest.mark.parametrize("use_xnnpack", [0, 1])
def test_runs_clean_under_sanitizers(use_xnnpack):
    flags = {"graph": GOLDEN[0].with_name("residual.lce.tflite"), "use_xnnpack": use_xnnpack, "num_threads": 2}
    result = run([sanitized_programs() / "benchmark_model"], **flags, lcompute=1, num_runs=2, enable_op_profiling=1)
    assert result.returncode == 0, result.stderr
    assert not [line for line in result.stderr.splitlines() if not line.startswith("INFO: ")]


def test_json_escapes_the_names_in_a_model(benchmark_model, tmp_path):
    name = 'a"\\\n\x7fé'  # the program reads the two bytes of é as two characters
    model, output = tmp_path / "m.tflite", tmp_path / "out.json"
    model.write_bytes(pixels_model((1, 2, 2, 3), output=name))
    result = run(benchmark_model, graph=model, output=output, enable_op_profiling=1)
    assert result.returncode == 0, result.stderr
    assert json.loads(output.read_text())["ops"][0]["output"] == name.encode().decode("latin-1")


@pytest.mark.parametrize("dtype", ["INT8", "UINT8", "INT32", "FLOAT32"])
def test_feeds_inputs_of_any_type(benchmark_model, tmp_path, dtype):
    model = tmp_path / "m.tflite"
    model.write_bytes(pixels_model((3, 5), dtype))
    assert run(benchmark_model, graph=model, num_runs=1).returncode == 0


def test_text_has_no_random_values(benchmark_model, tmp_path):
    model = tmp_path / "m.tflite"
    words = [tensor(name, (4,), "STRING") for name in ("words", "others")]
    model.write_bytes(one_op_model("EQUAL", words, tensor("same", (4,), "BOOL"), Options("EqualOptions")))
    message = error_of(run(benchmark_model, graph=model))
    assert message == "the input words is string [4]: text cannot be made up"


@pytest.mark.deep
def test_an_index_out_of_bounds_is_one_line(tmp_path):
    model = tmp_path / "m.tflite"
    indices = constant("indices", np.array([[100_000_000]], np.int32))
    inputs = [indices, tensor("updates", (1,), "FLOAT32"), constant("shape", np.array([4], np.int32))]
    model.write_bytes(one_op_model("SCATTER_ND", inputs, tensor("out", (4,), "FLOAT32"), Options("ScatterNdOptions")))
    message = error_of(run([sanitized_programs() / "benchmark_model"], graph=model))
    assert message.startswith(f"{model}: the model cannot run: ")
    assert "scatter_nd index out of bounds" in message


def test_an_output_that_litert_does_not_hand_out_is_one_line(tmp_path):
    model = tmp_path / "m.tflite"
    model.write_bytes(one_op_model("WHERE", [tensor("c", (4,), "BOOL")], tensor("found", (4, 1), "INT64")))
    message = error_of(run([host_programs() / "benchmark_model"], graph=model))
    assert message == f"{model}: LiteRT hands out no output of a shape that only a run tells"


@pytest.mark.deep
def test_a_tensor_of_more_dimensions_than_litert_takes_is_one_line(tmp_path):
    model, ones = tmp_path / "m.tflite", (1,) * 9
    model.write_bytes(one_op_model("ABS", [tensor("x", ones, "FLOAT32")], tensor("y", ones, "FLOAT32")))
    message = error_of(run([sanitized_programs() / "benchmark_model"], graph=model))
    assert message.startswith(f"{model}: LiteRT refuses it (status 5); it loads no tensors")
    assert message.endswith("of more than 8 dimensions")


def test_an_op_that_litebnn_refuses_is_named(benchmark_model, tmp_path):
    model = tmp_path / "m.tflite"
    model.write_bytes(quantize_model((1, 2, 2, 3), "int32"))
    message = error_of(run(benchmark_model, graph=model, lcompute=1))
    assert message.startswith(f"{model}: the runtime ")
    assert "litebnn: LceQuantize" in message


def test_both_a_library_and_what_is_linked_in(measured):
    delegate = host_programs() / "liblitebnn.so"
    assert measured(external_delegate_path=delegate)["lcompute"]


def test_writes_into_a_pipe_and_through_a_link(benchmark_model, tmp_path):
    link, pipe = tmp_path / "link.json", tmp_path / "pipe"
    link.symlink_to("real.json")
    os.mkfifo(pipe)
    for output in (link, pipe):
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # lets the program open the pipe's other end
        result = run(benchmark_model, graph=GOLDEN[0], lcompute=1, num_runs=1, output=output)
        written = os.read(reader, 2**16)
        os.close(reader)
        assert result.returncode == 0, result.stderr
        content = written if output == pipe else (tmp_path / "real.json").read_bytes()
        assert json.loads(content)["num_runs"] == 1
    assert link.is_symlink()
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({}, "name the model with --graph=FILE"),
        ({"graph": "/nowhere.tflite"}, "cannot read the model /nowhere.tflite: No such file or directory"),
        ({"graph": GOLDEN[0], "num_runs": 0}, "--num_runs=0: expected a whole number from 1"),
        ({"graph": GOLDEN[0], "warmup_runs": -1}, "--warmup_runs=-1: expected a whole number from 0"),
        ({"graph": GOLDEN[0], "use_xnnpack": 2}, "--use_xnnpack=2: expected 0 or 1"),
        ({"graph": GOLDEN[0], "lcompute": 1, "output": "/nowhere/o.json"}, "cannot write --output=/nowhere/o.json"),
    ],
)
def test_a_mistake_is_one_line(benchmark_model, flags, message):
    assert error_of(run(benchmark_model, **flags)).startswith(message)


@pytest.mark.parametrize("output", ["/nowhere/o.json", "/", "", "link"])
def test_an_output_that_cannot_be_written_fails_before_the_runs(benchmark_model, tmp_path, output):
    """The model file does not exist either. The message about the output file shows that the program opens the output
    file before the model.
    """
    (tmp_path / "link").symlink_to("/nowhere/o.json")
    path = f"{tmp_path}/{output}" if output in ("", "link") else output
    message = error_of(run(benchmark_model, graph="/nowhere.tflite", output=path))
    assert message.startswith(f"cannot write --output={path}")


def test_needs_lcompute_for_our_ops(benchmark_model, tmp_path):
    packed = tmp_path / "packed.tflite"
    packed.write_bytes(unpack_weights_model(np.zeros((4, 1), np.int32), np.ones(4, np.float32), None, (4, 1, 1, 8)))
    for model in (GOLDEN[0], packed):
        assert error_of(run(benchmark_model, graph=model)).endswith("Add --lcompute 1 for litebnn's ops.")


def test_help_lists_every_flag(benchmark_model):
    text = run([*benchmark_model, "--help"]).stdout
    for name in ("graph", "num_threads", "num_runs", "warmup_runs", "enable_op_profiling", "use_xnnpack", "lcompute"):
        assert f"--{name} " in text
    assert "--output " in text


def test_builtin_ops_have_the_schemas_names():
    header = (ROOT / "programs" / "common" / "builtin_names.h").read_text()
    names = re.findall(r'"(\w+)"', header)
    known = {code: name for code, name in OPERATOR_NAMES.items() if code < len(names)}
    assert dict(enumerate(names)) == known
