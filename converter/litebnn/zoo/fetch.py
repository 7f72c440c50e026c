"""Fetches files by address and SHA-256 into the cache folder.

No widely used library, such as pooch, continues a transfer that broke off, so this module does it itself.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http.client
import os
import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from litebnn.errors import printable, reason_of, shortened
from litebnn.zoo.networks import RELEASES, Network

# The environment variable that names a folder to use instead of the default one.
VARIABLE = "LITEBNN_CACHE"


def cache_folder() -> Path:
    """The folder that LITEBNN_CACHE names, or litebnn's folder among the platform's caches. The folder may not exist
    yet."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser().absolute()
    try:
        home = Path.home()
    except RuntimeError:  # neither HOME nor the user's entry in the system's list says where it is
        raise ValueError(f"this user has no home folder: set {VARIABLE} to a folder for fetched files") from None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "litebnn" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "litebnn"
    # The XDG standard says that a relative path must be ignored.
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if Path(named).is_absolute() else home / ".cache") / "litebnn"


# The environment variable with the address of a mirror, in which files have the same paths as in the releases on
# GitHub.
MIRROR = "LITEBNN_ZOO_MIRROR"
# The number of successive attempts that may bring no bytes before a broken transfer is given up.
ATTEMPTS = 3
MOST_REQUESTS = 50
# The largest number of bytes that a server may send. The largest file has 250 MB.
MOST_BYTES = 1 << 30
_PIECE = 1 << 18
_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
_SECONDS = 30.0
_PAUSE = 0.5

Progress = Callable[[int, "int | None"], None]  # takes the bytes that are there, and the total if it is known


class FetchError(OSError):
    """A file that could not be fetched; the message is one line that says what to do."""

    def __init__(self, message: str) -> None:
        # Addresses, paths and texts from a server may contain any characters, so control characters are escaped.
        super().__init__(printable(message))


class _Interrupted(Exception):
    """A request for a file that failed, perhaps only for a while. The next request continues the download."""


@dataclass(frozen=True)
class RemoteFile:
    """A file at an address, and its path in the cache."""

    address: str
    path: Path
    sha256: str

    def _by_hand(self) -> str:
        return f"fetch {self.address} by other means and put it at {self.path}"


def weights_file(network: Network, include_top: bool = True) -> RemoteFile:
    """The file of a network's pretrained weights."""
    address = network.address(include_top)
    if mirror := os.environ.get(MIRROR):
        address = mirror.rstrip("/") + address.removeprefix(RELEASES)
    file = network.file(include_top)
    return RemoteFile(address, cache_folder() / "zoo" / f"{network.release}-{file.version}" / file.name, file.sha256)


def fetch_weights(network: Network, include_top: bool = True, progress: Progress | None = None) -> Path:
    """The path of a network's pretrained weights. The weights are fetched if the cache does not have them.

    Raises:
        FetchError: the weights cannot be fetched, or the file in the cache has another hash.
    """
    return fetch(weights_file(network, include_top), progress)


def fetch(file: RemoteFile, progress: Progress | None = None) -> Path:
    """The path of a file whose hash has been checked. The file is fetched if the cache does not have it.

    Args:
        file: the file to fetch.
        progress: a function that is called while the file is fetched; by default a bar is drawn on stderr if that is a
            terminal.

    Raises:
        FetchError: the file cannot be fetched, or the file in the cache has another hash.
    """
    if file.path.exists():
        _check_carried(file)
        return file.path
    try:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        with (
            _locked(file.path),
            _drawn(file.path.name) if progress is None else contextlib.nullcontext(progress) as told,
        ):
            if not file.path.exists():  # another process may have fetched it in the meantime
                _fetch(file, told)
    except OSError as error:
        if isinstance(error, FetchError):
            raise
        raise FetchError(_on_disk(file, error)) from None
    return file.path


def _check_carried(file: RemoteFile) -> None:
    try:
        found = _hash_of(file.path)
    except OSError as error:
        raise FetchError(f"cannot read {file.path}: {reason_of(error)}") from None
    if found != file.sha256:
        raise FetchError(
            f"{file.path} has SHA-256 {found}, expected {file.sha256}: delete it, so that it is fetched again from "
            f"{file.address}"
        )


def _fetch(file: RemoteFile, progress: Progress) -> None:
    """Fetches a file under a temporary name in its folder, checks its hash, and renames it."""
    part = file.path.with_name(f"{file.path.name}.part")
    is_joined = _transfer(file, part, progress)
    found = _hash_of(part)
    if found != file.sha256 and is_joined:
        # The partial file was joined from several transfers, one of which may be damaged or belong to another file.
        # Therefore the whole file is removed and fetched again.
        part.unlink()
        _transfer(file, part, progress)
        found = _hash_of(part)
    if found != file.sha256:
        size = part.stat().st_size
        part.unlink()
        raise FetchError(
            f"{file.address} has {size:,} bytes of SHA-256 {found}, expected {file.sha256}: a proxy or a damaged "
            f"transfer may be the cause; try again, or {file._by_hand()}"
        )
    part.replace(file.path)


def _transfer(file: RemoteFile, part: Path, progress: Progress) -> bool:
    """Appends to a partial file until it is complete, with as many requests as necessary. Returns True if the bytes
    come from more than one transfer.

    Raises:
        FetchError: the server refuses, or several requests in a row bring nothing.
    """
    failed = requests = 0
    while True:
        before, requests = _size(part), requests + 1
        try:
            _request(file, part, before, progress)
            return before > 0
        except _Interrupted as error:
            kept = _size(part)
            failed = 0 if kept > before else failed + 1
            if failed == ATTEMPTS or requests == MOST_REQUESTS:
                if kept and _hash_of(part) == file.sha256:  # the server told a wrong length
                    return True
                state = f"; the next try continues after {kept:,} bytes" if kept else ""
                raise FetchError(f"cannot fetch {file.address}: {error}{state}; {_advice(file)}") from None
            time.sleep(_PAUSE * failed)


def _size(part: Path) -> int:
    """The size of a partial file in bytes; 0 if there is none."""
    return part.stat().st_size if part.exists() else 0


def _request(file: RemoteFile, part: Path, begin: int, progress: Progress) -> None:
    """Fetches the bytes of a file from position `begin` to the end.

    Raises:
        _Interrupted: the network or the server failed, perhaps only for a while.
        FetchError: another request would fail too.
        OSError: the partial file cannot be written.
    """
    response = _answer(file, begin)
    if response is None:  # the partial file is complete, or of another file; its hash is checked later
        return
    with response:
        if begin and _first_byte(response) != begin:
            begin = 0  # the server sends the file from its beginning
        total = _total(response, begin)
        with part.open("r+b" if begin else "wb") as out:
            out.seek(begin)
            _copy(file, response, out, total, progress)


def _answer(file: RemoteFile, begin: int) -> Any:
    """The server's response with the bytes from position `begin`; None if there are none from there."""
    headers = {"User-Agent": "litebnn", "Accept-Encoding": "identity"}
    if begin:
        headers["Range"] = f"bytes={begin}-"
    try:
        return urllib.request.urlopen(urllib.request.Request(file.address, headers=headers), timeout=_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code == 416 and begin:
            return None
        answer = f"the server answers {error.code} {error.reason}"
        if error.code in (408, 429) or error.code >= 500:
            raise _Interrupted(answer) from None
        raise FetchError(f"cannot fetch {file.address}: {answer}; {_advice(file)}") from None
    except urllib.error.URLError as error:
        reason = error.reason if isinstance(error.reason, Exception) else OSError(error.reason)
        raise _Interrupted(reason_of(reason)) from None
    except http.client.HTTPException as error:
        raise _Interrupted(f"the server answers no HTTP ({shortened(str(error) or type(error).__name__)})") from None
    except OSError as error:  # after the connection was made, errors are no longer URLErrors
        raise _Interrupted(f"the connection breaks off: {reason_of(error) or type(error).__name__}") from None
    except ValueError as error:  # the text is not a valid address
        raise FetchError(f"cannot fetch {file.address}: {error}; {_advice(file)}") from None


def _copy(file: RemoteFile, response: Any, out: BinaryIO, total: int | None, progress: Progress) -> None:
    """Appends the bytes of a response to the bytes that were fetched before. `total` is the length that the server has
    announced."""
    while piece := _read(response):
        out.write(piece)
        progress(out.tell(), total)
        if out.tell() > MOST_BYTES:
            raise FetchError(
                f"{file.address} has more than {MOST_BYTES >> 20} MB, which is another file; {_advice(file)}"
            )
    out.flush()
    os.fsync(out.fileno())
    out.truncate()
    if total is not None and out.tell() < total:
        raise _Interrupted(f"the transfer breaks off after {out.tell():,} of {total:,} bytes")


def _read(response: Any) -> bytes:
    try:
        return bytes(response.read(_PIECE))
    except (http.client.HTTPException, OSError) as error:
        raise _Interrupted(f"the transfer breaks off: {reason_of(error) or type(error).__name__}") from None


def _first_byte(response: Any) -> int:
    """The position in the file of the first byte of a response."""
    if response.status != http.client.PARTIAL_CONTENT:
        return 0
    start = str(response.headers.get("Content-Range", "")).removeprefix("bytes ").partition("-")[0]
    return int(start) if start.isdecimal() else 0


def _total(response: Any, begin: int) -> int | None:
    length = str(response.headers.get("Content-Length", ""))
    return begin + int(length) if length.isdecimal() else None


def _advice(file: RemoteFile) -> str:
    proxies = urllib.request.getproxies()
    scheme = file.address.partition(":")[0]
    proxy = f"set {scheme}_proxy if you need a proxy"
    if scheme in proxies:
        proxy = f"check the proxy {proxies[scheme].rpartition('@')[2]}"  # without a password
    return f"{proxy}, or {file._by_hand()}"


def _on_disk(file: RemoteFile, error: OSError) -> str:
    """A message on a file that cannot be written."""
    folder = file.path.parent
    if error.errno in _FULL:
        free = ""
        with contextlib.suppress(OSError):
            free = f", {shutil.disk_usage(folder).free:,} bytes are free"
        return f"the disk of {folder} is full{free}: make room, or set {VARIABLE} to a folder on another disk"
    return f"cannot write {file.path}: {reason_of(error)}; set {VARIABLE} to a folder that you may write"


def _hash_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Waits until no other process fetches the same file, on systems with file locks."""
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        try:
            import fcntl
        except ImportError:  # Windows
            yield
            return
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _drawn(name: str) -> Iterator[Progress]:
    """Draws a progress bar on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn(name, markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
