import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.convert import convert_tflite
from litebnn.flatbuffer import write_model
from litebnn.graph import Options, Signature, Tensor, constant
from litebnn.runtime.find import RUNTIMES
from litebnn.runtime.interpreter import Interpreter
from tests.needs import need
from tests.support.float_models import FloatModel, sign_weights
from tests.support.programs import one_op_model, pixels_model

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"
_TASKS = Path("/proc/self/task")

# The code that a test runs in a separate process. In one process, TensorFlow and tflite-runtime would break each other.
IN_A_PROCESS = """
import sys
import numpy as np
import litebnn

runtime, golden = sys.argv[1:]
model, arrays = open(golden + ".lce.tflite", "rb").read(), np.load(golden + ".npz")
for threads in (1, 2):
    result = litebnn.Interpreter(model, threads, runtime=runtime).predict(arrays["input"])
    assert np.abs(result - arrays["lce"]).max() <= 1e-4 * np.abs(arrays["lce"]).max()
interpreter = litebnn.Interpreter(model, runtime=runtime)
[name], [output] = interpreter.input_names, interpreter.output_names
assert (name, output) == ("input_1", "batch_normalization_2"), (name, output)
assert np.array_equal(interpreter.predict({name: arrays["input"]})[output], result)

# A file in which the stored length of a string exceeds the file's size.
name = model.index(b"min_runtime_version") - 4
too_long = model[:name] + (1 << 24).to_bytes(4, "little") + model[name + 4 :]
no_utf8 = model.replace(b"serving_default", b"\\xaaerving_default").replace(b"input_1", b"\\xaanput_1")

for damaged in [too_long, no_utf8, *(model[:size] for size in range(8, len(model) - 8, 197))]:
    try:
        litebnn.Interpreter(damaged, runtime=runtime)
    except ValueError as error:
        assert "the model is refused" in str(error), error
    else:
        raise AssertionError(f"{len(damaged)} damaged bytes of {len(model)} were taken for a model")
"""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_runtime_runs_a_model_and_refuses_a_damaged_one(runtime: str) -> None:
    need(runtime)
    command = [sys.executable, "-c", IN_A_PROCESS, runtime, str(GOLDEN / "bitpacked_chain")]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr[-2000:]


RESIZED = """
import sys
import numpy as np
import litebnn

runtime, source, packed = sys.argv[1:]
expected, resized = litebnn.Interpreter(source, runtime=runtime), litebnn.Interpreter(packed, runtime=runtime)
for height, width in ((8, 8), (5, 12), (8, 8)):
    images = np.random.default_rng(height).standard_normal((1, height, width, 32), np.float32)
    assert np.array_equal(resized.predict(images), expected.predict(images)), (height, width)
"""


# For each new size, tflite-runtime takes its delegates off the model and applies them again.
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_packed_weights_stay_for_every_size(runtime: str, tmp_path: Path) -> None:
    need(runtime)
    model, rng = FloatModel(), np.random.default_rng(0)
    x = model.input(1, 1, 1, 32, signature=(1, -1, -1, 32))
    (tmp_path / "source").write_bytes(model.finish(model.conv(x, sign_weights(rng, 48, 3, 3, 32), same=True)))
    (tmp_path / "packed").write_bytes(convert_tflite(tmp_path / "source", low_bit_weights="int2"))
    command = [sys.executable, "-c", RESIZED, runtime, str(tmp_path / "source"), str(tmp_path / "packed")]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr[-2000:]


@pytest.fixture(scope="module")
def interpreter() -> litebnn.Interpreter:
    return litebnn.Interpreter(GOLDEN / "bias.lce.tflite")


def test_it_tells_shapes_and_types(interpreter: litebnn.Interpreter) -> None:
    golden = np.load(GOLDEN / "bias.npz")
    assert interpreter.input_shapes == [(1, *golden["input"].shape[1:])]
    assert interpreter.output_shapes == [(1, *golden["lce"].shape[1:])]
    assert interpreter.input_types == interpreter.output_types == [np.float32]
    assert interpreter.input_quantization == interpreter.output_quantization == [(0.0, 0)]


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("taken", "given"), [("INT8", np.uint8), ("UINT8", np.int8)])
def test_bytes_of_the_other_sign_are_the_same_levels(taken: str, given: type) -> None:
    images = np.arange(2 * 128, dtype=np.uint8).astype(given).reshape(2, 8, 16, 1)[:, ::-1]
    predicted = litebnn.Interpreter(pixels_model((1, 8, 16, 1), taken, 1 / 8, 5)).predict(images)
    assert predicted.dtype == np.dtype(taken.lower())
    shift = -128 if taken == "INT8" else 128
    assert np.array_equal(predicted.astype(int), images.reshape(2, -1).astype(int) + shift)


@pytest.mark.usefixtures("library")
def test_pixels_are_no_floats() -> None:
    with pytest.raises(ValueError, match="is uint8, expected float32"):
        litebnn.Interpreter(pixels_model((1, 2, 2, 3))).predict(np.zeros((1, 2, 2, 3), np.uint8))


def test_it_predicts_any_number_of_samples(interpreter: litebnn.Interpreter) -> None:
    golden = np.load(GOLDEN / "bias.npz")
    three = np.concatenate([golden["input"][:1]] * 3)
    np.testing.assert_allclose(
        interpreter.predict(three), np.concatenate([golden["lce"][:1]] * 3), rtol=1e-4, atol=1e-4
    )


def test_wrong_input_is_an_error(interpreter: litebnn.Interpreter) -> None:
    image = np.load(GOLDEN / "bias.npz")["input"]
    with pytest.raises(ValueError, match="is float64, expected float32"):
        interpreter.predict(image.astype(np.float64))
    with pytest.raises(ValueError, match="has shape .* expected"):
        interpreter.predict(image[:, 1:])
    with pytest.raises(ValueError, match="2 inputs given, expected 1"):
        interpreter.predict([image, image])


def add_model(*shapes: tuple[int, ...]) -> bytes:
    """A model that adds two inputs of these shapes; the sum has the first shape."""
    inputs = [Tensor(name, "FLOAT32", shape) for name, shape in zip("ab", shapes, strict=True)]
    return one_op_model("ADD", inputs, Tensor("sum", "FLOAT32", shapes[0]), Options("AddOptions"))


def sum_model(axes: list[int], shape: tuple[int, ...]) -> bytes:
    """A model that sums its input [2, 3] over `axes`; the result has the shape `shape`."""
    inputs = [Tensor("a", "FLOAT32", (2, 3)), constant("axes", np.array(axes, np.int32))]
    return one_op_model("SUM", inputs, Tensor("sum", "FLOAT32", shape), Options("ReducerOptions"))


def test_several_inputs_share_their_batch() -> None:
    interpreter = litebnn.Interpreter(add_model((2, 3), (2, 1)))
    a, b = np.random.default_rng(0).normal(size=(2, 6, 3)).astype(np.float32)
    np.testing.assert_array_equal(interpreter.predict([a, b[:, :1]]), a + b[:, :1])
    with pytest.raises(ValueError, match="input b has 4 samples, the first input 6"):
        interpreter.predict([a, b[:4, :1]])
    with pytest.raises(ValueError, match="input a has shape .*any multiple of 2 in front"):
        interpreter.predict([a[:5], b[:5, :1]])


@pytest.mark.parametrize(("shapes", "samples"), [(((), ()), ()), (((1, 3), (3,)), (1, 3)), (((2, 3), (1, 3)), (2, 3))])
def test_inputs_without_a_common_batch_run_once(shapes: tuple[tuple[int, ...], ...], samples: tuple[int, ...]) -> None:
    interpreter = litebnn.Interpreter(add_model(*shapes))
    ones = [np.ones(shape, np.float32) for shape in shapes]
    np.testing.assert_array_equal(interpreter.predict(ones), np.full(samples, 2, np.float32))
    with pytest.raises(ValueError, match="input a has shape .*, expected exactly .*: .* no batch in common"):
        interpreter.predict([np.ones((6, 3), np.float32), np.ones((6, 3), np.float32)])


@pytest.mark.parametrize(("axes", "shape"), [([0, 1], ()), ([0], (3,))])
def test_an_output_without_the_batch_is_of_one_run(axes: list[int], shape: tuple[int, ...]) -> None:
    interpreter = litebnn.Interpreter(sum_model(axes, shape))
    assert interpreter.predict(np.ones((2, 3), np.float32)).shape == shape
    with pytest.raises(ValueError, match="output sum has shape .*, which does not begin with the batch of 2"):
        interpreter.predict(np.ones((4, 3), np.float32))


def named_model(signature: bool = True) -> bytes:
    """A model with the outputs a - b and b - a, where a - b is listed twice. The signature, if there is one, names all
    inputs and outputs."""
    model = FloatModel()
    a, b = model.input(1, 3), model.input(1, 3)
    left, right = model.elementwise("SUB", a, b), model.elementwise("SUB", b, a)
    finished = model.model(left, right, left)
    names = [("z", a), ("a", b)], [("right", right), ("again", left), ("left", left)]
    finished.signatures = [Signature("serve", finished.graphs[0], *names)] if signature else None
    return write_model(finished)


def test_a_dictionary_names_inputs_and_outputs() -> None:
    interpreter = litebnn.Interpreter(named_model())
    assert (interpreter.input_names, interpreter.output_names) == (["z", "a"], ["again", "right", "left"])
    z, a = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)
    named = interpreter.predict({"a": a, "z": z})
    assert list(named) == interpreter.output_names
    for expected, name, listed in zip(
        [z - a, a - z, z - a], interpreter.output_names, interpreter.predict([z, a]), strict=True
    ):
        np.testing.assert_array_equal(named[name], expected)
        np.testing.assert_array_equal(listed, expected)
    for wrong in ({"a": a}, {"a": a, "z": z, "b": a}, {}, {"a": a, 0: z}):
        with pytest.raises(ValueError, match="inputs .* given, expected z, a$"):
            interpreter.predict(wrong)


def test_without_a_signature_tensors_have_their_own_names() -> None:
    interpreter = litebnn.Interpreter(named_model(signature=False))
    assert interpreter.input_names == ["input_1", "input_2"]
    assert interpreter.output_names == ["sub_3", "sub_4", "sub_3_1"]
    one = np.ones((1, 3), np.float32)
    np.testing.assert_array_equal(interpreter.predict({"input_1": one * 3, "input_2": one})["sub_4"], one * -2)


def test_one_output_is_in_a_dictionary_too() -> None:
    interpreter = litebnn.Interpreter(add_model((1, 3), (1, 3)))
    one = np.ones((1, 3), np.float32)
    np.testing.assert_array_equal(interpreter.predict({"b": one, "a": one})["sum"], one * 2)


def test_wrong_models_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lacks the identifier TFL3"):
        litebnn.Interpreter(b"not a model")
    with pytest.raises(FileNotFoundError):
        litebnn.Interpreter(tmp_path / "absent.tflite")


@pytest.mark.parametrize("content", [b"", b"no library", None])
def test_a_library_that_is_not_ours_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "liblitebnn.so"
    if content is None:  # a library, but of something else
        path = next(Path(np.__file__).parent.rglob("_multiarray_umath*.so"))
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{path} is no op library of litebnn for this machine: "):
        litebnn.load_delegate(library=path)


def test_a_refused_option_is_one_line() -> None:
    with pytest.raises(ValueError, match="^[^\n]*option num_threads: expected an integer from 1 to 256[^\n]*$"):
        litebnn.load_delegate(num_threads=257)


def test_wrong_options_are_errors() -> None:
    with pytest.raises(ValueError, match="num_threads is 0"):
        litebnn.load_delegate(num_threads=0)
    for wrong in (True, 2.0, "2"):
        with pytest.raises(TypeError, match=f"num_threads is {wrong}, expected a whole number of at least 1"):
            litebnn.load_delegate(num_threads=wrong)
    with pytest.raises(ValueError, match="sparc"):
        litebnn.load_delegate(isa="sparc")


def threads_started(model: bytes, num_threads: int) -> int:
    """The number of threads that an interpreter starts. Interpreters of earlier tests are deleted before counting."""
    gc.collect()
    before = len(list(_TASKS.iterdir()))
    interpreter = Interpreter(model, num_threads)
    started = len(list(_TASKS.iterdir())) - before
    del interpreter
    return started


@pytest.mark.skipif(not _TASKS.is_dir(), reason="this system does not tell a process's threads")
@pytest.mark.parametrize(("size", "pools"), [(4, 1), (64, 2)])
def test_the_runtime_has_threads_of_its_own_for_large_work_only(size: int, pools: int) -> None:
    model = FloatModel()
    rng = np.random.default_rng(0)
    image = model.conv(model.input(1, size, size, 32), rng.standard_normal((32, 3, 3, 32)), same=True)
    source = model.finish(model.conv(model.sign(image), sign_weights(rng, 32, 3, 3, 32)))
    assert threads_started(convert_tflite(source), 4) == 3 * pools
