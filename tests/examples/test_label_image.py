import io
import itertools
import struct
import subprocess
from pathlib import Path

import ai_edge_litert.interpreter as litert
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from litebnn.graph import Op, OpCode, Options, constant
from tests.support.programs import (
    GOLDEN,
    RUNTIMES,
    error_of,
    graph_model,
    host_programs,
    one_op_model,
    pixels_model,
    run,
    scores,
    tensor,
    tflite_programs,
)
from toolchains.targets import ROOT

on_both_runtimes = pytest.mark.parametrize("label_image", RUNTIMES, indirect=True)


@pytest.fixture
def label_image(request):
    return [getattr(request, "param", host_programs)() / "label_image"]


def fed(command, tmp_path, image: bytes | Image.Image, shape, dtype="FLOAT32", scale=0, zero_point=0, **flags):
    """The real values [height, width, channels] that label_image feeds to a model with an input of this shape and
    type."""
    (tmp_path / "pixels.tflite").write_bytes(pixels_model((1, *shape), dtype, scale, zero_point))
    if isinstance(image, Image.Image):
        image.save(tmp_path / "image", "PNG")
    else:
        (tmp_path / "image").write_bytes(image)
    flags = {"tflite_model": tmp_path / "pixels.tflite", "image": tmp_path / "image", "num_results": 10**6, **flags}
    result = run(command, **flags)
    assert result.returncode == 0, result.stderr
    values = np.empty(np.prod(shape), np.float64)
    for index, score in scores(result.stdout).items():
        values[index] = score
    return values.reshape(shape)


RAW = {"input_mean": 0, "input_std": 1}  # unscaled pixel values


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).integers(0, 256, shape, np.uint8)


def bmp(index: np.ndarray, palette: np.ndarray, header: int, bits: int, top_down: bool, used: int = 0) -> bytes:
    """A BMP file of the pixels palette[index], in blue, green, red. It is written by the specification of the
    format."""
    height, width = index.shape
    if bits <= 8:
        padded = np.zeros((height, -(-width * bits // 8) * (8 // bits)), np.uint8)
        padded[:, :width] = index
        weights = 1 << (np.arange(8 // bits)[::-1] * bits)
        rows = (padded.reshape(height, -1, 8 // bits) * weights).sum(axis=2).astype(np.uint8)
    else:
        extra = np.zeros((height, width, bits // 8 - 3), np.uint8)
        rows = np.concatenate([palette[index], extra], axis=2).reshape(height, -1)
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4)))
    body = (rows if top_down else rows[::-1]).tobytes()

    colors = palette[: used or 1 << bits] if bits <= 8 else palette[:0]
    if header == 12:
        head = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        head = struct.pack("<IiiHHIIiiII", 40, width, -height if top_down else height, 1, bits, 0, 0, 0, 0, used, 0)
        head = struct.pack("<I", header) + head[4:].ljust(header - 4, b"\0")
    table = b"".join(bytes(color) + (b"" if header == 12 else b"\0") for color in colors)
    offset = 14 + len(head) + len(table)
    return b"BM" + struct.pack("<IHHI", offset + len(body), 0, 0, offset) + head + table + body


BMP_CASES = [
    (header, bits, top_down)
    for header, bits, top_down in itertools.product((12, 40, 52, 56, 64, 108, 124), (1, 4, 8, 24, 32), (False, True))
    if not (header == 12 and (top_down or bits == 32))
]


@pytest.mark.parametrize(("header", "bits", "top_down"), BMP_CASES)
def test_reads_every_kind_of_bmp(label_image, tmp_path, header, bits, top_down):
    index = noise(5, 7) & ((1 << min(bits, 8)) - 1)
    palette = noise(256, 3)
    values = fed(label_image, tmp_path, bmp(index, palette, header, bits, top_down), (5, 7, 3), **RAW)
    np.testing.assert_array_equal(values, palette[index][..., ::-1])


def test_reads_a_bmp_with_fewer_colors_than_its_bits_allow(label_image, tmp_path):
    index, palette = noise(3, 5) % 10, noise(256, 3)
    values = fed(label_image, tmp_path, bmp(index, palette, 40, 8, False, used=10), (3, 5, 3), **RAW)
    np.testing.assert_array_equal(values, palette[index][..., ::-1])


@pytest.mark.parametrize("header", [40, 52, 56, 108, 124])
def test_reads_color_masks_wherever_the_bmp_version_puts_them(label_image, tmp_path, header):
    image = noise(4, 3, 3)
    masks = struct.pack("<IIII", 0xFF000000, 0x00FF0000, 0x0000FF00, 0x000000FF)  # red is the highest byte
    head = struct.pack("<IiiHHIIiiII", header, 3, 4, 1, 32, 3, 0, 0, 0, 0, 0)
    head = (head + masks[: 12 if header <= 52 else 16]).ljust(header, b"\0")
    body = b"".join(bytes([255, b, g, r]) for r, g, b in image[::-1].reshape(-1, 3))
    file = b"BM" + struct.pack("<IHHI", 0, 0, 0, 14 + len(head)) + head + body
    np.testing.assert_array_equal(fed(label_image, tmp_path, file, (4, 3, 3), **RAW), image)


@pytest.mark.parametrize(
    ("kind", "mode"), [("BMP", "L"), ("BMP", "RGB"), ("BMP", "P"), ("BMP", "1"), ("PPM", "L"), ("PPM", "RGB")]
)
def test_reads_files_of_another_writer(label_image, tmp_path, kind, mode):
    image = Image.fromarray(noise(6, 5, 3)).convert(mode)
    file = io.BytesIO()
    image.save(file, kind)
    values = fed(label_image, tmp_path, file.getvalue(), (6, 5, 3), **RAW)
    np.testing.assert_array_equal(values, np.asarray(image.convert("RGB")))


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "P", "1", "I;16"])
def test_reads_png(label_image, tmp_path, mode):
    if mode == "I;16":
        wide = noise(6, 5).astype(np.uint16) * 257
        image, expected = Image.fromarray(wide), np.repeat(wide[..., None] >> 8, 3, axis=2)
    else:
        image = Image.fromarray(noise(6, 5, 4), "RGBA").convert("RGB" if mode in ("P", "1") else mode).convert(mode)
        expected = np.asarray(image)
        expected = np.asarray(image.convert("RGB")) if expected.ndim == 2 else expected
        expected = np.repeat(expected[..., :1], 3, axis=2) if mode == "LA" else expected[..., :3]
    np.testing.assert_array_equal(fed(label_image, tmp_path, image, (6, 5, 3), **RAW), expected)


@pytest.mark.parametrize(("options", "mode"), itertools.product([{}, {"progressive": True}], ["L", "RGB"]))
def test_reads_jpeg(label_image, tmp_path, options, mode):
    smooth = Image.fromarray(noise(3, 3, 3)).resize((33, 21), Image.Resampling.BICUBIC).convert(mode)
    file = io.BytesIO()
    smooth.save(file, "JPEG", quality=95, **options)
    values = fed(label_image, tmp_path, file.getvalue(), (21, 33, 3), **RAW)
    # Decoders may differ in the rounding of their transforms and in chroma upsampling.
    np.testing.assert_allclose(values, np.asarray(Image.open(file).convert("RGB")), atol=6)


def test_color_becomes_its_luma_for_a_grey_model(label_image, tmp_path):
    image = noise(6, 5, 3)
    values = fed(label_image, tmp_path, Image.fromarray(image), (6, 5, 1), **RAW)
    np.testing.assert_allclose(values[..., 0], image @ [0.299, 0.587, 0.114], atol=1.5)


@pytest.mark.parametrize(("mean", "deviation"), [(127.5, 127.5), (0, 255), (-3, 0.5)])
def test_normalizes_float_inputs(label_image, tmp_path, mean, deviation):
    image = noise(6, 5, 3)
    values = fed(label_image, tmp_path, Image.fromarray(image), (6, 5, 3), input_mean=mean, input_std=deviation)
    np.testing.assert_allclose(values, (image.astype(float) - mean) / deviation, rtol=1e-5, atol=1e-6)


@on_both_runtimes
@pytest.mark.parametrize(
    ("dtype", "scale", "zero_point"), [("UINT8", 1 / 127.5, 127), ("INT8", 1 / 127.5, 0), ("INT8", 0.02, -60)]
)
def test_quantizes_with_the_inputs_own_scale(label_image, tmp_path, dtype, scale, zero_point):
    image = noise(6, 5, 3)
    values = fed(label_image, tmp_path, Image.fromarray(image), (6, 5, 3), dtype, scale, zero_point)
    limits = np.iinfo(dtype.lower())
    real = np.clip(image / 127.5 - 1, (limits.min - zero_point) * scale, (limits.max - zero_point) * scale)
    np.testing.assert_allclose(values, real, atol=scale * 0.501)
    np.testing.assert_allclose(values / scale, np.rint(values / scale), atol=1e-3)


@on_both_runtimes
@pytest.mark.parametrize("dtype", ["UINT8", "INT8"])
def test_an_input_without_a_scale_takes_the_pixels(label_image, tmp_path, dtype):
    image = noise(6, 5, 3)
    values = fed(label_image, tmp_path, Image.fromarray(image), (6, 5, 3), dtype)
    np.testing.assert_allclose(values * 255, image, atol=1e-3)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    size=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    wanted=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    channels=st.sampled_from([1, 3]),
)
def test_resizes_as_the_runtimes_own_op(label_image, tmp_path, size, wanted, channels):
    image = noise(*size, channels)
    options = Options("ResizeBilinearOptions", align_corners=False, half_pixel_centers=False)
    model = one_op_model(
        "RESIZE_BILINEAR",
        [tensor("image", (1, *image.shape), "FLOAT32"), constant("size", np.array(wanted, np.int32))],
        tensor("resized", (1, *wanted, channels), "FLOAT32"),
        options,
    )
    resolver = litert.OpResolverType.BUILTIN_REF
    interpreter = litert.Interpreter(model_content=model, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image[None].astype(np.float32))
    interpreter.invoke()
    expected = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0]

    file = Image.fromarray(image[..., 0] if channels == 1 else image)
    values = fed(label_image, tmp_path, file, (*wanted, channels), **RAW)
    np.testing.assert_allclose(values, expected, atol=2e-3)  # six digits are printed


@pytest.fixture
def files(tmp_path) -> dict[str, Path]:
    """A model with 12 scores, their labels and an image."""
    (tmp_path / "m.tflite").write_bytes(pixels_model((1, 2, 2, 3)))
    (tmp_path / "labels.txt").write_text("".join(f"thing {i}\r\n" for i in range(12)))
    Image.fromarray(np.arange(12, dtype=np.uint8).reshape(2, 2, 3)).save(tmp_path / "x.bmp")
    return {"tflite_model": tmp_path / "m.tflite", "labels": tmp_path / "labels.txt", "image": tmp_path / "x.bmp"}


def test_prints_the_best_scores_with_index_and_label(label_image, files):
    result = run(label_image, **files, **RAW)
    lines = result.stdout.splitlines()
    assert lines[0].startswith("average time: ")
    assert lines[1:] == [f"{i}: {i} thing {i}" for i in (11, 10, 9, 8, 7)]


@on_both_runtimes
def test_short_flags(label_image, files):
    flags = ["-m", files["tflite_model"], "-i", files["image"], "-l", files["labels"], "-b", "0", "-s", "2", "-r", "1"]
    result = run([*label_image, *flags, "-t", "2", "-c", "3", "-w", "0", "-v", "1", "-x", "0", "-p", "0"])
    lines = result.stdout.splitlines()
    assert lines[-1] == "5.5: 11 thing 11"
    assert "input: image float32 [1, 2, 2, 3]" in lines
    assert "output: scores float32 [1, 12]" in lines
    assert "image: 2 x 2, 3 channels" in lines


def test_help_lists_every_flag(label_image):
    for flag in ("--help", "-h"):
        result = run([*label_image, flag])
        assert result.returncode == 0
        for name in (
            *("tflite_model, -m", "image, -i", "labels, -l", "input_mean, -b", "input_std, -s", "num_results, -r"),
            *("threads, -t", "count, -c", "warmup_runs, -w", "verbose, -v", "xnnpack_delegate, -x", "profiling, -p"),
            *("help, -h", "lcompute", "external_delegate_path"),
        ):
            assert f"--{name} " in result.stdout


def test_labels_are_optional(label_image, files):
    result = run(label_image, **{**files, "labels": ""}, num_results=1, **RAW)
    assert result.stdout.splitlines()[-1] == "11: 11"


def test_profiling_prints_the_time_of_each_op(label_image, files):
    result = run(label_image, **files, profiling=1, xnnpack_delegate=0)
    assert [line.split()[3] for line in result.stdout.splitlines() if line.startswith("    0 ")] == ["RESHAPE"]


@on_both_runtimes
@pytest.mark.parametrize("xnnpack", [0, 1])
def test_profiling_names_our_ops(label_image, xnnpack):
    example = ROOT / "examples" / "label_image"
    flags = {"tflite_model": example / "digits.tflite", "image": example / "digit.bmp", "xnnpack_delegate": xnnpack}
    result = run(label_image, **flags, lcompute=1, profiling=1)
    kinds = result.stdout.split("nodes        ms      %  op\n")[1]
    assert {"LceQuantize", "LceBconv2d", "LceBMaxPool2d"} <= set(kinds.split())
    assert ("TfLiteXNNPackDelegate" in kinds.split()) == bool(xnnpack)


BAD_FLAGS = [
    ({"tflite_model": ""}, "name the model with --tflite_model=FILE"),
    ({"image": ""}, "name the image with --image=FILE"),
    ({"tflite_model": "/nowhere.tflite"}, "cannot read the model /nowhere.tflite: No such file or directory"),
    ({"image": "/nowhere.bmp"}, "cannot read the image /nowhere.bmp: No such file or directory"),
    ({"labels": "/nowhere.txt"}, "cannot read the labels file /nowhere.txt: No such file or directory"),
    ({"image": "/"}, "the image / is not a file"),
    ({"num_results": 0}, "--num_results=0: expected a whole number from 1"),
    ({"threads": "two"}, "--threads=two: expected a whole number from 1 to 256"),
    ({"threads": 257}, "--threads=257: expected a whole number from 1 to 256"),
    ({"count": 99999999999}, "--count=99999999999: expected a whole number from 1"),
    ({"input_mean": "1x"}, "--input_mean=1x: expected a number"),
    ({"input_std": 0}, "--input_std=0: expected another number, pixels are divided by it"),
    ({"verbose": "maybe"}, "--verbose=maybe: expected 0 or 1"),
    ({"lcomputer": 1}, "--lcomputer=1 is not a flag of this program (see --help)"),
    ({"external_delegate_path": "/nowhere.so"}, "cannot load the delegate /nowhere.so: "),
]


@pytest.mark.parametrize(("flags", "message"), BAD_FLAGS)
def test_a_bad_flag_is_one_line(label_image, files, flags, message):
    assert error_of(run(label_image, **{**files, **flags})).startswith(message)


def test_stray_arguments_and_missing_values_are_one_line(label_image):
    assert error_of(run([*label_image, "x.bmp"])) == "unexpected argument 'x.bmp' (see --help)"
    assert error_of(run([*label_image, "--image"])) == "--image needs a value"
    assert error_of(run([*label_image, "-i"])) == "-i needs a value"
    assert error_of(run([*label_image, "x.bmp", "--image"])) == "unexpected argument 'x.bmp' (see --help)"


@pytest.mark.parametrize(("count", "says"), [(11, "11 labels"), (13, "13 labels"), (1, "1 labels")])
def test_labels_must_be_as_many_as_outputs(label_image, files, count, says):
    files["labels"].write_text("".join(f"thing {i}\n" for i in range(count)))
    message = error_of(run(label_image, **files))
    assert message == f"{files['labels']} has {says}, expected 12: one for each output of {files['tflite_model']}"


def test_labels_may_begin_with_a_byte_order_mark(label_image, files):
    files["labels"].write_text("".join(f"thing {11 - i}\n" for i in range(12)), encoding="utf-8-sig")
    assert run(label_image, **files, **RAW, num_results=12).stdout.splitlines()[-1] == "0: 0 thing 11"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_labels_in_utf_16_are_one_line(label_image, files, encoding):
    files["labels"].write_text("".join(f"thing {i}\n" for i in range(12)), encoding=encoding)
    assert error_of(run(label_image, **files)) == f"{files['labels']} is no text in UTF-8"


def test_a_name_that_could_command_a_terminal_is_one_line(label_image, files):
    message = error_of(run(label_image, **files | {"labels": "a\n\x1b[31m" + "b" * 9000}))
    assert message.startswith("cannot read the labels file a??[31mbbb")
    assert message.endswith("File name too long")
    assert len(message) < 4100


@pytest.mark.parametrize("which", ["tflite_model", "image", "labels"])
def test_an_empty_file_is_one_line(label_image, files, which):
    files[which].write_bytes(b"")
    assert error_of(run(label_image, **files)).endswith(f"{files[which]} is empty")


@on_both_runtimes
@pytest.mark.parametrize("content", [b"not a model", b"\x1c\0\0\0TFL3", "cut"])
def test_an_unreadable_model_is_one_line(label_image, files, content):
    model = files["tflite_model"]
    model.write_bytes(model.read_bytes()[:200] if content == "cut" else content)
    assert error_of(run(label_image, **files)) == f"{model} is no .tflite model, or is cut off"


@pytest.mark.parametrize("shape", [(1, 12), (1, 2, 2, 2), (2, 2, 2, 3), (1, 2, 6)])
def test_a_model_for_something_else_than_an_image_is_one_line(label_image, files, shape):
    files["tflite_model"].write_bytes(pixels_model(shape))
    message = error_of(run(label_image, **files))
    assert f"is float32 {list(shape)}, expected float32, uint8 or int8 [1, height, width, 1 or 3]" in message


@on_both_runtimes
def test_a_model_with_an_input_of_another_type_is_one_line(label_image, files):
    files["tflite_model"].write_bytes(pixels_model((1, 2, 2, 3), "INT32"))
    assert "is int32 [1, 2, 2, 3], expected float32, uint8 or int8" in error_of(run(label_image, **files))


def test_a_model_whose_output_is_a_picture_is_one_line(label_image, files):
    options = Options("ResizeBilinearOptions")
    size = constant("size", np.array([4, 4], np.int32))
    image, resized = tensor("image", (1, 2, 2, 3), "FLOAT32"), tensor("resized", (1, 4, 4, 3), "FLOAT32")
    files["tflite_model"].write_bytes(one_op_model("RESIZE_BILINEAR", [image, size], resized, options))
    message = error_of(run(label_image, **files))
    assert message.endswith("is float32 [1, 4, 4, 3], expected float32, uint8 or int8 [1, scores]")


@pytest.fixture
def computed_shape(files):
    """A model whose output gets its shape, 12 scores, at run time. Its file claims 100,000 scores."""
    image, shape = tensor("image", (1, 2, 2, 3), "FLOAT32"), tensor("shape", (2,), "INT32")
    parts = [constant(name, np.array(value, np.int32)) for name, value in (("a", [1, 5]), ("b", [0, 7]))]
    output = tensor("scores", (1, 100000), "FLOAT32")
    ops = [Op(OpCode("ADD"), [*parts], [shape], Options("AddOptions")), Op(OpCode("RESHAPE"), [image, shape], [output])]
    files["tflite_model"].write_bytes(graph_model([image], output, ops))


@on_both_runtimes
@pytest.mark.usefixtures("computed_shape")
@pytest.mark.parametrize("runs", [1, 3])
def test_counts_the_scores_that_come_out(label_image, files, runs):
    result = run(label_image, **files, **RAW, count=runs, warmup_runs=0)
    assert result.stdout.splitlines()[1:] == [f"{i}: {i} thing {i}" for i in (11, 10, 9, 8, 7)]


@pytest.mark.usefixtures("computed_shape")
def test_xnnpack_leaves_what_it_does_not_take(label_image, files):
    result = run(label_image, **files, **RAW, xnnpack_delegate=1)
    assert result.stdout.splitlines()[1:] == [f"{i}: {i} thing {i}" for i in (11, 10, 9, 8, 7)]


@pytest.mark.deep
@pytest.mark.usefixtures("computed_shape")
def test_a_model_that_a_delegate_does_not_take_is_one_line(files):
    message = error_of(run([tflite_programs() / "label_image"], **files, xnnpack_delegate=1))
    assert message == f"{files['tflite_model']}: the runtime refuses the model with the delegates that were asked for"


@on_both_runtimes
def test_a_binary_model_without_lcompute_says_what_to_add(label_image, files):
    result = run(label_image, **{**files, "tflite_model": GOLDEN[0]})
    message = error_of(result)
    assert "Encountered unresolved custom op: LceQuantize" in message
    assert message.endswith("Add --lcompute 1 for litebnn's ops.")


@on_both_runtimes
def test_a_delegate_that_refuses_says_why_in_the_line(label_image, files, monkeypatch):
    monkeypatch.setenv("LITEBNN_ISA", "sparc")
    library = host_programs() / "liblitebnn.so"
    message = error_of(run(label_image, **files, external_delegate_path=library))
    assert message.startswith(f"the delegate {library} cannot be made: litebnn: environment variable LITEBNN_ISA: ")


@pytest.mark.parametrize("length", [1, 9999])
def test_an_output_that_cannot_be_written_is_one_line(label_image, files, length):
    files["labels"].write_text(f"{'x' * length}\n" * 12)
    command = [*label_image, *(f"--{name}={value}" for name, value in files.items())]
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert error_of(result) == "cannot write to the standard output"


def test_a_library_that_is_no_delegate_is_one_line(label_image, files):
    library = host_programs() / "libLiteRt.so"
    message = error_of(run(label_image, **files, external_delegate_path=library))
    assert message == f"{library} is no delegate library: it exports no tflite_plugin_create_delegate"
