import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from litebnn import cli
from litebnn.errors import ConversionError
from litebnn.files import read_file, write_whole

SOURCE = Path(__file__).resolve().parents[2] / "tests" / "golden" / "1x1.float.tflite"


def test_the_content_is_on_the_disk_before_the_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda file: done.append("content") or fsync(file))
    monkeypatch.setattr(Path, "replace", lambda self, path: done.append("name") or replace(self, path))
    write_whole(tmp_path / "file", b"content")
    assert done == ["content", "name"]
    assert (tmp_path / "file").read_bytes() == b"content"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.fixture(params=[signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal that this process does not ignore. A shell makes its background processes ignore SIGINT."""
    number: signal.Signals = request.param
    handler = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    former = signal.signal(number, handler)
    yield number
    signal.signal(number, former)


def test_a_signal_leaves_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    out = tmp_path / "out.tflite"
    monkeypatch.setattr(os, "fsync", lambda file: os.kill(os.getpid(), number))
    former = signal.getsignal(number)
    try:
        code = cli.main(["convert", str(SOURCE), "-o", str(out)])
    except SystemExit as end:
        code = end.code
    assert code == 128 + number
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(number) is former


@pytest.mark.parametrize("letter", ["x", "日"])
def test_a_name_may_be_as_long_as_a_folder_can_hold(tmp_path: Path, letter: str) -> None:
    path = tmp_path / (letter * (255 // len(letter.encode())))
    write_whole(path, b"content")
    assert path.read_bytes() == b"content"


def test_what_cannot_be_written_has_the_name_that_it_was_to_have(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        write_whole(path, b"content")
    assert (caught.value.filename, caught.value.filename2) == (str(path), None)
    with pytest.raises(FileNotFoundError) as missing:
        write_whole(tmp_path / "none" / "file", b"content")
    assert missing.value.filename == str(tmp_path / "none" / "file")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_name_with_a_null_character_is_named() -> None:
    with pytest.raises(ConversionError, match=r"^a\\x00b is no name of a file: it has a null character$"):
        read_file("a\0b")
