"""Has the functions that must be different on different operating systems. No other module of the package checks on
which system it runs."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class System:
    """File names on an operating system.

    Attributes:
        library: the name of the op library.
        suffix: the ending of a shared library.
        program_suffix: the ending of a program.
    """

    library: str
    suffix: str
    program_suffix: str = ""

    @property
    def accelerator(self) -> str:
        """The file name by which LiteRT looks for a GPU accelerator. A file of litebnn has this name, so LiteRT loads
        litebnn's accelerator instead."""
        return f"libLiteRtGpuAccelerator{self.suffix}"

    @property
    def litert(self) -> str:
        """The file name of LiteRT's C library."""
        return f"libLiteRt{self.suffix}"


# The names of litebnn's library, and the endings of shared libraries and of programs, on each operating system. The
# keys are CMake's names of the operating systems.
SYSTEMS = {
    "Linux": System("liblitebnn.so", ".so"),
    "Android": System("liblitebnn.so", ".so"),
    "Darwin": System("liblitebnn.dylib", ".dylib"),
    "Windows": System("litebnn.dll", ".dll", ".exe"),
}
HERE = SYSTEMS[{"win32": "Windows", "darwin": "Darwin"}.get(sys.platform, "Linux")]

# The signals that ask a command to end.
ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))

# The position of the byte that is locked. Windows forbids reading a locked byte, so this byte is beyond the end of any
# file.
_LOCKED_BYTE = 1 << 40
_SIZES = Path("/proc/self/statm")


def give_name(file: Path, name: Path) -> None:
    """Gives a file another name, with a link. On Windows, where users may not make links, copies the file."""
    if sys.platform == "win32":
        shutil.copyfile(file, name)
    else:
        name.symlink_to(file)


def open_to_append(path: Path) -> int:
    """Opens a file for reading and appending. Returns a handle that child processes do not inherit."""
    inherited = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0)
    return os.open(path, os.O_RDWR | os.O_APPEND | inherited | getattr(os, "O_BINARY", 0))


def lock(handle: int) -> None:
    """Locks an open file until it is closed.

    Raises:
        BlockingIOError: another process has locked it.
    """
    if sys.platform == "win32":
        import msvcrt

        with _at(handle, _LOCKED_BYTE):
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            except OSError as error:
                raise BlockingIOError(error.errno, error.strerror) from error
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def _at(handle: int, position: int) -> Iterator[None]:
    """A context manager that moves the position of a file. At the end of the block, it moves the position back."""
    former = os.lseek(handle, 0, os.SEEK_CUR)
    os.lseek(handle, position, os.SEEK_SET)
    try:
        yield
    finally:
        os.lseek(handle, former, os.SEEK_SET)


def limit_memory(more: int) -> None:
    """Limits the memory of this process to `more` bytes more than it has now, and disables core dumps.

    Only Linux can limit the memory of a process in this way. On other systems, the caller's time limit must suffice.
    """
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if _SIZES.exists():
        has = int(_SIZES.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (has + more, has + more))


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
