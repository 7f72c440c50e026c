import json
from pathlib import Path

import numpy as np
import pytest

from litebnn.evaluate.batches import ArraysPart, Batch
from litebnn.evaluate.partial_file import PartialFile

JOB = {"data": "a", "models": ["b"]}


def batch(index: int, digest: int = 0) -> Batch:
    return Batch(index, 1, ArraysPart(np.zeros((1, 1)), None), digest)


def result(index: int) -> dict:
    return {"labels": [index], "top": [[[1, 2]]]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = PartialFile(tmp_path / "a.partial", JOB)
    for index in (3, 0, 5):
        file.add(batch(index, 7 * index), result(index))
    file.close()
    return tmp_path / "a.partial"


def kept(path: Path) -> dict[int, dict]:
    file = PartialFile(path, JOB)
    found = list(file.kept())
    file.close()
    assert len(found) == len(dict(found))
    return dict(found)


def test_what_was_kept_is_there_again(path: Path) -> None:
    assert kept(path) == {index: result(index) for index in (3, 0, 5)}
    file = PartialFile(path, JOB)
    assert [file.has(batch(index, 7 * index)) for index in (0, 1, 3)] == [True, False, True]
    with pytest.raises(ValueError, match="holds results of other samples for batch 3"):
        file.has(batch(3, 1))


def test_wherever_it_is_cut_off_whole_results_stay_and_more_may_follow(path: Path) -> None:
    content = path.read_bytes()
    start = content.index(b"\n") + 1
    for end in range(start, len(content)):
        path.write_bytes(content[:end])
        whole = content[start:end].count(b"\n")
        assert list(kept(path)) == [3, 0, 5][:whole]
        file = PartialFile(path, JOB)
        file.add(batch(9), result(9))
        file.close()
        assert kept(path) == {index: result(index) for index in [*[3, 0, 5][:whole], 9]}


def test_a_damaged_result_is_none_and_the_others_stay(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"labels":[0]', b'"labels":[1]')
    path.write_bytes(b"".join(lines))
    assert kept(path) == {index: result(index) for index in (3, 5)}


def test_a_result_that_is_there_twice_counts_once(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[1]]))
    assert list(kept(path)) == [3, 0, 5]


def test_another_job_is_one_line(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"its data is a, not z; remove it, or name another file$"):
        PartialFile(path, {**JOB, "data": "z"})
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"something else", b"\n", b"00000000 {}\n", json.dumps(JOB).encode()])
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "notes").write_bytes(content)
    with pytest.raises(ValueError, match="notes holds no partial results"):
        PartialFile(tmp_path / "notes", JOB)
    assert (tmp_path / "notes").read_bytes() == content


def test_two_at_once_are_one_line(path: Path) -> None:
    first = PartialFile(path, JOB)
    with pytest.raises(ValueError, match="is in use"):
        PartialFile(path, JOB)
    first.close()
    PartialFile(path, JOB).close()
