"""Tests the programs of the unpacked bundle: on this machine, and for the Raspberry Pi 4 under an emulator."""

import json
import re
import shlex
import subprocess
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import litebnn
from bench.zoo import ZOO
from tests.needs import need
from tests.support.libraries import surely_missing_protection
from tests.support.programs import GOLDEN, host_programs, run, scores
from toolchains.bundle import bundle
from toolchains.emulate import recent_emulator
from toolchains.targets import find_target

IMAGES = 100
SYSTEM = Path("/usr/aarch64-linux-gnu")  # the C and C++ libraries of Debian's cross compiler


def emulator(target: str) -> list[str]:
    """The beginning of a command that runs the target's programs on this machine."""
    row = find_target(target)
    if not row.triple:
        return []
    need("aarch64-libraries", "debian")
    return [recent_emulator(row), "-cpu", row.emulator_cpu, "-L", str(SYSTEM)]


@pytest.fixture(scope="module", params=["host", pytest.param("rpi4", marks=pytest.mark.deep)])
def unpacked(request, tmp_path_factory):
    """Unpacks a bundle, and returns its folder and the command prefix for its programs."""
    host_programs()
    prefix = emulator(request.param)
    archive = bundle(request.param)
    place = tmp_path_factory.mktemp(request.param)
    with tarfile.open(archive) as tar:
        tar.extractall(place)
    return SimpleNamespace(folder=place / f"litebnn-{request.param}", prefix=prefix)


def test_the_commands_of_the_readme_work(unpacked):
    readme = (unpacked.folder / "README").read_text()
    commands = re.findall(r"\./(?:label_image|benchmark_model) .*", readme)
    assert len(commands) == 2
    outputs = []
    for command in commands:
        result = subprocess.run(
            [*unpacked.prefix, *shlex.split(command)], cwd=unpacked.folder, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stderr
        outputs.append(result.stdout)
    assert next(iter(scores(outputs[0]))) == 7
    assert " LceBconv2d " in outputs[1]


@pytest.mark.parametrize("name", ["label_image", "benchmark_model"])
def test_programs_have_the_usual_protections(unpacked, name):
    assert surely_missing_protection(unpacked.folder / name) == []


@pytest.fixture(scope="module")
def digits():
    """Test images of the demo, which were not used in training: uint8 [n, 28, 28], and their labels."""
    need("demo")
    from examples.mnist.data import bundled_digits

    data = bundled_digits()
    pixels = np.rint((data.test_images[:IMAGES, ..., 0] + 1) * 127.5).astype(np.uint8)
    return pixels, data.test_labels[:IMAGES]


def test_names_digits_with_the_scores_of_the_python_interpreter(unpacked, digits, tmp_path):
    pixels, labels = digits
    model = unpacked.folder / "digits.tflite"
    expected = litebnn.Interpreter(model).predict((pixels / 127.5 - 1).astype(np.float32)[..., None])
    right = 0
    for image, label, wanted in zip(pixels, labels, expected, strict=True):
        Image.fromarray(image).save(tmp_path / "digit.bmp")
        flags = {"tflite_model": model, "labels": unpacked.folder / "labels.txt", "image": tmp_path / "digit.bmp"}
        program = [*unpacked.prefix, unpacked.folder / "label_image"]
        result = run(program, **flags, num_results=10, lcompute=1, warmup_runs=0, threads=1)
        assert result.returncode == 0, result.stderr
        found = scores(result.stdout)
        assert [found[i] for i in range(10)] == pytest.approx(wanted, abs=1e-4)
        right += next(iter(found)) == label
    assert right >= 0.95 * IMAGES


def test_measures_every_golden_model(unpacked, tmp_path):
    program = [*unpacked.prefix, unpacked.folder / "benchmark_model"]
    for model in GOLDEN:
        result = run(program, graph=model, lcompute=1, num_runs=1, output=tmp_path / "results.json")
        assert result.returncode == 0, (model.name, result.stderr)
        assert json.loads((tmp_path / "results.json").read_text())["graph"] == str(model)


def test_loads_the_bundles_op_library_as_a_delegate(unpacked):
    program = [*unpacked.prefix, unpacked.folder / "label_image"]
    flags = {"tflite_model": unpacked.folder / "digits.tflite", "image": unpacked.folder / "digit.bmp"}
    linked = run(program, **flags, lcompute=1)
    loaded = run(program, **flags, external_delegate_path=unpacked.folder / "liblitebnn.so")
    assert scores(loaded.stdout) == scores(linked.stdout)


def test_runs_a_converted_quicknet(unpacked, tmp_path):
    source = ZOO / "QuickNet.float.tflite"
    need("quicknet")
    model = tmp_path / "quicknet.tflite"
    model.write_bytes(litebnn.convert_tflite(source))
    pixels = np.asarray(
        Image.fromarray(np.random.default_rng(0).integers(0, 256, (14, 14, 3), np.uint8)).resize((224, 224))
    )
    Image.fromarray(pixels).save(tmp_path / "image.bmp")
    expected = litebnn.Interpreter(model).predict((pixels / 127.5 - 1).astype(np.float32)[None])[0]
    flags = {"tflite_model": model, "image": tmp_path / "image.bmp", "num_results": len(expected), "warmup_runs": 0}
    for xnnpack in (0, 1):
        program = [*unpacked.prefix, unpacked.folder / "label_image"]
        result = run(program, **flags, lcompute=1, xnnpack_delegate=xnnpack, threads=1)
        found = scores(result.stdout)
        assert [found[i] for i in range(len(expected))] == pytest.approx(expected, abs=1e-4)
