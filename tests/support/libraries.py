"""Checks of every build of the op library: its exports, dependencies and protections."""

from pathlib import Path

from toolchains.binaries import EXPORTS, exported_names, missing_protection, needed_libraries

# The files that make up the C library. Before glibc 2.34, dlopen and threads had files of their own.
C_LIBRARY = ("libc.so", "libm.so", "libpthread.so", "libdl.so", "ld-linux")


def surely_missing_protection(product: Path) -> list[str]:
    """The protections that a library lacks. The stack protector of zig leaves no symbol in the library, so it does
    not count as missing.
    """
    untold = {"-fstack-protector-strong"} if b"zig-bootstrap" in product.read_bytes() else set()
    return [option for option in missing_protection(product) if option not in untold]


def check_library(library: Path) -> None:
    """Checks a library's symbols and protections, and that it needs only the C library, for all toolchains."""
    assert exported_names(library) == EXPORTS
    assert surely_missing_protection(library) == []
    assert [name for name in needed_libraries(library) if not name.startswith(C_LIBRARY)] == []
