"""Reads the requirements, exports and protections of a shared library in the ELF format."""

import re
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection

# Bits of the ELF fields DT_FLAGS and DT_FLAGS_1, and of the flags of a segment.
DF_BIND_NOW = 8
DF_1_NOW = 1
PF_X = 1


def exported_symbols(library: Path) -> list[str]:
    """The names of the symbols that `library` exports, sorted."""
    with library.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        return sorted(
            symbol.name for symbol in table.iter_symbols() if symbol.name and symbol["st_shndx"] != "SHN_UNDEF"
        )


def needed_libraries(library: Path) -> list[str]:
    """The DT_NEEDED entries of `library`, sorted."""
    with library.open("rb") as file:
        dynamic = ELFFile(file).get_section_by_name(".dynamic")
        assert isinstance(dynamic, DynamicSection)
        return sorted(tag.needed for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED")


def missing_protection(library: Path) -> list[str]:
    """The usual protections that `library` lacks. Each is named by the compiler or linker option that adds it."""
    with library.open("rb") as file:
        elf = ELFFile(file)
        segments = {segment["p_type"]: segment["p_flags"] for segment in elf.iter_segments()}
        dynamic = elf.get_section_by_name(".dynamic")
        symbols = elf.get_section_by_name(".dynsym")
        assert isinstance(dynamic, DynamicSection)
        assert isinstance(symbols, SymbolTableSection)
        flags = {tag.entry.d_tag: tag.entry.d_val for tag in dynamic.iter_tags()}
        imported = {symbol.name for symbol in symbols.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"}
    now = flags.get("DT_FLAGS", 0) & DF_BIND_NOW or flags.get("DT_FLAGS_1", 0) & DF_1_NOW
    protections = {
        "-z relro": "PT_GNU_RELRO" in segments,
        "-z now": "DT_BIND_NOW" in flags or bool(now),
        "-z noexecstack": "PT_GNU_STACK" in segments and not segments["PT_GNU_STACK"] & PF_X,
        "-fstack-protector-strong": "__stack_chk_fail" in imported,
        "-D_FORTIFY_SOURCE": any(name.endswith("_chk") for name in imported),
    }
    return [name for name, is_there in protections.items() if not is_there]


def floors(product: Path) -> dict[str, str]:
    """The oldest versions of system libraries with which a program or library runs, such as {"GLIBC": "2.28"}.

    GLIBC is the C library, GLIBCXX the C++ library. Libraries that the file does not need are left out. The result is
    empty if the file is no ELF file.
    """
    newest: dict[str, tuple[int, ...]] = {}
    with product.open("rb") as file:
        try:
            section = ELFFile(file).get_section_by_name(".gnu.version_r")
        except ELFError:
            return {}
        if isinstance(section, GNUVerNeedSection):
            for version in (version for _, versions in section.iter_versions() for version in versions):
                found = re.fullmatch(r"(GLIBC|GLIBCXX)_(\d[\d.]*)", version.name)
                if found:
                    number = tuple(map(int, found[2].split(".")))
                    newest[found[1]] = max(newest.get(found[1], ()), number)
    return {name: ".".join(map(str, number)) for name, number in sorted(newest.items())}


def needs(product: Path) -> str:
    """The oldest system libraries with which a program or library runs, as text such as "needs GLIBC 2.28 or newer"; ""
    if it needs none.
    """
    found = floors(product)
    return f"needs {' and '.join(f'{name} {version}' for name, version in found.items())} or newer" if found else ""
