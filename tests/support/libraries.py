"""Checks of every build of the op library: its exports, dependencies and protections. Also the instruction sets (ISAs)
that this CPU can run."""

from functools import cache
from pathlib import Path

import litebnn
from toolchains.formats.elf import exported_symbols, missing_protection, needed_libraries
from toolchains.formats.exports import EXPORTS

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
    assert exported_symbols(library) == EXPORTS
    assert surely_missing_protection(library) == []
    assert [name for name in needed_libraries(library) if not name.startswith(C_LIBRARY)] == []


# The ISAs with int8 kernels of their own.
ISAS = ("portable", "avx2", "avx512", "avx512_vbmi", "neon64", "neon64_in_order", "neon64_tbl", "neon32")


@cache
def available_isas() -> list[str]:
    """The names of the ISAs that this CPU can run."""
    found = []
    for isa in ISAS:
        try:
            litebnn.load_delegate(isa=isa)
        except ValueError:
            continue  # this CPU lacks it
        found.append(isa)
    assert found
    return found
