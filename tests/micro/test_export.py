"""Tests that exported networks compute the same bits as TensorFlow Lite's reference kernels and the portable ISA."""

import errno
import json
import os
import re
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.analysis.quantization import pack_levels
from litebnn.cli import main
from litebnn.flatbuffer import read_model
from litebnn.graph import Buffer, Tensor
from litebnn.micro import PACKAGES
from litebnn.micro.folder import MARK
from tests.micro import compiled, networks
from tests.support import lce_models, reference
from tests.support.float_models import FloatModel, sign_weights
from tests.support.quantized_models import TrainedModel, parameters
from toolchains.targets import ROOT

GOLDEN = ROOT / "tests" / "golden"
DIGITS = ROOT / "examples" / "label_image" / "digits.tflite"
MODELS = [*sorted(GOLDEN.glob("*.tflite")), DIGITS]
# Models for the quick tests. Together they have binary layers with every type of output, float and int8 ops, and ops
# that run together in strips of a few rows.
FEW = ["conv_pool_bn_conv.lce", "int8_qat.lce"]
BYTES_OF_DIGITS = 48 << 10, 16 << 10

pytestmark = [pytest.mark.usefixtures("library"), pytest.mark.needs("gcc")]


def exported(model: Path | bytes, folder: Path, **options: object) -> litebnn.Export:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return litebnn.export_c(model, folder / "network", **options)


def passes(model: Path | bytes, folder: Path, **options: object) -> litebnn.Export:
    """Exports a model, and runs its self-test, compiled only from the exported files."""
    export = exported(model, folder, **options)
    assert compiled.check_alone(folder / "network").endswith("passed\n")
    return export


@pytest.mark.parametrize("name", FEW)
def test_a_golden_model_is_bit_equal(name: str, tmp_path: Path) -> None:
    export = passes(GOLDEN / f"{name}.tflite", tmp_path)
    assert export.exact


@pytest.mark.parametrize(("axis", "size"), [(1, 5), (2, 4), (3, 32)])
def test_gathered_elements_are_equal(axis: int, size: int, tmp_path: Path) -> None:
    model = FloatModel()
    indices = [size - 1, *range(size), 0, 2, 1, 0, 3]
    shape = [1, 5, 4, 32]
    x = model.input(*shape)
    shape[axis] = len(indices)
    y = model.op("GATHER", [x, model.const(indices, np.int32)], shape, axis=axis)
    passes(model.finish(y), tmp_path)


@pytest.mark.parametrize(("kernels", "kernel"), [("compact", "pairs.c"), ("fast", "triples.c")])
def test_files_that_are_not_called_are_left_out(kernels: str, kernel: str, tmp_path: Path) -> None:
    exported(lce_models.Conv((1, 5, 6, 64), 64, output="packed").model(), tmp_path, kernels=kernels)
    files = {path.name for path in (tmp_path / "network" / "src").glob("*.c")}
    assert files == {"model.c", "bconv2d.c", "bconv2d_rows.c", "planes.c", kernel}


@pytest.mark.deep
@pytest.mark.parametrize("kernels", ["compact", "fast"])
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_every_golden_model_is_bit_equal_under_sanitizers(path: Path, kernels: str, tmp_path: Path) -> None:
    export = exported(path, tmp_path, kernels=kernels)
    assert export.exact == (path != DIGITS)
    assert compiled.check(tmp_path / "network", *compiled.SANITIZERS).endswith("passed\n")


@pytest.mark.deep
@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize("kind", ["exact", "any", "int8"])
def test_random_networks_are_equal(kind: str, block: int, tmp_path: Path) -> None:
    for seed in range(block * 7, block * 7 + 7):
        is_int8 = kind == "int8"
        model = networks.int8_network(seed) if is_int8 else networks.float_network(seed, exact=kind == "exact")
        flags = compiled.SANITIZERS if seed % 2 else ("-O1",)
        export = exported(model, tmp_path, kernels=("compact", "fast")[seed // 2 % 2])
        assert export.exact or kind == "any"
        assert compiled.check(tmp_path / "network", *flags).endswith("passed\n"), f"{kind} {seed}"


def test_a_wrong_result_is_seen(tmp_path: Path) -> None:
    exported(_dense(), tmp_path)
    source = tmp_path / "network" / "src" / "model.c"
    text = source.read_text()
    source.write_text(re.sub(r"(constant_\d+|layer_0_weights)(\[\d+\] = \{\s+)", r"\g<1>\g<2>9.0f + ", text, count=1))
    assert source.read_text() != text
    with pytest.raises(AssertionError, match="FAILED"):
        compiled.check_alone(tmp_path / "network")


def _dense() -> bytes:
    model = FloatModel()
    x = model.input(1, 8)
    return model.finish(model.dense(x, model.const(np.eye(4, 8))))


def test_the_digits_network_fits_a_small_board(tmp_path: Path) -> None:
    export = exported(DIGITS, tmp_path)
    flash, ram = BYTES_OF_DIGITS
    assert export.constant_bytes < flash // 2
    assert export.arena_bytes + export.input_bytes + export.output_bytes < ram - 4096


def test_strips_take_less_memory_than_whole_images(tmp_path: Path) -> None:
    model = FloatModel()
    x = model.input(1, 32, 32, 3)
    y = model.conv(x, np.random.default_rng(0).standard_normal((32, 3, 3, 3)))
    y = model.conv(model.sign(model.max_pool(y, 2, 2)), sign_weights(np.random.default_rng(0), 8, 3, 3, 32))
    export = exported(model.finish(y), tmp_path)
    assert export.arena_bytes < 30 * 30 * 32 * 4 / 5
    assert len(export.steps[0].ops) > 1


def test_two_convolutions_that_are_added_are_both_computed(tmp_path: Path) -> None:
    model, rng = FloatModel(), np.random.default_rng(0)
    x = model.input(1, 8, 8, 32)
    main = model.conv(model.sign(x), sign_weights(rng, 64, 3, 3, 32), same=True)
    added = model.elementwise("ADD", main, model.conv(x, rng.standard_normal((64, 1, 1, 32))))
    passes(model.finish(model.conv(model.sign(added), sign_weights(rng, 8, 3, 3, 64))), tmp_path)


@pytest.mark.parametrize("first", [True, False])
def test_a_strip_reads_its_own_input_again(first: bool, tmp_path: Path) -> None:
    model, rng = FloatModel(), np.random.default_rng(0)
    x = model.input(1, 8, 8, 8)
    pair = [x, model.conv(x, rng.standard_normal((8, 3, 3, 8)), same=True)]
    added = model.elementwise("ADD", *(pair if first else reversed(pair)))
    export = passes(model.finish(model.max_pool(added, 2, 2)), tmp_path)
    assert [step.kinds for step in export.steps] == [("CONV_2D", "ADD", "MAX_POOL_2D")]


def test_ops_that_nothing_reads_are_left_out(tmp_path: Path) -> None:
    model = FloatModel()
    x = model.input(1, 5, 5, 3)
    unread = model.op("COS", [model.conv(x, np.ones((64, 3, 3, 3)))], (1, 3, 3, 64))
    model.reshape(unread, 576)
    export = passes(model.finish(model.op("NEG", [x], x.dims)), tmp_path)
    assert [(step.kinds, step.ops) for step in export.steps] == [(("NEG",), (3,))]
    assert export.constant_bytes == 0


def test_an_op_is_named_by_its_index_in_the_file(tmp_path: Path) -> None:
    model = TrainedModel()
    x, weights = model.input(1, 4), model.fake_weights(np.ones((2, 4)), 0.5)
    model.op("COS", [x], x.dims)
    y = model.dense(x, weights)
    with pytest.raises(litebnn.ConversionError, match=r"op 3 \(SIN,"):
        exported(model.finish(model.op("SIN", [y], y.dims)), tmp_path)


def _on_levels(model: FloatModel, name: str, version: int) -> Tensor:
    x = model.input(1, 4, type="INT8")
    y = model.op(name, [x], x.dims, type="INT8", version=version)
    x.quantization = y.quantization = parameters(0.1, 3)
    return y


REFUSED = {
    "unknown op": (lambda model, x: model.op("COS", [x], x.dims), r"op 0 \(COS, layer \"cos_2\"\): there is no C"),
    "float16": (lambda model, x: model.op("CAST", [x], x.dims, type="FLOAT16"), r"op 0 \(CAST"),
    "two inputs": (lambda model, x: model.op("POW", [x, x], x.dims), r"op 0 \(POW, layer"),
    "no kernel for int8": (
        lambda model, x: _on_levels(model, "SQUARE", 1),
        r"op 0 \(SQUARE, layer .*the runtime refuses",
    ),
    "no int8 at run time": (
        lambda model, x: _on_levels(model, "SIGN", 2),
        r"op 0 \(SIGN, layer .*the runtime cannot run",
    ),
}


def test_an_argument_of_another_type_is_named(tmp_path: Path) -> None:
    model = FloatModel()
    x, _ = model.input(1, 4), model.input(3, type="INT64")
    with pytest.raises(litebnn.ConversionError, match=r'^input "input_2" is INT64, expected FLOAT32, INT8'):
        exported(model.finish(model.op("NEG", [x], x.dims)), tmp_path)
    model = FloatModel()
    x, y = model.input(1, 4), model.const([1], np.int64)
    with pytest.raises(litebnn.ConversionError, match=r'^output "const_2" is INT64'):
        exported(model.finish(model.op("NEG", [x], x.dims), y), tmp_path)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_it_does_not_know_is_named(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build, message = REFUSED[kind]
    model = FloatModel()
    (tmp_path / "m.tflite").write_bytes(model.finish(build(model, model.input(1, 4, 4, 8))))
    assert main(["export", str(tmp_path / "m.tflite"), "-o", str(tmp_path / "out")]) == 1
    err = capsys.readouterr().err
    assert re.search(message, err)
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["m.tflite"]


def test_a_folder_of_another_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "network"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match="is not empty and has no litebnn-export.json"):
        exported(_dense(), tmp_path)
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]
    (folder / "thesis.txt").unlink()
    exported(_dense(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["network"]


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.needs("make")
def test_an_export_replaces_its_own_files_and_keeps_all_others(tmp_path: Path) -> None:
    exported(_dense(), tmp_path, name="first", packages=["arduino", "zephyr"])
    folder = tmp_path / "network"
    mine = {"notes.txt": "", "src/mine.c": "#error", "zephyr/prj.conf": "", "src/first/main.c": "", ".git/HEAD": ""}
    for name, text in mine.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    exported(_dense(), tmp_path, name="second")
    found = contents(folder)
    assert found.items() >= mine.items()
    (tmp_path / "other").mkdir()
    exported(_dense(), tmp_path / "other", name="second")
    fresh = contents(tmp_path / "other" / "network")
    assert found.keys() == mine.keys() | fresh.keys()
    assert {name: text for name, text in found.items() if name not in (*mine, MARK)} == {
        name: text for name, text in fresh.items() if name != MARK
    }
    assert not (folder / "examples").exists()
    made = subprocess.run(["make", "-C", folder, "check"], check=True, capture_output=True, text=True)
    assert "passed\n" in made.stdout


def test_an_export_without_a_list_of_files_is_replaced(tmp_path: Path) -> None:
    exported(_dense(), tmp_path)
    folder = tmp_path / "network"
    whole = contents(folder)
    mark = json.loads(whole[MARK])
    del mark["files"]
    (folder / MARK).write_text(json.dumps(mark))
    (folder / "main.c").write_text("")
    exported(_dense(), tmp_path)
    assert contents(folder) == whole


def test_a_file_in_the_way_is_named_and_nothing_changes(tmp_path: Path) -> None:
    exported(_dense(), tmp_path)
    folder, outside = tmp_path / "network", tmp_path / "outside"
    (folder / "library.json").write_text("mine")
    before = contents(folder)
    with pytest.raises(ValueError, match="library.json is not of an earlier export: move it, or name another folder"):
        exported(_dense(), tmp_path, packages=["platformio"])
    assert contents(folder) == before
    (folder / "src").rename(outside)
    (folder / "src").symlink_to(outside)
    with pytest.raises(ValueError, match="src is no folder of an earlier export"):
        exported(_dense(), tmp_path)


@pytest.mark.parametrize(
    "listed", ["../thesis.txt", "{tmp_path}/thesis.txt", "src/../../thesis.txt", "", ".", "src", 3]
)
def test_a_list_of_files_of_another_cannot_remove_any(listed: object, tmp_path: Path) -> None:
    exported(_dense(), tmp_path)
    (tmp_path / "thesis.txt").write_text("mine")
    text = listed.format(tmp_path=tmp_path) if isinstance(listed, str) else listed
    mark = tmp_path / "network" / MARK
    former = json.loads(mark.read_text())
    mark.write_text(json.dumps(former | {"files": [*former["files"], text]}))
    exported(_dense(), tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert (tmp_path / "network" / "src" / "model.c").is_file()


@pytest.mark.parametrize("moves", [0, 1, 4, 9])
def test_an_export_that_breaks_off_loses_nothing(moves: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported(_dense(), tmp_path, name="first")
    folder, moved = tmp_path / "network", []
    (folder / "src" / "mine.c").write_text("mine")

    def replace_some(path: Path, target: Path) -> None:
        if len(moved) == moves:
            raise OSError(errno.EIO, "Input/output error", str(path))
        moved.append(target)
        path.rename(target)

    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", replace_some)
        with pytest.raises(OSError, match="Input/output error") as error:
            exported(_dense(), tmp_path, name="second")
    assert error.value.filename == str(folder)
    assert (folder / "src" / "mine.c").read_text() == "mine"
    exported(_dense(), tmp_path, name="second")
    (tmp_path / "other").mkdir()
    exported(_dense(), tmp_path / "other", name="second")
    assert contents(folder).keys() == contents(tmp_path / "other" / "network").keys() | {"src/mine.c"}


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, mode: int = 0) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", path)

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(OSError, match="No space left on device") as error:
        exported(_dense(), tmp_path)
    assert error.value.filename == str(tmp_path / "network")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "Test"}, "name is 'Test', as a file or a target of the build is called"),
        ({"name": "softmax"}, "name is 'softmax', as a file"),
        ({"name": "stdio"}, "name is 'stdio', as a file"),
        ({"name": "a-b"}, "name is 'a-b'"),
        ({"kernels": "best"}, "kernels is 'best', expected one of compact, fast"),
        ({"target": "avr"}, "target is 'avr', expected one of cortex-m4"),
        ({"packages": ["nix"]}, "packages has 'nix'"),
        ({"packages": "arduino"}, "packages is 'arduino', expected a list of names"),
        ({"packages": None}, "packages is 'None', expected a list of names"),
        ({"packages": iter(["arduino"]), "name": "Arduino_net"}, "Arduino's own libraries alone"),
        ({"name": None}, "name is 'None', expected a name for C"),
        ({"name": "x\n" * 99}, "name is 'x x .*', expected a name for C"),
        *(
            ({"name": name}, f"name is '{name}', as a file or a target of the build is called")
            for name in ("debug", "Optimized", "PUBLIC", "LINK_INTERFACE_LIBRARIES", "edit_cache", "ALL_BUILD", "com1")
        ),
        ({"packages": ["arduino"], "name": "Arduino_net"}, "Arduino's own libraries alone"),
        ({"samples": [np.zeros((2, 9), np.float32)]}, "expected float32"),
        (
            {"samples": np.zeros((2, 9), np.float32)},
            r"samples of \"input_1\" are float32 \[2, 9\], expected float32 \[1, 8\]",
        ),
        ({"samples": np.zeros(8, np.float32)}, r"samples of \"input_1\" are float32 \[8\], expected"),
        ({"samples": np.zeros((0, 8), np.float32)}, "0 samples, expected at least 1"),
        ({"samples": []}, "0 arrays of samples, expected one for each of 1 inputs"),
        ({"samples": {"x": np.zeros((2, 8), np.float32)}}, "samples: inputs x given, expected input_1"),
        ({"samples": iter([])}, r"samples of \"input_1\" are object \[\], expected"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        exported(_dense(), tmp_path, **options)
    assert not (tmp_path / "network").exists()


def test_no_name_hides_a_header_of_the_c_library(tmp_path: Path) -> None:
    headers = ("stdint", "stdio", "string", "time")
    (tmp_path / "all.c").write_text("".join(f"#include <{header}.h>\n" for header in headers))
    read = subprocess.run(["gcc", "-M", "all.c"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    names = {path.stem for path in map(Path, read.split()) if path.suffix == ".h" and path.parent.name == "include"}
    assert names >= set(headers)
    for name in (*names, "Features", "newlib", "corecrt"):
        with pytest.raises(ValueError, match=r"name is"):
            exported(_dense(), tmp_path, name=name)


def test_the_command_prints_steps_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.tflite").write_bytes(_dense())
    command = ["export", str(tmp_path / "m.tflite"), "-o", str(tmp_path / "network"), "--name=dense"]
    assert main(command) == 0
    assert "FULLY_CONNECTED" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "network" / MARK).read_text())
    assert "dense_run(" in (tmp_path / "network" / "src" / "dense.h").read_text()


@pytest.mark.parametrize("given", [lambda array: [array], lambda array: array, lambda array: {"input_1": array}])
def test_samples_are_the_vectors(given: Callable[[np.ndarray], object], tmp_path: Path) -> None:
    exported(_dense(), tmp_path, samples=given(np.full((2, 8), 0.3125, np.float32)))
    text = (tmp_path / "network" / "model_vectors.h").read_text()
    assert "model_vectors_input[16]" in text
    assert text.count("0.3125f") > 16


@pytest.mark.deep
@pytest.mark.needs("cmake", "make")
def test_cmake_and_make_build_it(tmp_path: Path) -> None:
    exported(DIGITS, tmp_path, packages=list(PACKAGES))
    folder = tmp_path / "network"
    for command in (["make", "check"], ["cmake", "-B", "b"], ["cmake", "--build", "b"], ["ctest", "--test-dir", "b"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr


def test_reshapes_share_memory_and_outputs_may_be_inputs(tmp_path: Path) -> None:
    model = FloatModel()
    x = model.input(1, 2, 3, 4)
    rows = model.reshape(x, 1, 24)
    y = model.op("RELU", [rows], rows.dims)
    passes(model.finish(rows, y, model.reshape(y, 24, 1)), tmp_path)
    assert len(read_model(model.finish(rows)).graphs[0].inputs) == 1


def test_constants_may_be_operands_and_outputs(tmp_path: Path) -> None:
    model, rng = FloatModel(), np.random.default_rng(0)
    x = model.input(1, 2, 3, 4)
    ones, twos, rest = (model.const(rng.standard_normal((1, 2, 3, 4))) for _ in range(3))
    joined = model.op("CONCATENATION", [ones, x, twos], (1, 2, 3, 12), axis=3)
    flat = model.reshape(twos, 24)
    passes(model.finish(joined, rest, flat, model.op("NEG", [flat], flat.dims)), tmp_path)


@pytest.mark.parametrize("bits", [8, 4])
def test_weights_that_are_stored_quantized_become_float(bits: int, tmp_path: Path) -> None:
    model, rng = TrainedModel(), np.random.default_rng(0)
    most = 2 ** (bits - 1) - 1
    x = model.input(1, 5, 5, 3)
    levels, scales = rng.integers(-most, most + 1, (8, 3, 3, 3)), rng.uniform(0.01, 0.1, 8)
    weights = model.fake_weights(levels, scales)
    if bits == 4:
        stored = model.graph.ops[-1].input(0)
        narrow = replace(stored, type="INT4", buffer=Buffer(pack_levels(levels.astype(np.int8), 4)))
        model.graph.set_input(model.graph.ops[-1], 0, narrow)
    y = model.conv(x, np.zeros((8, 3, 3, 3)))
    model.graph.set_input(model.graph.ops[-1], 1, weights)
    assert passes(model.finish(y), tmp_path).exact


def test_infinities_are_kept(tmp_path: Path) -> None:
    model = FloatModel()
    x = model.input(1, 3, 3, 2)
    padded = model.pad(x, ((1, 0), (0, 1)), -np.inf)
    largest = model.elementwise("MAXIMUM", x, model.const([np.inf, -np.inf]))
    slopes = model.const(np.ones((1, 1, 2)))
    results = [model.op("RELU", [largest], x.dims), model.op("PRELU", [largest, slopes], x.dims)]
    exported(model.finish(padded, largest, *results), tmp_path)
    vectors = (tmp_path / "network" / "model_vectors.h").read_text()
    assert vectors.count("1.0f / 0.0f") > 27
    assert compiled.check_alone(tmp_path / "network").endswith("passed\n")


def test_zeros_have_the_runtimes_signs(tmp_path: Path) -> None:
    model = FloatModel()
    x = model.input(1, 3, 3, 8)
    zeros = model.elementwise("MUL", x, model.const(np.zeros(8)))
    axes = model.const([1, 2], np.int32)
    shown = [model.op("ABS", [zeros], x.dims)]
    shown += [model.op(f"REDUCE_{name}", [zeros, axes], (1, 1, 1, 8), keep_dims=True) for name in ("MAX", "MIN")]
    # The self-test takes +0 and -0 for equal. The quotient 1 / x is +inf or -inf and shows the sign of a zero.
    passes(model.finish(*(model.elementwise("DIV", model.const([1]), values) for values in shown)), tmp_path)


def test_an_input_that_no_op_reads_is_no_warning(tmp_path: Path) -> None:
    model = FloatModel()
    inputs = [model.input(1, 4) for _ in range(3)]
    # If an input is listed twice, the runtime reads the value that was set last.
    model.graph.inputs.append(inputs[1])
    exported(model.finish(model.op("NEG", [inputs[1]], (1, 4)), model.reshape(inputs[2], 4, 1)), tmp_path)
    assert "(void)input_0;" in (tmp_path / "network" / "src" / "model.c").read_text()
    assert compiled.check_alone(tmp_path / "network").endswith("passed\n")


def test_a_models_strange_name_stays_in_comments(tmp_path: Path) -> None:
    passes(_dense(), tmp_path, packages=[*PACKAGES], title="@TABLE@ */ \\\nmessage(FATAL_ERROR)")
    for file in (tmp_path / "network").rglob("*"):
        assert not file.is_file() or b"\nmessage" not in file.read_bytes(), file
    assert (tmp_path / "network" / "README.md").read_text().startswith("# @TABLE@ __ ")


def test_rare_networks_are_equal(tmp_path: Path) -> None:
    for model in networks.rare_networks(3, 40):
        passes(model, tmp_path)


HOSTILE = 2**31 - 1


@pytest.mark.deep
@pytest.mark.parametrize("output", ["packed", "float32"])
def test_steps_that_are_never_taken_do_not_overflow(output: str, tmp_path: Path) -> None:
    steps = {"dilations": (HOSTILE, HOSTILE), "strides": (HOSTILE, HOSTILE)}
    for padding in (reference.SAME, reference.VALID):
        conv = lce_models.Conv((1, 5, 6, 40), 33, (1, 1), padding=padding, output=output, **steps)
        exported(conv.model(), tmp_path)
        assert compiled.check(tmp_path / "network", *compiled.SANITIZERS).endswith("passed\n")


def _wide_window() -> bytes:
    return lce_models.Conv((1, 5, 6, 40), 33, (2, 2), dilations=(1 << 30, 1), padding=reference.SAME).model()


def _wide_rows() -> bytes:
    return lce_models.Conv((1, 3, 600, 2048), 33, (3, 3), dilations=(1 << 20, 1), padding=reference.SAME).model()


def _wide_pool() -> bytes:
    return lce_models.bmaxpool_model((1, 5, 6, 2), (3, HOSTILE - 6), (2, 2), reference.SAME)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (_wide_window, r"op 0 \(LceBconv2d, .*its windows reach over 2147483\d+ positions of an axis"),
        (_wide_rows, r"op 0 \(LceBconv2d, .*its taps are 40265318400 words apart"),
        (_wide_pool, r"op 0 \(LceBMaxPool2d, .*its windows reach over 2147483\d+ positions of an axis"),
    ],
)
def test_windows_beyond_int32_are_refused(build: Callable[[], bytes], message: str, tmp_path: Path) -> None:
    with pytest.raises(litebnn.ConversionError, match=message):
        exported(build(), tmp_path)


def test_a_tensor_beyond_int32_is_refused(tmp_path: Path) -> None:
    model = FloatModel()
    x = model.input(1, 1 << 15, 1 << 14, 4)
    with pytest.raises(
        litebnn.ConversionError, match=r'"input_\d*" takes 8589934592 bytes, expected at most 2147483647'
    ):
        exported(model.finish(model.op("ABS", [x], x.dims)), tmp_path)


def test_images_of_unknown_size_are_refused(tmp_path: Path) -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 8, signature=(-1, -1, 4, 8))
    with pytest.raises(litebnn.ConversionError, match=r'"input\w*" has shape \[-1, -1, 4, 8\], expected known sizes'):
        exported(model.finish(model.op("ABS", [x], x.dims)), tmp_path)


def test_shapes_that_the_runtime_does_not_compute_are_refused(tmp_path: Path) -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 8)
    # The file's shapes are wrong. If the export relied on them, the second op would read beyond the end of the first
    # op's output.
    y = model.op("NEG", [model.op("ABS", [x], (1, 4, 4, 8))], (1, 4, 6, 8))
    with pytest.raises(
        litebnn.ConversionError, match=r"\[1, 4, 6, 8\] in the model, but \[1, 4, 4, 8\] in the runtime"
    ):
        exported(model.finish(y), tmp_path)
