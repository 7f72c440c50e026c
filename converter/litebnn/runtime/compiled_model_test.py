import gc
import importlib
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import write_model
from litebnn.graph import Graph, Model, Op, OpCode, Options, Signature, Tensor
from litebnn.runtime.environment import OPTIONS_NAME
from litebnn.system import HERE
from tests.needs import imported

litert = imported("ai_edge_litert.compiled_model", "compiled-model")

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"
NAMES = sorted(path.name.removesuffix(".npz") for path in GOLDEN.glob("*.npz"))


@pytest.fixture(scope="module")
def environment() -> Any:
    return litebnn.environment()


def golden(name: str) -> tuple[Path, Any]:
    return GOLDEN / f"{name}.lce.tflite", np.load(GOLDEN / f"{name}.npz")["input"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_it_computes_the_bits_of_the_interpreter(environment: Any, name: str, threads: int) -> None:
    path, x = golden(name)
    interpreter = litebnn.Interpreter(path, threads, runtime="ai-edge-litert")
    model = litebnn.CompiledModel(path, threads, environment=environment)
    for property in ("names", "shapes", "types", "quantization"):
        for end in ("input", "output"):
            assert getattr(model, f"{end}_{property}") == getattr(interpreter, f"{end}_{property}")
    assert model.predict(x).tobytes() == interpreter.predict(x).tobytes()


def test_it_computes_int8_layers(capfd: pytest.CaptureFixture[str]) -> None:
    # The import is inside this function, because it needs a runtime's schema.
    from tests.runtimes.cases import int8_layers

    for case in int8_layers():
        model = litebnn.CompiledModel(case.model, environment=litebnn.environment(verbose=True))
        assert "partition of 4 nodes" in capfd.readouterr().err  # the sum is fused
        np.testing.assert_array_equal(model.predict(case.input), case.expected)


def difference(dtype: str, with_signature: bool) -> bytes:
    """A model of a - b, whose signature lists the inputs in the opposite order."""
    a, b, result = Tensor("a", dtype, (2, 3)), Tensor("b", dtype, (2, 1)), Tensor("difference", dtype, (2, 3))
    code = OpCode("SUB")
    graph = Graph("main", [a, b, result], [a, b], [result], [Op(code, [a, b], [result], Options("SubOptions"))])
    signatures = [Signature("serving", graph, [("first", b), ("second", a)], [("result", result)])]
    return write_model(Model([graph], [], [code], [], None, signatures if with_signature else None, 3, None))


@pytest.mark.parametrize("with_signature", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_inputs_are_in_the_order_of_the_graph(environment: Any, dtype: str, with_signature: bool) -> None:
    content = difference(dtype.upper(), with_signature)
    a, b = np.arange(24, dtype=dtype).reshape(8, 3), np.arange(8, dtype=dtype).reshape(8, 1)
    model = litebnn.CompiledModel(content, environment=environment)
    np.testing.assert_array_equal(model.predict([a, b]), a - b)
    names = ["second", "first"] if with_signature else ["a", "b"]
    result = "result" if with_signature else "difference"
    assert (model.input_names, model.output_names) == (names, [result])
    np.testing.assert_array_equal(model.predict(dict(zip(names, [a, b], strict=True)))[result], a - b)
    with pytest.raises(ValueError, match=f"input {names[1]} has 4 samples, the first input 8"):
        model.predict([a, b[:4]])


def test_an_output_keeps_its_values_when_the_model_runs_again(environment: Any) -> None:
    path, x = golden("bias")
    model = litebnn.CompiledModel(path, environment=environment)
    first = model.predict(x)
    kept = first.copy()
    model.predict(-x)
    np.testing.assert_array_equal(first, kept)


def test_isa_and_verbose_reach_the_delegate(capfd: pytest.CaptureFixture[str]) -> None:
    path, _ = golden("bitpacked_chain")
    litebnn.CompiledModel(path, 3, environment=litebnn.environment(isa="portable", verbose=True))
    assert "partition of 4 nodes, ISA portable, 3 threads" in capfd.readouterr().err


def test_models_and_interpreters_run_side_by_side(environment: Any) -> None:
    path, x = golden("bitpacked_chain")
    expected = litebnn.Interpreter(path).predict(x).tobytes()
    makers = [
        lambda: litebnn.Interpreter(path, runtime="ai-edge-litert"),
        lambda: litebnn.CompiledModel(path, environment=environment),
        lambda: litebnn.CompiledModel(path, 2, isa="portable"),
    ]
    found: list[bytes] = []

    def run(make: Any) -> None:
        for _ in range(3):
            model = make()
            found.extend(model.predict(x).tobytes() for _ in range(5))

    threads = [threading.Thread(target=run, args=(make,)) for make in makers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 45


def folders(root: Path) -> list[Path]:
    return sorted(root.glob("litebnn-*"))


def test_its_folder_lives_as_long_as_the_last_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path, x = golden("bias")
    environment = litebnn.environment(isa="portable")
    model = litebnn.CompiledModel(path, environment=environment)
    (folder,) = folders(tmp_path)
    assert sorted(file.name for file in folder.iterdir()) == [HERE.accelerator, OPTIONS_NAME]
    del environment
    gc.collect()
    assert folders(tmp_path) == [folder]
    model.predict(x)
    del model
    gc.collect()
    assert folders(tmp_path) == []


def test_nothing_is_left_when_the_process_ends(tmp_path: Path) -> None:
    code = "import litebnn, sys; model = litebnn.CompiledModel(sys.argv[1])"
    command = [sys.executable, "-c", code, str(golden("bias")[0])]
    subprocess.run(command, check=True, env=os.environ | {"TMPDIR": str(tmp_path)}, capture_output=True)
    assert folders(tmp_path) == []


def test_a_forked_process_leaves_the_folder_alone(tmp_path: Path) -> None:
    code = "import litebnn, os, sys; e = litebnn.environment(); p = os.fork(); p or sys.exit(0); os.waitpid(p, 0)"
    check = f"{code}; assert os.path.isdir(e.options.runtime_path)"
    command = [sys.executable, "-c", check]
    subprocess.run(command, check=True, env=os.environ | {"TMPDIR": str(tmp_path)}, capture_output=True)
    assert folders(tmp_path) == []


def test_a_refused_op_is_named_in_one_line(environment: Any) -> None:
    content = golden("bias")[0].read_bytes().replace(b"stride_height\0", b"stride_heighx\0")
    with pytest.raises(ValueError, match="^the model is refused: litebnn: LceBconv2d, node [0-9]+: option [^\n]*$"):
        litebnn.CompiledModel(content, environment=environment)


def test_damaged_files_are_refused(environment: Any) -> None:
    model = golden("bitpacked_chain")[0].read_bytes()
    name = model.index(b"min_runtime_version") - 4
    too_long = model[:name] + (1 << 24).to_bytes(4, "little") + model[name + 4 :]
    no_utf8 = model.replace(b"serving_default", b"\xaaerving_default").replace(b"input_1", b"\xaanput_1")
    for damaged in [too_long, no_utf8, *(model[:size] for size in range(8, len(model) - 8, 1970))]:
        with pytest.raises(ValueError, match="^the model is refused[^\n]*$"):
            litebnn.CompiledModel(damaged, environment=environment)
    with pytest.raises(ValueError, match="lacks the identifier TFL3"):
        litebnn.CompiledModel(b"not a model")


def test_what_only_the_interpreter_takes_is_said_to_be_so() -> None:
    """A LiteRT environment that litebnn did not make lacks litebnn's accelerator. The error message then recommends
    litebnn.Interpreter.
    """
    plain = importlib.import_module("ai_edge_litert.environment").Environment.create()
    path = golden("bias")[0]
    message = (
        f"^{path} is refused by the CompiledModel of ai-edge-litert.* [0-9.]+[^ ]*, use litebnn.Interpreter: [^\n]*$"
    )
    with pytest.raises(ValueError, match=message):
        litebnn.CompiledModel(path, environment=plain)


def write(graphs: list[Graph], signatures: list[Signature] | None = None) -> bytes:
    codes = [op.code for graph in graphs for op in graph.ops]
    return write_model(Model(graphs, [], codes, [], None, signatures, 3, None))


def binary(name: str) -> Graph:
    """A graph of one op that reads x and y, such as ADD."""
    x, y, z = (Tensor(key, "FLOAT32", (1, 3)) for key in "xyz")
    return Graph(name, [x, y, z], [x, y], [z], [Op(OpCode(name), [x, y], [z], Options(f"{name.title()}Options"))])


def test_it_takes_the_signature_of_the_first_graph(environment: Any) -> None:
    graphs = [binary("SUB"), binary("ADD")]
    first, second = (
        Signature(graph.name, graph, list(zip("ab", graph.inputs, strict=True)), [("c", graph.outputs[0])])
        for graph in graphs
    )
    x, y = np.full((1, 3), 5, np.float32), np.full((1, 3), 2, np.float32)
    content = write(graphs, [second, first])
    for model in (litebnn.CompiledModel(content, environment=environment), litebnn.Interpreter(content)):
        assert model.input_names == ["a", "b"]
        np.testing.assert_array_equal(model.predict([x, y]), x - y)
    with pytest.raises(ValueError, match="use litebnn.Interpreter: no signature is of the model's first graph$"):
        litebnn.CompiledModel(write(graphs, [second]), environment=environment)


@pytest.mark.parametrize("twice", [[0, 2], [2, 2]])
def test_a_tensor_that_is_listed_twice_is_refused(environment: Any, twice: list[int]) -> None:
    """If a tensor is listed twice, LiteRT writes only one of its two buffers."""
    graph = binary("ADD")
    graph.outputs = [graph.tensors[place] for place in twice]
    name = graph.tensors[twice[0]].name
    with pytest.raises(ValueError, match="use litebnn.Interpreter: ") as refusal:
        litebnn.CompiledModel(write([graph]), environment=environment)
    assert str(refusal.value).endswith(f"{name} is two of the model's inputs and outputs")


def reshaped(declared: tuple[int, ...], *more: str) -> bytes:
    """A model that reshapes an input of 12 values to the shape in the input `shape`, and then applies more ops."""
    x, shape = Tensor("x", "FLOAT32", (1, 12)), Tensor("shape", "INT32", (2,))
    tensors = [x, shape]
    ops = []
    for name in ("RESHAPE", *more):
        result = Tensor(f"after {name}", "FLOAT32", declared)
        operands = [ops[-1].outputs[0] if ops else x, *([shape] if name == "RESHAPE" else [])]
        ops.append(Op(OpCode(name), operands, [result]))
        tensors.append(result)
    return write([Graph("main", tensors, [x, shape], [ops[-1].outputs[0]], ops)])


@pytest.mark.deep
@pytest.mark.parametrize("more", [[], ["RELU"], ["RELU", "NEG"]])
@pytest.mark.parametrize("declared", [(3, 4), (2, 6), (1, 1), (1, 100)])
def test_a_shape_that_only_a_run_tells_is_refused(environment: Any, declared: tuple[int, ...], more: list[str]) -> None:
    """LiteRT does not resize the buffer of an output whose shape depends on an input's values. A run would leave the
    buffer unchanged, fill a part of it, or write beyond its end. Therefore CompiledModel must refuse the model.
    """
    content = reshaped(declared, *more)
    x = np.arange(12, dtype=np.float32).reshape(1, 12)
    interpreter = litebnn.Interpreter(content, runtime="ai-edge-litert")
    for shape in ((3, 4), (2, 6)):
        assert interpreter.predict([x, np.array(shape, np.int32)]).shape == shape
    with pytest.raises(ValueError, match="use litebnn.Interpreter: "):
        litebnn.CompiledModel(content, environment=environment)


@pytest.mark.parametrize("declared", [(1, 1), (1, 2), (1, 100)])
def test_an_output_that_is_declared_wrongly_is_right(environment: Any, declared: tuple[int, ...]) -> None:
    graph = binary("ADD")
    graph.outputs[0].shape = declared
    x = np.arange(3, dtype=np.float32).reshape(1, 3)
    found = litebnn.CompiledModel(write([graph]), environment=environment).predict([x, x])
    np.testing.assert_array_equal(found, x + x)


def test_wrong_options_are_errors(environment: Any, tmp_path: Path) -> None:
    path, _ = golden("bias")
    with pytest.raises(ValueError, match="num_threads is 0"):
        litebnn.CompiledModel(path, 0)
    with pytest.raises(TypeError, match="num_threads is None, expected a whole number of at least 1"):
        litebnn.CompiledModel(path, None)
    with pytest.raises(ValueError, match="option num_threads: expected an integer from 1 to 256, found '257'"):
        litebnn.CompiledModel(path, 257)
    with pytest.raises(ValueError, match="option isa: .* found 'sparc'"):
        litebnn.CompiledModel(path, isa="sparc")
    with pytest.raises(ValueError, match="isa and environment are both given"):
        litebnn.CompiledModel(path, isa="portable", environment=environment)
    with pytest.raises(FileNotFoundError):
        litebnn.CompiledModel(tmp_path / "absent.tflite")
    with pytest.raises(FileNotFoundError, match="is no file"):
        litebnn.environment(library=tmp_path / "absent.so")


@pytest.mark.parametrize("missing", ["environment", "options"])
def test_a_runtime_that_is_too_old_is_an_error(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, f"ai_edge_litert.{missing}", None)
    with pytest.raises(ImportError, match="CompiledModel needs ai-edge-litert 2.1.6 or newer"):
        litebnn.environment()


@pytest.mark.parametrize(("hwcap", "refused"), [(0xFF, True), (0x1FF, False)])
def test_a_cpu_that_ends_the_process_is_an_error(
    hwcap: int, refused: bool, monkeypatch: pytest.MonkeyPatch, environment: Any
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    # In the package, the name `environment` is a function, so the test takes the module of this name from sys.modules.
    monkeypatch.setattr(sys.modules["litebnn.runtime.environment"], "_hwcap", lambda: hwcap)
    if refused:
        with pytest.raises(ImportError, match="libLiteRtWebGpuAccelerator.so .* use litebnn.Interpreter"):
            litebnn.CompiledModel(golden("bias")[0], environment=environment)
    else:
        litebnn.CompiledModel(golden("bias")[0], environment=environment)


@pytest.mark.parametrize("given", [3, "environment", [], True, object()])
def test_an_environment_of_another_type(given: object) -> None:
    with pytest.raises(TypeError, match=f"environment is {type(given).__name__}, expected what litebnn.environment"):
        litebnn.CompiledModel(golden("bias")[0], environment=given)


@pytest.mark.parametrize("runner", [litebnn.CompiledModel, litebnn.Interpreter])
@pytest.mark.parametrize("model", [3, None, [], 1.5])
def test_a_model_of_another_type(runner: Any, model: Any) -> None:
    with pytest.raises(TypeError, match=f"model is {type(model).__name__}, expected bytes or the path"):
        runner(model)


def test_other_arguments_of_another_type() -> None:
    with pytest.raises(TypeError, match="dispatch_library_path is int, expected a path"):
        litebnn.environment(dispatch_library_path=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"runtime is \[\], expected one of"):
        litebnn.Interpreter(golden("bias")[0], runtime=[])  # type: ignore[arg-type]
