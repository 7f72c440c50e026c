"""Tests label_image, built with AddressSanitizer and UBSan, on damaged and malicious image files."""

import io
import random
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.programs import error_of, pixels_model, run, sanitized_programs

pytestmark = pytest.mark.deep

PICTURE = Image.fromarray(np.random.default_rng(3).integers(0, 256, (9, 13, 3), np.uint8))


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


SEEDS = {
    "8-bit.bmp": saved(PICTURE.convert("L"), "BMP"),
    "1-bit.bmp": saved(PICTURE.convert("1"), "BMP"),
    "24-bit.bmp": saved(PICTURE, "BMP"),
    "color.png": saved(PICTURE, "PNG"),
    "palette.png": saved(PICTURE.convert("P"), "PNG"),
    "baseline.jpg": saved(PICTURE, "JPEG"),
    "progressive.jpg": saved(PICTURE, "JPEG", progressive=True),
    "flat.jpg": saved(Image.new("L", (512, 512)), "JPEG", progressive=True, optimize=True),
    "color.ppm": saved(PICTURE, "PPM"),
}


def damaged(seed: bytes, count: int) -> list[bytes]:
    """Makes copies of a file with random changes. Most changes are near the beginning, where the headers are."""
    choice = random.Random(len(seed))
    copies = []
    for _ in range(count):
        copy = bytearray(seed)
        for _ in range(choice.randint(1, 6)):
            place = choice.randrange(min(len(copy), choice.choice([32, 64, len(copy)])))
            copy[place] = choice.choice([0, 1, 0x7F, 0x80, 0xFF, choice.randrange(256)])
        copies.append(bytes(copy))
    return copies


def png(width: int, height: int, zeros: int) -> bytes:
    """A grey PNG whose pixel data is `zeros` zeros, whether or not this fits the size in its header."""
    compressor = zlib.compressobj(1)
    block = bytes(2**20)
    data = b"".join(compressor.compress(block[: zeros - at]) for at in range(0, zeros, len(block)))
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", data + compressor.flush()),
        (b"IEND", b""),
    ]
    body = b"".join(struct.pack(">I", len(c)) + t + c + struct.pack(">I", zlib.crc32(t + c)) for t, c in chunks)
    return b"\x89PNG\r\n\x1a\n" + body


def with_empty_chunk(png: bytes) -> bytes:
    """Inserts an empty data chunk before the other chunks of a PNG."""
    pixels = png.index(b"IDAT") - 4
    return png[:pixels] + struct.pack(">I4sI", 0, b"IDAT", zlib.crc32(b"IDAT")) + png[pixels:]


def patched(seed: str, place: int, layout: str, *values: int) -> bytes:
    copy = bytearray(SEEDS[seed])
    struct.pack_into(layout, copy, place, *values)
    return bytes(copy)


def jpeg(seed: str, height: int, width: int) -> bytes:
    """A JPEG whose header claims this height and width."""
    frame = max(SEEDS[seed].find(marker) for marker in (b"\xff\xc0", b"\xff\xc2"))
    return patched(seed, frame + 5, ">HH", height, width)


def with_many_scans(jpeg: bytes, scans: int) -> bytes:
    """A progressive JPEG that repeats its first scan."""
    first = jpeg.index(b"\xff\xda")
    scan = jpeg[first : jpeg.index(b"\xff", first + 2)]
    return jpeg[:first] + scan * scans + b"\xff\xd9"


@pytest.fixture
def label(tmp_path):
    """A function that runs label_image on an image file, checks that it does not crash, and returns its result."""
    program = [sanitized_programs() / "label_image"]
    (tmp_path / "m.tflite").write_bytes(pixels_model((1, 4, 4, 3)))

    def run_with(image: bytes):
        path: Path = tmp_path / "image"
        path.write_bytes(image)
        result = run(program, tflite_model=tmp_path / "m.tflite", image=path, warmup_runs=0)
        if result.returncode == 0:
            assert result.stderr == ""
        else:
            error_of(result)
        return result

    return run_with


@pytest.mark.parametrize("name", SEEDS)
def test_a_cut_off_image_is_one_line(label, name):
    seed = SEEDS[name]
    assert label(seed).returncode == 0
    lengths = {1, 2, 10, 17, 25, 30, 53, len(seed) // 2, len(seed) * 9 // 10, len(seed) - 13}
    for length in lengths:
        message = error_of(label(seed[:length]))
        assert message.startswith("cannot decode the image "), (length, message)


@pytest.mark.parametrize("name", SEEDS)
def test_a_damaged_image_is_decoded_or_refused(label, name):
    for image in damaged(SEEDS[name], 50):
        label(image)


HOSTILE = {
    "bmp of 2^31 - 1 columns": patched("24-bit.bmp", 18, "<i", 2**31 - 1),
    "bmp of -2^31 rows": patched("24-bit.bmp", 22, "<i", -(2**31)),
    "bmp of no columns": patched("24-bit.bmp", 18, "<i", 0),
    "bmp with pixels at 2^32 - 1": patched("24-bit.bmp", 10, "<I", 2**32 - 1),
    "bmp with pixels in its header": patched("24-bit.bmp", 10, "<I", 15),
    "bmp with a header of 2^32 - 1 bytes": patched("24-bit.bmp", 14, "<I", 2**32 - 1),
    "bmp of 3 bits": patched("24-bit.bmp", 28, "<H", 3),
    "bmp with run lengths": patched("8-bit.bmp", 30, "<I", 1),
    "png of 2^31 - 1 columns": png(2**31 - 1, 1, 100),
    "png of 30000 x 30000 pixels": png(30000, 30000, 100),
    "png with fewer pixels than it says": png(100, 100, 100),
    "png with an empty chunk of pixels": with_empty_chunk(SEEDS["color.png"]),
    "jpeg of 65535 x 65535 pixels": jpeg("baseline.jpg", 65535, 65535),
    "jpeg of 8000 x 8000 pixels that are not there": with_many_scans(jpeg("flat.jpg", 8000, 8000), 1),
    "jpeg of 20000 scans": with_many_scans(jpeg("progressive.jpg", 4096, 4096), 20000),
    "ppm of 99999 x 99999 pixels": b"P6 99999 99999 255\n" + b"\0" * 100,
    "ppm without a size": b"P6",
    "gif": saved(PICTURE, "GIF"),
    "text": b"an image\n",
}


def test_a_small_png_that_unpacks_to_a_gibibyte_is_one_line(label):
    assert error_of(label(png(1, 1, 2**30))).startswith("cannot decode the image ")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_image_is_one_line(label, name):
    assert error_of(label(HOSTILE[name])).startswith("cannot decode the image ")
