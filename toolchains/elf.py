"""What a shared library asks of the machine that loads it, and offers to it."""

from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection


def exported_symbols(library: Path) -> list[str]:
    """Names of the symbols that `library` defines for others, sorted."""
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


def glibc_floor(library: Path) -> tuple[int, ...]:
    """The oldest glibc that can load `library`, as (2, 28); () where it needs none or is no ELF file."""
    versions: list[tuple[int, ...]] = []
    with library.open("rb") as file:
        try:
            section = ELFFile(file).get_section_by_name(".gnu.version_r")
        except ELFError:
            return ()
        if isinstance(section, GNUVerNeedSection):
            for _, needed in section.iter_versions():
                names = (
                    version.name.removeprefix("GLIBC_") for version in needed if version.name.startswith("GLIBC_2")
                )
                versions += [tuple(int(part) for part in name.split(".")) for name in names]
    return max(versions, default=())
