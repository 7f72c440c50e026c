"""The names that the op library shows, on every system."""

from pathlib import Path

from toolchains.formats import elf, macho, pe

# ops/litebnn.map has the patterns that the linker takes.
EXPORTS = [
    "LiteRtAcceleratorImpl",
    "LiteRtRegisterGpuAccelerator",
    "litebnn_isa",
    "litebnn_isas",
    "litebnn_ops",
    "litebnn_register_accelerator",
    "litebnn_registration",
    "litebnn_version",
    "tflite_plugin_create_delegate",
    "tflite_plugin_destroy_delegate",
]


def exported_names(library: Path) -> list[str]:
    """Names that a library of any system exports, sorted, as C has them."""
    with library.open("rb") as file:
        magic = file.read(4)
    if magic == b"\x7fELF":
        return elf.exported_symbols(library)
    if magic[:2] == b"MZ":
        return pe.exported_names(library)
    return [name.removeprefix("_") for name in macho.exported_names(library)]
