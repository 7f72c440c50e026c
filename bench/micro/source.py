"""Writes C source of layers with an input and its expected output, for programs that run on emulated boards."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from litebnn.micro.fixed_output import FixedOutput
from litebnn.micro.pack import Geometry, Packed

Array = npt.NDArray[Any]
C_TYPES = {"float32": "float", **{name: f"{name}_t" for name in ("uint32", "int32", "uint16", "uint8", "int8")}}
FUNCTIONS = {"uint32": "bits", "int8": "int8", "float32": "float"}
CLAMPS = -(2**31) + 1, 2**31 - 1


@dataclass(frozen=True)
class Case:
    """A packed layer with its input `words` and its `expected` output.

    The data type of `expected` is that of the layer's output: uint32 for packed signs, int8 or float32. `multiplier`
    and `bias` are None for packed signs.
    """

    name: str
    geometry: Geometry
    packed: Packed
    words: Array
    expected: Array
    multiplier: Array | None = None
    bias: Array | None = None
    clamp: tuple[int, int] = CLAMPS
    zero_point: int = 0
    fixed: FixedOutput | None = None


def c_array(name: str, values: Array | None) -> str:
    """The C source of a constant array, aligned to 16 bytes. If `values` is None, `name` becomes a null pointer."""
    if values is None:
        return f"#define {name} 0\n"
    flat = values.reshape(-1)
    if flat.dtype == np.float32:
        texts: Iterable[str] = (f"{float(value).hex()}f" for value in flat)
    else:
        texts = (f"{int(value)}u" if flat.dtype.kind == "u" else str(int(value)) for value in flat)
    lines = ",\n".join(_lines(list(texts)))
    alignment = "__attribute__((aligned(16)))"
    return f"static const {C_TYPES[flat.dtype.name]} {name}[{flat.size}] {alignment} = {{\n{lines}}};\n"


def _lines(texts: Sequence[str]) -> Iterable[str]:
    return (", ".join(texts[i : i + 16]) for i in range(0, len(texts), 16))


def layer_source(name: str, case: Case) -> str:
    """The C source of a layer's arrays, and of its structure `static const litebnn_bconv2d NAME`."""
    packed = {key: value for key, value in asdict(case.packed).items() if key not in ("kernel", "scratch_words")}
    values = {**packed, **asdict(case.geometry), "multiplier": case.multiplier, "bias": case.bias}
    del values["zero_padding"]
    values |= {"clamp_min": case.clamp[0], "clamp_max": case.clamp[1], "output_zero_point": case.zero_point}
    fixed = {field: getattr(case.fixed, field, None) for field in ("multiplier", "bias", "shift")}
    values |= {f"fixed_{field}": value for field, value in fixed.items()}
    arrays = {key: value for key, value in values.items() if value is None or isinstance(value, np.ndarray)}
    fields = {key: f"{name}_{key}" if key in arrays else str(value) for key, value in values.items()}
    fields["kernel"] = f"&litebnn_{case.packed.kernel}"
    text = "".join(c_array(f"{name}_{key}", value) for key, value in arrays.items())
    body = ",\n  ".join(f".{key} = {value}" for key, value in fields.items())
    return f"{text}static const litebnn_bconv2d {name} = {{\n  {body}}};\n"


def program_source(cases: Sequence[Case]) -> str:
    """The C source of a program that prints a line for each layer: NAME, instructions, number of wrong bytes.

    The program fails if any byte of an output is wrong.
    """
    size = max(case.expected.nbytes for case in cases)
    scratch = max(case.packed.scratch_words for case in cases)
    head = [
        '#include "board.h"\n#include "litebnn_micro.h"\n',
        f"static uint32_t scratch[{scratch}] __attribute__((aligned(16)));\n",
        f"static uint32_t output[{-(-size // 4)}] __attribute__((aligned(16)));\n",
        CHECK,
    ]
    body, calls = [], []
    for number, case in enumerate(cases):
        name = f"case{number}"
        kind = case.expected.dtype.name
        body += [layer_source(name, case), c_array(f"{name}_input", case.words.view(np.uint32))]
        body.append(c_array(f"{name}_expected", case.expected))
        run = f"litebnn_bconv2d_{FUNCTIONS[kind]}(&{name}, {name}_input, ({C_TYPES[kind]}*)(void*)output, scratch)"
        calls.append(
            f"  board_start_counting();\n  {run};\n  instructions = board_counted();\n"
            f'  wrong += report("{case.name}", instructions, {name}_expected, {case.expected.nbytes});\n'
        )
    main = ["int main(void) {\n  int32_t wrong = 0;\n  uint32_t instructions;\n", *calls, "  return wrong != 0;\n}\n"]
    return "".join([*head, *body, *main])


CHECK = r"""
static int32_t report(const char* name, uint32_t instructions, const void* expected, int32_t bytes) {
  const char *found = (const char*)output, *right = (const char*)expected;
  int32_t wrong = 0;
  for (int32_t i = 0; i < bytes; ++i) wrong += found[i] != right[i];
  board_print(name);
  board_print(" ");
  board_print_number((int32_t)instructions);
  board_print(" ");
  board_print_number(wrong);
  board_print("\n");
  return wrong;
}
"""
