"""Packs and unpacks flatbuffers of a schema that is given as data: tables are dictionaries, and absent fields are
missing keys.

The schema maps a table's name to its fields in order, each "name:type". A type is byte, ubyte, uint, int, string,
[float], [ubyte], [string], a table, a list of tables, or a union of tables. A union's value is a pair of a table's name
and its dictionary.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import flatbuffers

from litebnn.errors import ConversionError

_SCALARS = {"byte": ("b", "Int8"), "ubyte": ("B", "Uint8"), "uint": ("I", "Uint32"), "int": ("i", "Int32")}
# The alignment of byte vectors, in bytes, that the schema of TFLite Metadata requires.
_BYTES_ALIGNMENT = 16
_MOST_DEPTH = 32


class Schema:
    """The tables and unions of a schema.

    >>> points = Schema({"Point": ("x:int", "name:string")}, {})
    >>> points.unpack("Point", points.pack("Point", {"x": 3, "name": "corner"}, b"TEST"))
    {'x': 3, 'name': 'corner'}
    """

    def __init__(self, tables: Mapping[str, Sequence[str]], unions: Mapping[str, Sequence[str]]) -> None:
        self.tables = tables
        self.unions = unions

    def fields(self, table: str) -> Iterator[tuple[int, str, str]]:
        """The slot (index in the vtable), name and type of each field.

        A union takes two slots, for its type and its value. The slot in the result is that of the value.
        """
        slot = 0
        for field in self.tables[table]:
            name, kind = field.split(":")
            slot += kind in self.unions
            yield slot, name, kind
            slot += 1

    def pack(self, table: str, values: Mapping[str, Any], identifier: bytes) -> bytes:
        """Packs a table into a flatbuffer."""
        builder = flatbuffers.Builder(1024)
        builder.Finish(self._table(builder, table, values), file_identifier=identifier)
        return bytes(builder.Output())

    def _table(self, builder: Any, table: str, values: Mapping[str, Any]) -> int:
        fields = [(slot, kind, values[name]) for slot, name, kind in self.fields(table) if name in values]
        # A table is written after all objects to which it refers.
        offsets = {slot: self._reference(builder, kind, value) for slot, kind, value in fields if kind not in _SCALARS}
        builder.StartObject(max((slot for slot, _, _ in self.fields(table)), default=-1) + 1)
        for slot, kind, value in fields:
            if kind in _SCALARS:
                getattr(builder, f"Prepend{_SCALARS[kind][1]}Slot")(slot, value, 0)
                continue
            if kind in self.unions:
                builder.PrependUint8Slot(slot - 1, self.unions[kind].index(value[0]) + 1, 0)
            builder.PrependUOffsetTRelativeSlot(slot, offsets[slot], 0)
        return int(builder.EndObject())

    def _reference(self, builder: Any, kind: str, value: Any) -> int:
        if kind == "string":
            return int(builder.CreateString(value))
        if kind in self.unions:
            return self._table(builder, *value)
        if not kind.startswith("["):
            return self._table(builder, kind, value)
        if kind == "[ubyte]":
            builder.StartVector(1, len(value), _BYTES_ALIGNMENT)
            builder.head -= len(value)
            builder.Bytes[builder.head : builder.head + len(value)] = value
            return int(builder.EndVector())
        if kind == "[float]":
            builder.StartVector(4, len(value), 4)
            for number in reversed(value):
                builder.PrependFloat32(number)
            return int(builder.EndVector())
        offsets = [self._reference(builder, kind[1:-1], each) for each in value]
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return int(builder.EndVector())

    def unpack(self, table: str, content: bytes) -> dict[str, Any]:
        """Unpacks the root table of a flatbuffer. Fields that the schema does not have are left out.

        Raises:
            ConversionError: an offset or a length leads out of the flatbuffer, or tables contain themselves.
        """
        try:
            return _Reader(self, content).table(table, _at(content, "I", 0), 0)
        except (struct.error, UnicodeDecodeError, RecursionError):
            raise ConversionError(f"the flatbuffer of {table} is damaged") from None


class _Reader:
    """Reads tables at given offsets in a flatbuffer. Raises struct.error if an offset points out of the flatbuffer."""

    def __init__(self, schema: Schema, content: bytes) -> None:
        self.schema = schema
        self.content = content
        # The number of elements that may still be read. Several tables may contain the same table, so without this
        # limit the number of elements could grow exponentially.
        self.budget = len(content)

    def table(self, table: str, position: int, depth: int) -> dict[str, Any]:
        if depth > _MOST_DEPTH:
            raise RecursionError
        fields = position - _at(self.content, "i", position)
        count = (_at(self.content, "H", fields) - 4) // 2
        values = {}
        for slot, name, kind in self.schema.fields(table):
            offset = _at(self.content, "H", fields + 4 + 2 * slot) if slot < count else 0
            if not offset:
                continue
            if kind not in self.schema.unions:
                values[name] = self._value(kind, position + offset, depth)
                continue
            type_offset = _at(self.content, "H", fields + 2 + 2 * slot)
            number = _at(self.content, "B", position + type_offset) if type_offset else 0
            if 0 < number <= len(self.schema.unions[kind]):
                member = self.schema.unions[kind][number - 1]
                values[name] = member, self._value(member, position + offset, depth)
        return values

    def _value(self, kind: str, position: int, depth: int) -> Any:
        if kind in _SCALARS:
            return _at(self.content, _SCALARS[kind][0], position)
        target = position + _at(self.content, "I", position)
        if kind == "string":
            return self._bytes(target).decode("utf-8")
        if kind == "[ubyte]":
            return self._bytes(target)
        if not kind.startswith("["):
            return self.table(kind, target, depth + 1)
        count = _at(self.content, "I", target)
        self._spend(4 * count)
        positions = range(target + 4, target + 4 + 4 * count, 4)
        if kind == "[float]":
            return [_at(self.content, "f", position) for position in positions]
        return [self._value(kind[1:-1], position, depth) for position in positions]

    def _bytes(self, position: int) -> bytes:
        count = _at(self.content, "I", position)
        self._spend(count)
        return bytes(self.content[position + 4 : position + 4 + count])

    def _spend(self, count: int) -> None:
        self.budget -= count
        if self.budget < 0:
            raise struct.error


def _at(content: bytes, kind: str, position: int) -> Any:
    if position < 0:  # struct would count from the end
        raise struct.error
    return struct.unpack_from(f"<{kind}", content, position)[0]
