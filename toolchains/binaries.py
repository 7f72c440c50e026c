"""Shared libraries and programs in ELF, Mach-O and PE, as lief reads them: exports, requirements, protections.

zig's linker for macOS takes no list of exports and adds two names of its own, which `hide` removes.
"""

import functools
import hashlib
import re
import struct
from pathlib import Path
from typing import Any

from toolchains.needs import needs
from toolchains.targets import ToolkitError

# The names that the op library must export. The file ops/litebnn.map has the same names as patterns for the linker.
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
LINKER_NAMES = ("___dso_handle", "__mh_dylib_header")

MACHO = b"\xcf\xfa\xed\xfe"
# Fields of Mach-O: a row of the symbol table, the flag of an exported symbol, and the magic of a code directory.
NLIST, N_EXT, CODE_DIRECTORY = struct.Struct("<IBBHQ"), 1, 0xFADE0C02


@functools.cache
def _lief() -> Any:
    # Imported here, because 32-bit Arm, where litebnn can be built, has no wheels of it.
    try:
        import lief
    except ImportError as error:
        raise ToolkitError(needs()["lief"].missing()) from error
    lief.logging.disable()
    return lief


def _macho(content: bytes | bytearray) -> Any:
    """The architectures of a Mach-O file. lief frees their memory with this object, so it must outlive what is read."""
    return _lief().MachO.parse(bytes(content))


def exported_names(library: Path) -> list[str]:
    """The sorted names that a library of any system exports, as they are spelled in C.

    Raises:
        ToolkitError: the file is no library, or lief is missing.
    """
    lief, content = _lief(), library.read_bytes()
    if content[:4] == MACHO:
        fat = _macho(content)
        return sorted(symbol.name.removeprefix("_") for symbol in fat.at(0).exported_symbols)
    binary = lief.parse(str(library))
    if isinstance(binary, lief.PE.Binary):
        return sorted(entry.name for entry in binary.exported_functions)
    if not isinstance(binary, lief.ELF.Binary):
        raise ToolkitError(f"{library} is neither an ELF nor a PE nor a Mach-O file")
    return sorted({symbol.name for symbol in binary.dynamic_symbols if symbol.name and symbol.shndx})


def needed_libraries(library: Path) -> list[str]:
    """The sorted libraries that an ELF library needs (DT_NEEDED)."""
    return sorted(_lief().ELF.parse(str(library)).libraries)


def missing_protection(library: Path) -> list[str]:
    """The usual protections that an ELF library lacks, each by the compiler's or linker's option that adds it."""
    elf = _lief().ELF
    binary = elf.parse(str(library))
    segments = {segment.type: segment.flags for segment in binary.segments}
    entries = {entry.tag: entry for entry in binary.dynamic_entries}
    flags, more = entries.get(elf.DynamicEntry.TAG.FLAGS), entries.get(elf.DynamicEntry.TAG.FLAGS_1)
    stack = segments.get(elf.Segment.TYPE.GNU_STACK)
    imported = {symbol.name for symbol in binary.imported_symbols}
    protections = {
        "-z relro": elf.Segment.TYPE.GNU_RELRO in segments,
        "-z now": elf.DynamicEntry.TAG.BIND_NOW in entries
        or (flags and flags.has(elf.DynamicEntryFlags.FLAG.BIND_NOW))
        or (more and more.has(elf.DynamicEntryFlags.FLAG.NOW)),
        "-z noexecstack": stack is not None and elf.Segment.FLAGS.X not in stack,
        "-fstack-protector-strong": "__stack_chk_fail" in imported,
        "-D_FORTIFY_SOURCE": any(name.endswith("_chk") for name in imported),
    }
    return [name for name, is_there in protections.items() if not is_there]


def floors(product: Path) -> dict[str, str]:
    """The oldest versions of system libraries with which a program or library runs, such as {"GLIBC": "2.28"}.

    GLIBC is the C library, GLIBCXX the C++ library. Libraries that the file does not need are left out. The result is
    empty if the file is no ELF file.
    """
    binary = _lief().ELF.parse(str(product)) if product.read_bytes()[:4] == b"\x7fELF" else None
    newest: dict[str, tuple[int, ...]] = {}
    for library in binary.symbols_version_requirement if binary else ():
        for version in library.get_auxiliary_symbols():
            if found := re.fullmatch(r"(GLIBC|GLIBCXX)_(\d[\d.]*)", version.name):
                number = tuple(map(int, found[2].split(".")))
                newest[found[1]] = max(newest.get(found[1], ()), number)
    return {name: ".".join(map(str, number)) for name, number in sorted(newest.items())}


def requirements(product: Path) -> str:
    """The oldest system libraries with which a program or library runs, as text such as "needs GLIBC 2.28 or newer"; ""
    if it needs none, or on a machine without lief.
    """
    try:
        found = floors(product)
    except ToolkitError:
        return ""
    return f"needs {' and '.join(f'{name} {version}' for name, version in found.items())} or newer" if found else ""


def is_macho(path: Path) -> bool:
    """True if the file is a Mach-O file for a 64-bit CPU."""
    return path.read_bytes()[:4] == MACHO


def hide(path: Path, names: tuple[str, ...] = LINKER_NAMES) -> None:
    """Removes names from the exports of a Mach-O library: from the trie that the loader reads, from the symbol table,
    and signs it again. The file is replaced atomically, and nothing in it moves."""
    content, fat = bytearray(path.read_bytes()), _macho(path.read_bytes())
    binary = fat.at(0)
    start, size = _trie(binary)
    table = binary.symbol_command
    for place in range(table.symbol_offset, table.symbol_offset + table.numberof_symbols * NLIST.size, NLIST.size):
        name, flags, *others = NLIST.unpack_from(content, place)
        begin = table.strings_offset + name
        if content[begin : content.index(0, begin)].decode() in names:
            NLIST.pack_into(content, place, name, flags & ~N_EXT, *others)
    for name in names:
        binary.unexport(name)
    # lief would lay the whole file out anew, without a signature. Only its trie is taken.
    rebuilt = _macho(binary.write_to_bytes())
    begin, count = _trie(rebuilt.at(0))
    content[start : start + size] = bytes(binary.write_to_bytes())[begin : begin + count].ljust(size, b"\0")[:size]
    sign(content)
    whole = path.with_name(f".{path.name}.new")
    whole.write_bytes(content)
    whole.chmod(path.stat().st_mode)
    whole.replace(path)


def _trie(binary: Any) -> tuple[int, int]:
    """The position and the size of a Mach-O library's trie of exports."""
    if binary.has_dyld_exports_trie:
        return binary.dyld_exports_trie.data_offset, binary.dyld_exports_trie.data_size
    start, size = binary.dyld_info.export_info
    return start, size


def sign(content: bytearray) -> None:
    """Computes the hashes of a Mach-O library's ad-hoc signature again."""
    fat = _macho(content)
    if not fat.at(0).has_code_signature:
        return
    start = fat.at(0).code_signature.data_offset
    (count,) = struct.unpack_from(">I", content, start + 8)
    for blob in range(count):
        (offset,) = struct.unpack_from(">I", content, start + 16 + 8 * blob)
        directory = start + offset
        if struct.unpack_from(">I", content, directory)[0] != CODE_DIRECTORY:
            continue
        hashes, _, _, pages, limit = struct.unpack_from(">IIIII", content, directory + 16)
        size = 1 << content[directory + 39]
        for page in range(pages):
            digest = hashlib.sha256(content[page * size : min(limit, (page + 1) * size)]).digest()
            place = directory + hashes + page * len(digest)
            content[place : place + len(digest)] = digest
