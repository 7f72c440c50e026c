"""Tests fetching from servers on this machine that break off, send wrong lengths or other bytes, or refuse."""

import errno
import hashlib
import os
import socket
import struct
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from litebnn.zoo import fetch as module
from litebnn.zoo.fetch import FetchError, RemoteFile, cache_folder, fetch, fetch_weights, weights_file
from litebnn.zoo.networks import NETWORKS, RELEASES
from tests.needs import need

CONTENT = np.random.default_rng(0).bytes(1 << 20)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
Answer = Callable[["Request"], None]


class Request(BaseHTTPRequestHandler):
    """A request handler that calls a function of the test's server."""

    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers.get("Range")))
        self.server.answer(self)

    def log_message(self, *_: object) -> None:
        pass

    @property
    def count(self) -> int:
        """The number of requests so far, including this one."""
        return len(self.server.requests)

    @property
    def begin(self) -> int:
        """The first byte that the request asks for."""
        return int((self.headers.get("Range") or "bytes=0-")[6:-1])

    def reply(self, content: bytes, length: int | None = None, most: int | None = None, ranges: bool = True) -> None:
        """Sends the part of `content` that the request asks for, but at most `most` bytes. If `length` is given, it is
        the Content-Length, which may be false.
        """
        begin = self.begin if ranges else 0
        if begin >= len(content):
            self.send_error(416)
            return
        part = content[begin:]
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(part) if length is None else length))
        self.end_headers()
        self.wfile.write(part[:most])


@contextmanager
def serving(answer: Answer) -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Request) as server:
        server.answer, server.requests = answer, []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    need("loopback")
    monkeypatch.setattr(module, "_PAUSE", 0.0)
    monkeypatch.setattr(module, "_SECONDS", 5.0)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def file_at(server: ThreadingHTTPServer, folder: Path, sha256: str = SHA256) -> RemoteFile:
    return RemoteFile(f"http://127.0.0.1:{server.server_port}/weights.h5", folder / "zoo" / "weights.h5", sha256)


def fails(file: RemoteFile) -> str:
    """Returns the error message of a failed fetch. It must be one line with the address and the path."""
    with pytest.raises(FetchError) as caught:
        fetch(file, lambda done, total: None)
    message = str(caught.value)
    assert "\n" not in message
    assert file.address in message
    assert str(file.path) in message
    assert not file.path.exists()
    return message


def test_a_file_is_fetched_once_and_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    with serving(lambda request: request.reply(CONTENT)) as server:
        file = file_at(server, tmp_path)
        for _ in range(2):
            assert fetch(file, lambda done, total: told.append((done, total))).read_bytes() == CONTENT
        assert len(server.requests) == 1
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert sorted(path.name for path in file.path.parent.iterdir()) == ["weights.h5", "weights.h5.lock"]


def test_a_transfer_that_breaks_off_is_continued(tmp_path: Path) -> None:
    with serving(lambda request: request.reply(CONTENT, most=300_000)) as server:
        assert fetch(file_at(server, tmp_path)).read_bytes() == CONTENT
        assert [asked for _, asked in server.requests] == [None, *(f"bytes={n * 300_000}-" for n in (1, 2, 3))]


def test_the_next_run_continues_what_an_earlier_one_left(tmp_path: Path) -> None:
    def answer(request: Request) -> None:
        request.reply(CONTENT, most=400_000) if request.count == 1 else request.send_error(503)

    with serving(answer) as server:
        file = file_at(server, tmp_path)
        assert "the next try continues after 400,000 bytes" in fails(file)
        server.answer = lambda request: request.reply(CONTENT)
        assert fetch(file).read_bytes() == CONTENT
        assert server.requests[-1][1] == "bytes=400000-"


def test_a_server_without_ranges_sends_all_of_it_again(tmp_path: Path) -> None:
    def answer(request: Request) -> None:
        request.reply(CONTENT, most=400_000 if request.count == 1 else None, ranges=False)

    with serving(answer) as server:
        assert fetch(file_at(server, tmp_path)).read_bytes() == CONTENT


@pytest.mark.parametrize("ranges", [True, False])
def test_a_length_that_is_too_large_is_no_obstacle(ranges: bool, tmp_path: Path) -> None:
    with serving(lambda request: request.reply(CONTENT, length=len(CONTENT) + 99, ranges=ranges)) as server:
        assert fetch(file_at(server, tmp_path)).read_bytes() == CONTENT
        assert len(server.requests) <= 2 * module.ATTEMPTS


def test_a_length_that_is_too_small_is_a_wrong_hash(tmp_path: Path) -> None:
    with serving(lambda request: request.reply(CONTENT, length=1000)) as server:
        message = fails(file_at(server, tmp_path))
        assert f"has 1,000 bytes of SHA-256 {hashlib.sha256(CONTENT[:1000]).hexdigest()}, expected {SHA256}" in message
        assert len(server.requests) == 1


def test_other_bytes_are_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    with serving(lambda request: request.reply(b"<html>sign in to this network</html>")) as server:
        file = file_at(server, tmp_path)
        assert "expected" in fails(file)
        assert [path.name for path in file.path.parent.iterdir()] == ["weights.h5.lock"]


@pytest.mark.parametrize("part", [b"of another file", CONTENT + b"more than there is"])
def test_a_part_of_another_file_is_replaced(part: bytes, tmp_path: Path) -> None:
    with serving(lambda request: request.reply(CONTENT)) as server:
        file = file_at(server, tmp_path)
        file.path.parent.mkdir()
        file.path.with_name("weights.h5.part").write_bytes(part)
        assert fetch(file).read_bytes() == CONTENT


def test_a_continuation_with_other_bytes_is_replaced(tmp_path: Path) -> None:
    def answer(request: Request) -> None:
        content = CONTENT[:400_000] + bytes(len(CONTENT) - 400_000) if request.count == 2 else CONTENT
        request.reply(content, most=400_000 if request.count == 1 else None)

    with serving(answer) as server:
        assert fetch(file_at(server, tmp_path)).read_bytes() == CONTENT
        assert [asked for _, asked in server.requests] == [None, "bytes=400000-", None]


def test_redirections_are_followed_and_continued(tmp_path: Path) -> None:
    def answer(request: Request) -> None:
        if "signed" in request.path:
            request.reply(CONTENT, most=600_000)
            return
        request.send_response(302)
        request.send_header("Location", f"/signed?{request.count}")
        request.end_headers()

    with serving(answer) as server:
        assert fetch(file_at(server, tmp_path)).read_bytes() == CONTENT
        begin = "bytes=600000-"
        first, second = ("/weights.h5", None), ("/weights.h5", begin)
        assert server.requests == [first, ("/signed?1", None), second, ("/signed?3", begin)]


def test_a_redirection_without_an_end_is_one_line(tmp_path: Path) -> None:
    def answer(request: Request) -> None:
        request.send_response(302)
        request.send_header("Location", request.path)
        request.end_headers()

    with serving(answer) as server:
        assert "the server answers 302 " in fails(file_at(server, tmp_path))


def test_an_address_with_line_ends_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"^cannot fetch http://a\\nb/weights.h5: .* put it at .*") as caught:
        fetch(RemoteFile("http://a\nb/weights.h5", tmp_path / "weights.h5", SHA256))
    assert str(caught.value).isprintable()


def test_more_than_any_file_has_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 500_000)
    with serving(lambda request: request.reply(CONTENT)) as server:
        assert "which is another file" in fails(file_at(server, tmp_path))


@pytest.mark.parametrize(("code", "requests"), [(404, 1), (403, 1), (500, module.ATTEMPTS), (429, module.ATTEMPTS)])
def test_a_refusal_is_tried_again_only_if_that_may_help(code: int, requests: int, tmp_path: Path) -> None:
    with serving(lambda request: request.send_error(code)) as server:
        assert f"the server answers {code} " in fails(file_at(server, tmp_path))
        assert len(server.requests) == requests


def test_a_server_that_sends_a_byte_at_a_time_is_given_up(tmp_path: Path) -> None:
    with serving(lambda request: request.reply(CONTENT, most=1)) as server:
        fails(file_at(server, tmp_path))
        assert len(server.requests) == module.MOST_REQUESTS


def test_what_is_no_http_is_one_line(tmp_path: Path) -> None:
    with serving(lambda request: request.wfile.write(b"220 mail.example ESMTP\r\n")) as server:
        assert "the server answers no HTTP" in fails(file_at(server, tmp_path))


@pytest.mark.parametrize(
    ("sends", "reason"),
    [
        (None, "the connection breaks off: timed out"),
        (b"", "the connection breaks off: Connection reset by peer"),
        (b"HTTP/1.1 200 OK\r\n", "the connection breaks off: Connection reset by peer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nabc", "the transfer breaks off: Connection reset by peer"),
    ],
)
def test_a_connection_that_is_reset_or_silent_is_tried_again(
    sends: bytes | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SECONDS", 0.05 if sends is None else 5.0)
    ended = threading.Event()

    def answer(request: Request) -> None:
        if sends is None:
            ended.wait(5)
            return
        request.wfile.write(sends)
        # Closing a socket with a linger time of 0 resets the connection.
        request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(request.connection.detach())

    with serving(answer) as server:
        message = fails(file_at(server, tmp_path))
        ended.set()
        assert reason in message
        assert "LITEBNN_CACHE" not in message
        assert len(server.requests) >= module.ATTEMPTS


def test_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda request: None) as server:
        file = file_at(server, tmp_path)
    message = fails(file)
    assert "refused" in message
    assert "set http_proxy if you need a proxy" in message
    monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{server.server_port}")
    message = fails(file)
    assert f"check the proxy 127.0.0.1:{server.server_port}" in message
    assert "secret" not in message


def test_a_file_comes_through_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RemoteFile("http://weights.invalid/weights.h5", tmp_path / "zoo" / "weights.h5", SHA256)
    with serving(lambda request: request.reply(CONTENT, most=600_000)) as server:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_port}")
        # The variable http_proxy is read only before urllib's first request, so the test resets urllib.
        monkeypatch.setattr(urllib.request, "_opener", None)
        assert fetch(file).read_bytes() == CONTENT
        assert server.requests == [(file.address, None), (file.address, "bytes=600000-")]


def test_a_file_carried_by_hand_is_taken_if_its_hash_is_right(tmp_path: Path) -> None:
    file = RemoteFile("http://127.0.0.1:9/weights.h5", tmp_path / "weights.h5", SHA256)
    file.path.write_bytes(CONTENT)
    assert fetch(file) == file.path
    file.path.write_bytes(CONTENT[:-1])
    with pytest.raises(FetchError, match=f"expected {SHA256}: delete it") as caught:
        fetch(file)
    assert file.path.exists()
    assert str(file.path) in str(caught.value)


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module.os, "fsync", full)
    with serving(lambda request: request.reply(CONTENT)) as server, pytest.raises(FetchError) as caught:
        fetch(file_at(server, tmp_path))
    assert f"the disk of {tmp_path / 'zoo'} is full" in str(caught.value)
    assert "LITEBNN_CACHE" in str(caught.value)


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "zoo").write_text("no folder")
    with pytest.raises(FetchError, match="^cannot write .*weights.h5: .*; set LITEBNN_CACHE to a folder"):
        fetch(RemoteFile("http://127.0.0.1:9/weights.h5", tmp_path / "zoo" / "sub" / "weights.h5", SHA256))


def test_weights_come_from_a_mirror_into_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITEBNN_CACHE", str(tmp_path / "cache"))
    network = NETWORKS["QuickNet"]
    assert weights_file(network).address == f"{RELEASES}/quicknet-v1.0/quicknet_weights.h5"
    path = tmp_path / "cache" / "zoo" / "quicknet-v1.0" / "quicknet_weights_notop.h5"
    with serving(lambda request: request.reply(CONTENT)) as server:
        monkeypatch.setenv("LITEBNN_ZOO_MIRROR", f"http://127.0.0.1:{server.server_port}/mirror/")
        with pytest.raises(FetchError, match=f"put it at {path}"):
            fetch_weights(network, include_top=False)
        assert server.requests[0][0] == "/mirror/quicknet-v1.0/quicknet_weights_notop.h5"


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, ".cache/litebnn"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, ".cache/litebnn"),
        ("linux", {"XDG_CACHE_HOME": "{home}/caches"}, "caches/litebnn"),
        ("darwin", {}, "Library/Caches/litebnn"),
        ("win32", {"LOCALAPPDATA": "{home}/Local"}, "Local/litebnn/Cache"),
        ("linux", {"LITEBNN_CACHE": "{home}/mine"}, "mine"),
        ("linux", {"LITEBNN_CACHE": "~/mine"}, "mine"),
    ],
)
def test_the_cache_is_where_the_platform_has_caches(
    platform: str, variables: dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LITEBNN_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", platform)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(home=tmp_path))
    assert cache_folder() == tmp_path / expected
