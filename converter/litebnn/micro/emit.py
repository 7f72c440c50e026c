"""Writes the text of the C files `NAME.c` and `NAME.h`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from litebnn.errors import printable
from litebnn.graph import Array, Op, Tensor
from litebnn.micro.folder import filled
from litebnn.micro.placement import Placement, Step, argument_names
from litebnn.micro.program import (
    C_TYPES,
    C_TYPES_OF_DATA,
    Argument,
    Call,
    Data,
    Literal,
    Read,
    Rows,
    Scratch,
    Struct,
    Symbol,
    Value,
    Write,
    strides_of,
)

_LINE = 116
# The largest C type in the arena, and the only one that needs a larger alignment than a 32-bit word.
_ALIGNED = "ALIGNED"


def in_comment(text: object) -> str:
    """A name from the model without characters that could end a C comment."""
    return re.sub(
        r"[*/\\?]{2,}", lambda found: "_" * len(found[0]), printable(text).encode("ascii", "replace").decode()
    )


def number(value: float | int) -> str:
    """A number as a C constant.

    >>> number(np.float32(0.1)), number(-(2**31))
    ('0.1f', '(-2147483647 - 1)')
    """
    if isinstance(value, int | np.integer):
        return "(-2147483647 - 1)" if int(value) == -(1 << 31) else str(int(value))
    single = np.float32(value)
    if not np.isfinite(single):
        return "(0.0f / 0.0f)" if np.isnan(single) else f"({'-' if single < 0 else ''}1.0f / 0.0f)"
    text = np.format_float_scientific(single, unique=True, trim="0") if _is_long(single) else str(single)
    return f"{text}f"


def _is_long(value: np.float32) -> bool:
    return value != 0 and not 1e-4 <= abs(float(value)) < 1e16


def array_text(name: str, values: Array, attribute: str = "") -> str:
    """The definition of a constant array."""
    flat = np.ascontiguousarray(values).reshape(-1)
    kind = C_TYPES_OF_DATA[flat.dtype]
    texts = [f"{value:#x}" for value in flat.tolist()] if kind == "uint32_t" else [number(value) for value in flat]
    lines, line = [], " "
    for text in texts:
        if len(line) + len(text) + 2 > _LINE:
            lines.append(line)
            line = " "
        line += f" {text},"
    lines.append(line)
    return f"static const {kind} {name}[{flat.size}]{attribute} = {{\n" + "\n".join(lines) + "\n};\n"


class Constants:
    """The constant arrays and structures of a file. Arrays with equal bytes are written once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.bytes = 0
        self._names: dict[tuple[object, ...], str] = {}

    def array(self, data: Data, hint: str, attribute: str = "") -> str:
        """Returns the name of a constant array. Defines the array, unless an array with the same values exists."""
        values = np.ascontiguousarray(data.values)
        key = (values.dtype.str, values.size, values.tobytes(), attribute)
        if key not in self._names:
            self._names[key] = hint
            self.texts.append(array_text(hint, values, attribute))
            self.bytes += values.nbytes
        return self._names[key]

    def struct(self, struct: Struct, name: str) -> str:
        """Returns the name of a constant structure. Defines the structure, unless an equal one exists."""
        body = self._fields(struct.fields, name, "  ")
        key = (struct.type, body)
        if key not in self._names:
            self._names[key] = name
            self.texts.append(f"static const {struct.type} {name} = {{\n{body}}};\n")
        return self._names[key]

    def _fields(self, fields: Mapping[str, Value], name: str, indent: str) -> str:
        is_helium = fields.get("kernel") == Symbol("&litebnn_helium")
        lines = []
        for field, value in fields.items():
            attribute = f" {_ALIGNED}(16)" if is_helium and field == "weights" else ""
            lines.append(f"{indent}.{field} = {self._value(value, f'{name}_{field}', indent, attribute)},\n")
        return "".join(lines)

    def _value(self, value: Value, name: str, indent: str, attribute: str = "") -> str:
        if value is None:
            return "0"
        if isinstance(value, Symbol):
            return value.text
        if isinstance(value, Data):
            return self.array(value, name, attribute)
        if isinstance(value, tuple):
            return "{" + ", ".join(self._value(item, name, indent) for item in value) + "}"
        if isinstance(value, Mapping):
            return "{\n" + self._fields(value, name, indent + "  ") + indent + "}"
        return number(value)


@dataclass(frozen=True)
class Emitted:
    """The C files of an exported network."""

    # The texts of the C files `NAME.h` and `NAME.c`.
    header: str
    source: str
    # For each step, the number of bytes of the constant arrays that no earlier step has.
    constant_bytes: tuple[int, ...]
    # The C files of the functions that the network calls. Paths are relative to the folder of the C sources.
    sources: tuple[str, ...]


class _Writer:
    def __init__(self, placement: Placement, name: str) -> None:
        self.placement, self.name = placement, name
        self.constants = Constants()
        # The index of each constant tensor. Constants are numbered in the order in which the calls read them.
        self.numbers: dict[Tensor, int] = {}

    def pointer(self, tensor: Tensor, step: Step, offset: str = "") -> str:
        """The C expression for the address of the first element of `tensor` that a call of a C function reads or
        writes."""
        if tensor.is_constant:
            assert tensor.array is not None
            values = tensor.array.view(np.uint32) if tensor.type == "INT32" else tensor.array
            number_of_tensor = self.numbers.setdefault(tensor, len(self.numbers))
            return self.constants.array(Data(values), f"constant_{number_of_tensor}")
        place = self.placement.places[tensor]
        _, member, size = C_TYPES[tensor.type]
        if place.argument:
            base, start = place.argument, 0
        else:
            base, start = f"arena.{member}", place.offset // size
        return " + ".join([base, *([str(start)] if start else []), *([offset] if offset else [])])

    def _row_offset(self, tensor: Tensor, op: Op, step: Step) -> str:
        """The C expression for the offset of the row that one iteration reads or writes, in a step whose ops run
        together row by row. It is empty for a tensor of which only a few rows are stored.
        """
        if tensor not in step.parts or (op is step.ops[0][0] and tensor in op.inputs):
            return ""
        return f"row * {step.parts[tensor] * strides_of(tensor.shape)[1]}"

    def argument(self, argument: Argument, op: Op, step: Step, number_of_step: int, suffix: str) -> str:
        if isinstance(argument, Read | Write):
            offset = self._row_offset(argument.tensor, op, step)
            return self.pointer(argument.tensor, step, offset)
        if isinstance(argument, Struct):
            return f"&{self.constants.struct(argument, f'layer_{self.placement.numbers[op]}{suffix}')}"
        if isinstance(argument, Literal):
            values = ", ".join(number(value) for value in argument.fields.values() if isinstance(value, int | float))
            return f"({argument.type}){{{values}}}"
        if isinstance(argument, Data):
            return self.constants.array(argument, f"table_{self.placement.numbers[op]}{suffix}")
        if isinstance(argument, Scratch):
            offset_words = self.placement.scratch[number_of_step] // 4
            return f"arena.words + {offset_words}" if offset_words else "arena.words"
        if isinstance(argument, Rows):
            rows = step.heights.get(op.output)
            if rows is None or op is not step.ops[0][0]:
                return f"0, {argument.count}"
            return f"row * {rows}, {rows}" if rows > 1 else "row, 1"
        return number(argument)

    def call(self, call: Call, op: Op, step: Step, number_of_step: int, suffix: str, indent: str) -> str:
        if call.images == 1:
            texts = [self.argument(each, op, step, number_of_step, suffix) for each in call.arguments]
            return _wrapped(f"{indent}{call.function}(", texts)
        texts = []
        for each in call.arguments:
            text = self.argument(each, op, step, number_of_step, suffix)
            if isinstance(each, Read | Write) and not each.tensor.is_constant:
                text += f" + image * {int(np.prod(each.tensor.shape[1:]))}"
            texts.append(text)
        loop = f"{indent}for (int32_t image = 0; image < {call.images}; ++image) {{\n"
        return loop + _wrapped(f"{indent}  {call.function}(", texts) + f"{indent}}}\n"

    def step(self, step: Step, number_of_step: int) -> str:
        names = (
            f'  /* {self.placement.numbers[op]}: {op.name} "{in_comment(op.output.name)}" */\n' for op, _ in step.ops
        )
        text, indent = "".join(names), "  "
        if step.heights:
            text += f"  for (int32_t row = 0; row < {step.iterations}; ++row) {{\n"
            indent = "    "
        for op, lowered in step.ops:
            for place, call in enumerate(lowered.calls):
                suffix = f"_{place}" if len(lowered.calls) > 1 else ""
                text += self.call(call, op, step, number_of_step, suffix, indent)
        text += "  }\n" if step.heights else ""
        return text + f"  STEP({number_of_step})\n"

    def copy(self, name: str, tensor: Tensor) -> str:
        source = self.pointer(tensor, Step(()))
        size = C_TYPES[tensor.type][2] * int(np.prod(tensor.shape, dtype=np.int64))
        return f"  memcpy({name}, {source}, {size});\n"


def _wrapped(start: str, arguments: Iterable[str]) -> str:
    """The C text of a call. Its arguments are on several lines if they do not fit in one."""
    indent = " " * (len(start) if len(start) < 60 else 8)
    line, lines = start, []
    texts = list(arguments)
    for index, text in enumerate(texts):
        end = ");" if index == len(texts) - 1 else ", "
        if len(line) + len(text) + len(end) > _LINE and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += text + end
    return "\n".join([*lines, line]) + "\n"


def prototype(placement: Placement, name: str) -> str:
    """The declaration of `NAME_run`, without the semicolon."""
    inputs, outputs = argument_names(placement.graph)
    arguments = [
        f"const {C_TYPES[tensor.type][0]}* {text}" for text, tensor in zip(inputs, placement.graph.inputs, strict=True)
    ] + [f"{C_TYPES[tensor.type][0]}* {text}" for text, tensor in zip(outputs, placement.graph.outputs, strict=True)]
    return f"void {name}_run({', '.join(arguments)})"


def emit(placement: Placement, name: str, title: str, version: str) -> Emitted:
    """Writes C text for a network. The memory of the network has been planned already."""
    writer = _Writer(placement, name)
    body, sizes = "", []
    for index, step in enumerate(placement.steps):
        before = writer.constants.bytes
        body += writer.step(step, index)
        sizes.append(writer.constants.bytes - before)
    copies = "".join(writer.copy(*copy) for copy in placement.copies)
    read = {place.argument for place in placement.places.values()}
    unread = "".join(f"  (void){text};\n" for text in argument_names(placement.graph)[0] if text not in read)
    calls = [call for step in placement.steps for call in step.calls]
    headers = sorted({"litebnn_builtin.h" if call.sources else "litebnn_micro.h" for call in calls})
    includes = ["<string.h>"] if copies else []
    includes += [f'"{header}"' for header in headers]
    aligned = any(_ALIGNED in text for text in writer.constants.texts)
    arena = (
        _ARENA.format(words=placement.arena_bytes // 4, bytes=placement.arena_bytes) if placement.arena_bytes else ""
    )
    known = {
        "TITLE": title,
        "VERSION": version,
        "NAME": name,
        "UPPER": name.upper(),
        "PROTOTYPE": prototype(placement, name),
    }
    texts = {
        "INCLUDES": "".join(f"#include {include}\n" for include in includes),
        "ALIGNED": _ALIGNMENT if aligned else "",
        "CONSTANTS": "\n".join(writer.constants.texts),
        "ARENA": arena,
        "BODY": unread + body + copies,
    }
    sources = tuple(dict.fromkeys(file for call in calls for file in call.sources))
    header = filled("network.h.in", {**known, **_arguments(placement, name), "CONSTANTS": sum(sizes)})
    return Emitted(header, filled("network.c.in", {**known, **texts}), tuple(sizes), sources)


def _arguments(placement: Placement, name: str) -> dict[str, object]:
    """What the header says of the arguments and of the arena."""
    inputs, outputs = argument_names(placement.graph)
    graph, lines, sizes = placement.graph, [], []
    for text, tensor in [*zip(inputs, graph.inputs, strict=True), *zip(outputs, graph.outputs, strict=True)]:
        shape = "x".join(map(str, tensor.shape)) or "1"
        grid = tensor.per_tensor_quantization if tensor.type == "INT8" else None
        note = f", real value = {grid[0]!r} * (level - {grid[1]})" if grid else ""
        signs = ", signs packed to words" if tensor.type == "INT32" else ""
        lines.append(f' *   {text}: {C_TYPES[tensor.type][0]} {shape} "{in_comment(tensor.name)}"{note}{signs}\n')
        sizes.append(f"  {name.upper()}_{text.upper()}_SIZE = {int(np.prod(tensor.shape, dtype=np.int64))},\n")
    return {"ARGUMENTS": "".join(lines), "SIZES": "".join(sizes), "ARENA": placement.arena_bytes}


_ALIGNMENT = """
/* The widest loads want it; a compiler that does not know the attribute has no such loads either. */
#ifdef __GNUC__
#define ALIGNED(bytes) __attribute__((aligned(bytes)))
#else
#define ALIGNED(bytes)
#endif
"""
_ARENA = """
/* All tensors between the layers, each at the place that was planned for it. */
static union {{
  uint32_t words[{words}];
  float floats[{words}];
  int8_t bytes[{bytes}];
  uint8_t booleans[{bytes}];
}} arena;
"""
