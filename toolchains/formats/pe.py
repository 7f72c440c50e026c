"""Reads the exports of a Windows library (format PE)."""

import struct
from pathlib import Path

SIGNATURE = b"PE\0\0"
SECTION_BYTES = 40
# Byte positions of fields in the headers of a 64-bit PE file.
OPTIONAL_HEADER, DIRECTORIES = 24, 112
# Byte positions of fields in the table of exports.
NAMES_COUNT, NAMES = 24, 32


def exported_names(path: Path) -> list[str]:
    """The sorted names that a library exports.

    Raises:
        ValueError: the file is no PE file.
    """
    content = path.read_bytes()
    (start,) = struct.unpack_from("<I", content, 0x3C) if content[:2] == b"MZ" else (0,)
    if content[start : start + 4] != SIGNATURE:
        raise ValueError(f"{path} is no PE file")
    sections, optional_bytes = struct.unpack_from("<H12xH", content, start + 6)
    optional = start + OPTIONAL_HEADER
    table = optional + optional_bytes

    def position(address: int) -> int:
        """The position in the file of the byte that has this address in the loaded library."""
        for section in range(table, table + sections * SECTION_BYTES, SECTION_BYTES):
            size, first, _, raw = struct.unpack_from("<4I", content, section + 8)
            if first <= address < first + size:
                return int(raw + address - first)
        raise ValueError(f"{path}: no section has the address {address:#x}")

    (exports,) = struct.unpack_from("<I", content, optional + DIRECTORIES)
    if not exports:
        return []
    directory = position(exports)
    (count,) = struct.unpack_from("<I", content, directory + NAMES_COUNT)
    (names,) = struct.unpack_from("<I", content, directory + NAMES)
    found = []
    for address in struct.unpack_from(f"<{count}I", content, position(names)):
        name = position(address)
        found.append(content[name : content.index(0, name)].decode())
    return sorted(found)
