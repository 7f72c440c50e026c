import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.evaluate.run import evaluate_models
from litebnn.graph import constant
from tests.evaluate.data_sets import MODEL, class_folders, counted, expected_counts, noise, npz
from tests.needs import need
from tests.support.float_models import FloatModel
from tests.support.programs import one_op_model, tensor
from toolchains.targets import ROOT

pytestmark = pytest.mark.usefixtures("library")
IMAGES, LABELS = noise(100)


def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for start in range(0, 100, 30):
        yield IMAGES[start : start + 30], LABELS[start : start + 30]


def evaluated(data, model=MODEL, **options):
    return evaluate_models(model, data, **{"workers": 0, **options})


@pytest.mark.parametrize("batch_size", [1, 7, 100, 1000])
def test_counts_what_a_plain_loop_does(tmp_path: Path, batch_size: int) -> None:
    assert counted(evaluated(npz(tmp_path / "a.npz"), batch_size=batch_size)) == expected_counts(IMAGES, LABELS)
    assert counted(evaluated(batches, batch_size=batch_size)) == expected_counts(IMAGES, LABELS)


def test_agreement_of_models(tmp_path: Path) -> None:
    """The scores of these models are constant. Two models agree on all images. The third agrees with them only on
    images that it takes for a 3.
    """
    paths = []
    for best in (3, 3, 5):
        model = FloatModel()
        scores = model.const(np.eye(10, dtype=np.float32)[best : best + 1])
        flat = model.reshape(model.input(1, 28, 28, 1), 1, 784)
        zeros = model.dense(flat, np.zeros((10, 784), np.float32))
        paths.append(tmp_path / f"{len(paths)}.tflite")
        paths[-1].write_bytes(model.finish(model.elementwise("ADD", zeros, scores)))
    found = evaluated(npz(tmp_path / "a.npz"), [MODEL, *paths])
    threes = sum(count for _, one, count in found.confusion(0) if one == 3) / 100
    assert found.agreement(1, 2) == 1
    assert found.agreement(0, 1) == found.agreement(2, 0) == threes
    assert found.agreement(3, 1) == 0
    assert found.top_1(1) == np.mean(LABELS == 3)
    assert found.top_5(3) == np.mean(np.isin(LABELS, [5, 0, 1, 2, 3]))  # equal scores rank by class number
    json.dumps(found.to_dict())


def test_without_labels_only_agreement_is_known(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=IMAGES)
    found = evaluated(tmp_path / "a.npz")
    assert (found.top_1(), found.confusion(), found.counts.samples) == (None, [], 100)


def test_int8_models_get_what_their_scale_says() -> None:
    """The model returns its input, so that the output shows the quantization. Input and output are int8 with scale
    1/16 and zero point 3.
    """
    x, y = (tensor(name, (1, 5), "INT8", 1 / 16, 3) for name in "xy")
    model = one_op_model("RESHAPE", [x, constant("shape", np.array([1, 5], np.int32))], y)
    levels = np.array([[-128, -3, 3, 19, 127], [0, 1, 127, 2, 3]])
    found = evaluated(lambda: [((levels - 3) / 16, [3, 2]), (levels[:1] * 100.0, [3])], model)
    assert found.confusion() == [
        (2, 2, 1),
        (3, 2, 1),
        (3, 4, 1),
    ]  # values that saturate int8 are equal, so the first class wins


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data, told = npz(tmp_path / "a.npz"), []

    def interrupt(done: int, total: int | None) -> None:
        if done >= 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluated(data, batch_size=20, partial=True, progress=interrupt, on_warning=told.append)
    (file,) = tmp_path.glob("litebnn-evaluate-*.partial")
    assert told == [f"the results of 40 samples are kept in {file.name}, where the same command goes on"]
    steps = []
    found = evaluated(data, batch_size=20, partial=True, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(done, 100) for done in (60, 80, 100)]
    assert counted(found) == expected_counts(IMAGES, LABELS)
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"preprocess": "[0,1]"}, "its preprocess is auto, not [0,1]"),
        ({"batch_size": 5}, "its batch size is 20, not 5"),
        ({"model": [MODEL, MODEL]}, "its models is ['"),
        ({"data": None}, "its data is "),
    ],
)
def test_a_partial_file_of_another_job_is_refused(tmp_path: Path, change: dict, message: str) -> None:
    job = {"data": npz(tmp_path / "a.npz"), "batch_size": 20, "partial": tmp_path / "a.partial"}
    evaluated(**job)
    other = {**job, **change, "data": npz(tmp_path / "a.npz", 50) if "data" in change else job["data"]}
    with pytest.raises(ValueError, match=r"remove it, or name another file$") as error:
        evaluated(**other)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_batches_of_a_function_that_change_are_refused(tmp_path: Path) -> None:
    order = [1]

    def changing() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        yield IMAGES[:: order[0]], LABELS

    evaluated(changing, partial=tmp_path / "a.partial")
    order[0] = -1
    with pytest.raises(ValueError, match="holds results of other samples for batch 0"):
        evaluated(changing, partial=tmp_path / "a.partial")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    need("mounts")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_is_one_line_and_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    data, told, images_and_labels = npz(tmp_path / "a.npz", 300), [], noise(300)
    partial = small_disk / "a.partial"
    found = evaluated(data, batch_size=20, partial=partial, on_warning=told.append)
    assert counted(found) == expected_counts(*images_and_labels)
    assert told == [f"{partial} keeps no more results: No space left on device; evaluating goes on without"]
    steps = []
    found = evaluated(
        data, batch_size=20, partial=partial, on_warning=told.append, progress=lambda *done: steps.append(done)
    )
    assert counted(found) == expected_counts(*images_and_labels)
    assert 0 < len(steps) < 15
    assert steps[-1] == (300, 300)

    partial.unlink()
    (small_disk / "rest").write_bytes(bytes(4096))
    assert counted(evaluated(data, partial=partial, on_warning=told.append)) == expected_counts(*images_and_labels)
    assert told[-1] == f"{partial} cannot keep results: No space left on device; evaluating goes on without"


def test_images_that_cannot_be_read_are_told_of_and_left_out(tmp_path: Path) -> None:
    need("evaluate")
    folder, told = class_folders(tmp_path / "images"), []
    (folder / "7" / "bad.png").write_bytes(b"no image")
    found = evaluated(folder, on_warning=told.append)
    images, labels = noise(20)
    assert counted(found) == expected_counts(images, labels)
    assert [name for name, _ in found.left_out] == [str(folder / "7" / "bad.png")]
    assert told == [f"{folder}/7/bad.png is left out: it is no image that Pillow knows"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0, "scheduler": "tcp://127.0.0.1:1"}, "workers and scheduler exclude each other"),
        ({"workers": -1}, "workers is -1"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"model": []}, "no model is given"),
        ({"model": 3}, "model is int, expected bytes or the path of a .tflite file"),
        ({"batch_size": True}, "batch_size is True, expected a whole number of at least 1"),
        ({"workers": "2"}, "workers is 2, expected 0 to 1024"),
        ({"workers": 10**9}, "workers is 1000000000, expected 0 to 1024"),
        ({"scheduler": 3, "workers": None}, "scheduler is int, expected an address"),
        ({"partial": 3}, "partial is int, expected the path of a file, True or False"),
        ({"preprocess": None}, "preprocess is NoneType, expected a text or a function"),
        ({"data": None}, "data is NoneType, expected a path or a function that yields batches"),
        ({"model": b"nothing"}, "the model is no .tflite file"),
        ({"preprocess": "x"}, "preprocess is x"),
        ({"data": lambda: [(IMAGES, LABELS + 5)]}, "the data set has the label 1"),
        ({"data": list}, "has no sample that can be read"),
        ({"data": lambda: [][0]}, ":<lambda> fails: IndexError: list index out of range"),
        ({"preprocess": lambda sample: {}["mean"]}, ":<lambda> fails: KeyError: 'mean'"),
        ({"data": lambda: [np.zeros((2, 5, 5), np.float32)]}, "a sample is [5, 5], the model takes [28, 28, 1]"),
        ({"model": ROOT / "tests/golden/bias.lce.tflite"}, "bias.lce.tflite has outputs [(1, "),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=".") as error:
        evaluated(**{"data": batches, **options})
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hosts": "pi@kitchen"}, "hosts is pi@kitchen, expected a list of addresses"),
        ({"num_threads": 0}, "num_threads is 0, expected a whole number of at least 1"),
        ({"num_threads": True}, "num_threads is True, expected a whole number of at least 1"),
        *(
            ({"seconds": wrong}, f"seconds is {wrong}, expected a number above 0")
            for wrong in (0, np.nan, np.inf, "60")
        ),
    ],
)
def test_mistakes_about_boards_are_one_line(options: dict, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{message}$"):
        litebnn.Boards(**{"hosts": ["pi@kitchen"], **options})


@pytest.mark.parametrize(
    ("module", "data", "workers"),
    [("PIL", "images", 0), ("pyarrow", "a.parquet", 0), ("distributed", "a.npz", 1)],
)
def test_a_missing_extra_is_one_line(tmp_path: Path, monkeypatch, module: str, data: str, workers: int) -> None:
    npz(tmp_path / "a.npz"), class_folders(tmp_path / "images"), (tmp_path / "a.parquet").write_bytes(b"")
    for name in [name for name in sys.modules if name.partition(".")[0] == module] + [module]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"need .*: pip install 'litebnn\[evaluate\]'"):
        evaluated(tmp_path / data, workers=workers)


@pytest.mark.deep
def test_memory_does_not_grow_with_the_data_set(tmp_path: Path) -> None:
    """A data set of 200 MB must need no more memory than one of 8 MB. Loaded as floats, it would need 800 MB."""
    code = (
        "import resource, sys, numpy as np, litebnn\n"
        "found = litebnn.evaluate_models(sys.argv[1], sys.argv[2], workers=0, batch_size=8)\n"
        "print(found.counts.samples, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    model = FloatModel()
    pooled = model.op("MEAN", [model.input(1, 512, 512, 4), model.const([1, 2], np.int32)], (1, 4), keep_dims=False)
    (tmp_path / "model.tflite").write_bytes(model.finish(pooled))
    peaks = []
    for count in (8, 200):
        zeros = np.broadcast_to(np.zeros((1, 512, 512, 4), np.uint8), (count, 512, 512, 4))
        np.savez_compressed(tmp_path / f"{count}.npz", images=zeros, labels=np.zeros(count, int))
        command = [sys.executable, "-c", code, tmp_path / "model.tflite", tmp_path / f"{count}.npz"]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stderr
        samples, peak = map(int, done.stdout.split())
        assert samples == count
        peaks.append(peak)
    assert peaks[1] < peaks[0] + 50_000
