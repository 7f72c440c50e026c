"""What every build of the op library has to show and may ask for."""

from pathlib import Path

from toolchains.elf import exported_symbols, missing_protection, needed_libraries

EXPORTS = [
    "LiteRtAcceleratorImpl",
    "LiteRtRegisterGpuAccelerator",
    "litebnn_ops",
    "litebnn_register_accelerator",
    "litebnn_registration",
    "litebnn_version",
    "tflite_plugin_create_delegate",
    "tflite_plugin_destroy_delegate",
]
# The C library has several names: before glibc 2.34 dlopen and threads had libraries of their own.
C_LIBRARY = ("libc.so", "libm.so", "libpthread.so", "libdl.so", "ld-linux")


def surely_missing_protection(product: Path) -> list[str]:
    """Zig may link a copy of its own of what the stack protector calls, which no symbol tells of."""
    untold = {"-fstack-protector-strong"} if b"zig-bootstrap" in product.read_bytes() else set()
    return [option for option in missing_protection(product) if option not in untold]


def check_library(library: Path) -> None:
    """All toolchains make the same: symbols, protections, and libraries that are asked for, only the C library."""
    assert exported_symbols(library) == EXPORTS
    assert surely_missing_protection(library) == []
    assert [name for name in needed_libraries(library) if not name.startswith(C_LIBRARY)] == []
