"""The names that the op library exports, which are the same on every system."""

from pathlib import Path

from toolchains.formats import elf, macho, pe

# The names that the library must export. The file ops/litebnn.map has the same names as patterns for the linker.
EXPORTS = [
    "LiteRtAcceleratorImpl",
    "LiteRtRegisterGpuAccelerator",
    "litebnn_describe",
    "litebnn_ops",
    "litebnn_register_accelerator",
    "litebnn_registration",
    "litebnn_version",
    "tflite_plugin_create_delegate",
    "tflite_plugin_destroy_delegate",
]


def exported_names(library: Path) -> list[str]:
    """The sorted names that a library of any system exports, as they are spelled in C."""
    with library.open("rb") as file:
        magic = file.read(4)
    if magic == b"\x7fELF":
        return elf.exported_symbols(library)
    if magic[:2] == b"MZ":
        return pe.exported_names(library)
    return [name.removeprefix("_") for name in macho.exported_names(library)]
