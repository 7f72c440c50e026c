import errno
import sys
from pathlib import Path

import numpy as np
import pytest

from litebnn.evaluate.rows import _damage_named
from litebnn.evaluate.sources import open_source
from tests.evaluate.data_sets import class_folders, noise, npz, png
from tests.needs import imported

pa = imported("pyarrow", "evaluate")
pq = imported("pyarrow.parquet", "evaluate")


def loaded(data, size: int = 7):
    """All inputs, labels and unreadable samples of a data set."""
    batches = list(open_source(data).batches(size))
    assert [batch.index for batch in batches] == list(range(len(batches)))
    parts = [batch.part.load() for batch in batches]
    for batch, part in zip(batches, parts, strict=True):
        assert batch.size == len(part.inputs) + len(part.unreadable)
    labels = [label for part in parts for label in part.labels or ()]
    return (
        [np.asarray(each) for part in parts for each in part.inputs],
        labels,
        [u for p in parts for u in p.unreadable],
    )


def parquet(path: Path, images, labels, **options) -> Path:
    pq.write_table(pa.table({"image": images, "label": labels}), path, **options)
    return path


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("names", [("images", "labels"), ("x_test", "y_test")])
def test_npz(tmp_path: Path, save, names) -> None:
    images, labels = noise(20)
    save(tmp_path / "data.npz", **dict(zip(names, (images, labels), strict=True)), x_train=images[:3])
    inputs, found, _ = loaded(tmp_path / "data.npz")
    assert np.array_equal(inputs, images)
    assert found == labels.tolist()


def test_damage_that_the_library_does_not_describe_is_named_by_its_class() -> None:
    with pytest.raises(ValueError, match=r"^data\.npz is damaged: EOFError$"), _damage_named("data.npz"):
        raise EOFError


def test_parts_of_an_npz_may_be_loaded_in_any_order(tmp_path: Path) -> None:
    images, _ = noise(20)
    batches = list(open_source(npz(tmp_path / "data.npz", 20)).batches(3))
    for number in (6, 2, 4, 0):
        assert np.array_equal(batches[number].part.load().inputs, images[3 * number : 3 * number + 3])


def test_class_folders(tmp_path: Path) -> None:
    images, labels = noise(20)
    order = np.argsort(labels, kind="stable")
    inputs, found, _ = loaded(class_folders(tmp_path / "images"))
    assert np.array_equal(inputs, images[order])
    assert found == labels[order].tolist()


def test_class_folders_without_numbers_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("cat", "ant", "10"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(png(np.zeros((4, 4, 3), np.uint8)))
    source = open_source(tmp_path)
    assert source.classes == {0: "10", 1: "ant", 2: "cat"}
    assert loaded(tmp_path)[1] == [0, 1, 2]


def test_folders_of_numbers_are_of_these_classes(tmp_path: Path) -> None:
    for name in ("2", "10"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(png(np.zeros((4, 4, 1), np.uint8)))
    assert loaded(tmp_path)[1] == [10, 2]


@pytest.mark.parametrize("kind", ["bytes", "structure", "numbers", "nested"])
def test_parquet(tmp_path: Path, kind: str) -> None:
    images, labels = noise(40)
    cells = {
        "bytes": lambda image: png(image),
        "structure": lambda image: {"bytes": png(image), "path": "1.png"},
        "numbers": lambda image: image.ravel().tolist(),
        "nested": lambda image: image[..., 0].tolist(),
    }
    column = [cells[kind](image) for image in images]
    types = {"numbers": pa.list_(pa.uint8()), "nested": pa.list_(pa.list_(pa.uint8()))}
    path = parquet(tmp_path / "a.parquet", pa.array(column, types.get(kind)), labels, row_group_size=15)
    inputs, found, _ = loaded(path)
    assert np.array_equal(np.reshape(inputs, images.shape), images)
    assert {image.dtype for image in inputs} == {np.dtype(np.uint8)}
    assert found == labels.tolist()


def test_parquet_files_in_folders(tmp_path: Path) -> None:
    images, labels = noise(10)
    (tmp_path / "more").mkdir()
    for name, rows in (("a", slice(0, 4)), ("more/b", slice(4, 10))):
        parquet(tmp_path / f"{name}.parquet", [png(image) for image in images[rows]], labels[rows])
    assert np.array_equal(loaded(tmp_path)[0], images)
    assert open_source(tmp_path).size == 10


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    class_folders(tmp_path / "images")
    bad = tmp_path / "images" / "7" / "bad.png"
    for content in (b"", b"no image", png(np.zeros((28, 28, 1), np.uint8))[:40]):
        bad.write_bytes(content)
        inputs, labels, ((name, reason),) = loaded(tmp_path / "images")
        assert (len(inputs), len(labels), name) == (20, 20, str(bad))
        assert reason
        assert "\n" not in reason
    path = parquet(tmp_path / "a.parquet", [png(noise(1)[0][0]), b"no image", None, b""], [1, 2, 3, 4])
    assert [name for name, _ in loaded(path)[2]] == [f"{path}, row {row} of group 0" for row in (1, 2, 3)]
    lists = pa.array([[1, 2], [], [3, 4]], pa.list_(pa.uint8()))
    path = parquet(tmp_path / "b.parquet", lists, [1, 2, 3])
    assert loaded(path)[1:] == ([1, 3], [(f"{path}, row 1 of group 0", "it has no image")])


def test_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_batches.py").write_text(
        "import numpy as np\ndef two():\n    for i in range(2):\n        yield np.full((3, 4), i), np.array([i] * 3)\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    source = open_source("my_batches:two", str(tmp_path))
    assert [batch.part.load().labels for batch in source.batches(32)] == [[0] * 3, [1] * 3]
    first, second = source.batches(32)
    assert first.digest != second.digest
    with pytest.raises(ValueError, match=r"^my_batches:three cannot be imported: AttributeError: "):
        open_source("my_batches:three", str(tmp_path))
    (tmp_path / "my_mistake.py").write_text("def three(:\n")
    with pytest.raises(ValueError, match=r"^my_mistake:three cannot be imported: SyntaxError: "):
        open_source("my_mistake:three", str(tmp_path))


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (3, "int64 [], expected an array"),
        ((np.zeros((2, 3)), [1, 2, 3]), "the labels are int64 [3], expected 2 integers"),
        ((np.zeros((2, 3)), np.zeros((2, 10))), "the labels are float64 [2, 10], expected 2 integers"),
        (["a"], "<U1 [1], expected an array"),
    ],
)
def test_what_is_no_batch_is_said(batch, message: str) -> None:
    with pytest.raises(ValueError, match="batch 0") as error:
        list(open_source(lambda: [batch]).batches(1))
    assert message in str(error.value)


def test_what_is_no_data_set_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    np.savez(tmp_path / "names.npz", a=np.zeros(3))
    np.savez(tmp_path / "counts.npz", images=np.zeros((3, 2)), labels=np.zeros(2, int))
    np.savez(tmp_path / "order.npz", images=np.asfortranarray(np.zeros((3, 2))), labels=np.zeros(3, int))
    parquet(tmp_path / "names.parquet", [b""], ["cat"])
    parquet(tmp_path / "dictionary.parquet", [b""], pa.array(["cat"]).dictionary_encode())
    parquet(tmp_path / "scores.parquet", [b""], [[0, 1]])
    parquet(tmp_path / "paths.parquet", ["a.png"], [0])
    (tmp_path / "two").mkdir()
    parquet(tmp_path / "two" / "a.parquet", [b""], [0])
    pq.write_table(pa.table({"img": [b""], "label": [0]}), tmp_path / "two" / "b.parquet")
    expected = {
        "nowhere": "is no file or folder: expected a folder of class folders",
        "a.txt": "is of no kind that is known: expected",
        "empty": "has no images in class folders",
        "broken.npz": "cannot be read as .npz",
        "broken.parquet": "is no sound parquet file",
        "names.npz": "holds a: expected an array images, and labels",
        "counts.npz": "has 3 and 2 rows of images and labels",
        "order.npz": "expected rows of numbers in C's order",
        "names.parquet": "the column label is string, expected integers",
        "dictionary.parquet": "the column label is dictionary<",
        "scores.parquet": "the column label is list<",
        "paths.parquet": "the column image is string, expected files' bytes",
        "two": "b.parquet has the columns img, label, ",
    }
    for name, message in expected.items():
        with pytest.raises(ValueError, match=".") as error:
            open_source(tmp_path / name)
        assert message in str(error.value)
        assert str(tmp_path / name) in str(error.value)
        assert "\n" not in str(error.value)


def test_no_name_is_not_the_folder_that_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class_folders(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert open_source(".").size == 20
    with pytest.raises(ValueError, match="is no file or folder: expected"):
        open_source("")


def test_a_truncated_npz_is_damage(tmp_path: Path) -> None:
    path = npz(tmp_path / "data.npz")
    batches = list(open_source(path).batches(50))
    content = bytearray(path.read_bytes())
    content[40000:40100] = bytes(100)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"data\.npz: images is damaged: Bad CRC-32"):
        [batch.part.load() for batch in batches]


def test_a_file_that_takes_the_place_of_one_that_is_open_is_read(tmp_path: Path) -> None:
    """After a file was replaced, a cluster worker that had opened the old file must return the rows of the new one."""
    images, labels = noise(20, seed=1)
    npz(tmp_path / "a.npz", 20), parquet(tmp_path / "a.parquet", [png(image) for image in noise(20)[0]], labels)
    for name in ("a.npz", "a.parquet"):
        next(open_source(tmp_path / name).batches(5)).part.load()
        np.savez(tmp_path / "new.npz", images=images, labels=labels)
        parquet(tmp_path / "new.parquet", [png(image) for image in images], labels)
        (tmp_path / "new").with_suffix(Path(name).suffix).replace(tmp_path / name)
        _, second, *_ = open_source(tmp_path / name).batches(5)
        assert np.array_equal(second.part.load().inputs, images[5:10])


def test_images_of_16_bits_keep_the_upper_8(tmp_path: Path) -> None:
    from PIL import Image

    wide = np.arange(0, 65536, 1024, np.uint16).reshape(8, 8)
    (tmp_path / "0").mkdir()
    Image.fromarray(wide).save(tmp_path / "0" / "a.png")
    Image.fromarray(wide).save(tmp_path / "0" / "b.tif")
    for pixels in loaded(tmp_path)[0]:
        assert pixels.dtype == np.uint8
        assert np.array_equal(pixels[..., 0], wide // 256)


def test_an_image_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class_folders(tmp_path / "images")
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "003.png":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    ((name, reason),) = loaded(tmp_path / "images")[2]
    assert (Path(name).name, reason) == ("003.png", "Permission denied")


def test_a_fingerprint_changes_with_the_files(tmp_path: Path) -> None:
    path = class_folders(tmp_path / "images")
    before = open_source(path).fingerprint
    assert open_source(path).fingerprint == before
    (path / "7" / "new.png").write_bytes(png(noise(1)[0][0]))
    assert open_source(path).fingerprint != before
