"""Reads the exports of a 64-bit Mach-O library, and removes some of them.

The linker of zig takes no list of exports and adds two names of its own. This module removes these names from the
finished library: from the trie that the loader reads, and from the symbol table. Then it computes the hashes of the
ad-hoc signature again.
"""

import hashlib
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

MAGIC = 0xFEEDFACF
HEADER_BYTES = 32
LC_SYMTAB, LC_CODE_SIGNATURE = 0x2, 0x1D
# The load commands that contain the position and size of the trie of exports. The value is the byte of the command at
# which these two fields begin.
TRIE_FIELDS = {0x22: 40, 0x80000022: 40, 0x80000033: 8}
N_EXT = 1
NLIST = struct.Struct("<IBBHQ")
CODE_DIRECTORY = 0xFADE0C02

# Names of its own that zig's linker adds to the exports of every library.
LINKER_NAMES = ("___dso_handle", "__mh_dylib_header")


def is_macho(path: Path) -> bool:
    """True if the file is a Mach-O file for a 64-bit CPU."""
    with path.open("rb") as file:
        return file.read(4) == struct.pack("<I", MAGIC)


def exported_names(path: Path) -> list[str]:
    """The sorted names that the library exports, with the underscore that the C compiler adds."""
    content = bytearray(path.read_bytes())
    start, size = _trie(content)
    return sorted(_read_trie(bytes(content[start : start + size])))


def hide(path: Path, names: tuple[str, ...] = LINKER_NAMES) -> None:
    """Removes names from a library's exports. The file is replaced atomically."""
    content = bytearray(path.read_bytes())
    start, size = _trie(content)
    exports = _read_trie(bytes(content[start : start + size]))
    kept = _write_trie({name: value for name, value in exports.items() if name not in names})
    content[start : start + size] = kept.ljust(size, b"\0")
    _hide_symbols(content, names)
    sign(content)
    whole = path.with_name(f".{path.name}.new")
    whole.write_bytes(content)
    whole.chmod(path.stat().st_mode)
    whole.replace(path)


def _commands(content: bytearray) -> Iterator[tuple[int, int]]:
    """Yields the kind and the position of each load command."""
    (count,) = struct.unpack_from("<I", content, 16)
    position = HEADER_BYTES
    for _ in range(count):
        kind, size = struct.unpack_from("<II", content, position)
        yield kind, position
        position += size


def _trie(content: bytearray) -> tuple[int, int]:
    """The position and the size of the trie of exports."""
    for kind, position in _commands(content):
        if kind in TRIE_FIELDS:
            start, size = struct.unpack_from("<II", content, position + TRIE_FIELDS[kind])
            return int(start), int(size)
    return 0, 0


def _read_number(content: bytes, position: int) -> tuple[int, int]:
    """Reads an unsigned LEB128 number, which has seven bits in each byte. Returns the number and the position after
    it."""
    value = shift = 0
    while True:
        byte = content[position]
        value |= (byte & 0x7F) << shift
        shift, position = shift + 7, position + 1
        if byte < 0x80:
            return value, position


def _number(value: int) -> bytes:
    """Encodes a number as unsigned LEB128."""
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def _read_trie(content: bytes, position: int = 0, prefix: str = "") -> dict[str, bytes]:
    """Reads the trie of the symbols that a library exports. Returns each symbol's flags and address, still encoded, by
    the symbol's name.
    """
    if not content:
        return {}
    size, position = _read_number(content, position)
    found = {prefix: content[position : position + size]} if size else {}
    position += size
    count, position = content[position], position + 1
    for _ in range(count):
        end = content.index(0, position)
        child, after = _read_number(content, end + 1)
        found |= _read_trie(content, child, prefix + content[position:end].decode())
        position = after
    return found


def _write_trie(exports: Mapping[str, bytes]) -> bytes:
    """Encodes a trie of exports. A node whose name is the beginning of another name comes before that name's node."""
    nodes: list[tuple[bytes, list[tuple[str, int]]]] = []

    def add(names: list[str], length: int) -> int:
        """Adds the trie's node for `names`, which begin with the same `length` letters, and all nodes below it. Returns
        the node's index.
        """
        index = len(nodes)
        nodes.append((next((exports[name] for name in names if len(name) == length), b""), []))
        longer = [name for name in names if len(name) > length]
        for first in sorted({name[length] for name in longer}):
            group = [name for name in longer if name[length] == first]
            end = length + 1
            while all(len(name) > end and name[end] == group[0][end] for name in group):
                end += 1
            nodes[index][1].append((group[0][length:end], add(group, end)))
        return index

    add(sorted(exports), 0)
    offsets = [0] * len(nodes)
    # An offset takes as few bytes as its value needs, and the length of an offset moves later nodes. Therefore all
    # offsets are computed repeatedly, until none changes.
    while True:
        written = [_node(*node, offsets.__getitem__) for node in nodes]
        found = [sum(map(len, written[:index])) for index in range(len(nodes))]
        if found == offsets:
            return b"".join(written)
        offsets = found


def _node(value: bytes, children: list[tuple[str, int]], offset: Callable[[int], int]) -> bytes:
    edges = b"".join(name.encode() + b"\0" + _number(offset(child)) for name, child in children)
    return _number(len(value)) + value + bytes([len(children)]) + edges


def _hide_symbols(content: bytearray, names: tuple[str, ...]) -> None:
    """Makes symbols with these names private in the symbol table."""
    for kind, position in _commands(content):
        if kind != LC_SYMTAB:
            continue
        symbols, count, strings, _ = struct.unpack_from("<IIII", content, position + 8)
        for place in range(symbols, symbols + count * NLIST.size, NLIST.size):
            name, flags, *others = NLIST.unpack_from(content, place)
            start = strings + name
            if content[start : content.index(0, start)].decode() in names:
                NLIST.pack_into(content, place, name, flags & ~N_EXT, *others)


def sign(content: bytearray) -> None:
    """Computes the hashes of an ad-hoc signature again."""
    for kind, position in _commands(content):
        if kind == LC_CODE_SIGNATURE:
            (start,) = struct.unpack_from("<I", content, position + 8)
            (count,) = struct.unpack_from(">I", content, start + 8)
            for blob in range(count):
                (offset,) = struct.unpack_from(">I", content, start + 16 + 8 * blob)
                _write_hashes(content, start + offset)


def _write_hashes(content: bytearray, directory: int) -> None:
    """Writes the hash of each page into a code directory; the other parts of the signature are unchanged."""
    if struct.unpack_from(">I", content, directory)[0] != CODE_DIRECTORY:
        return
    hashes, _, _, pages, limit = struct.unpack_from(">IIIII", content, directory + 16)
    size = 1 << content[directory + 39]
    for page in range(pages):
        digest = hashlib.sha256(content[page * size : min(limit, (page + 1) * size)]).digest()
        place = directory + hashes + page * len(digest)
        content[place : place + len(digest)] = digest
