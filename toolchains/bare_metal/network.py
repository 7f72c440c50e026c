"""Runs the self-tests of exported networks on emulated boards, and reads size and symbols of the linked programs."""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolchains.bare_metal import HERE, KERNELS, compile_program, run_program
from toolchains.targets import Target, ToolkitError

# These flags forbid fused multiply-adds, so that a product and a sum are rounded separately, as in TensorFlow Lite's
# reference.
FLAGS = ("-O2", "-ffp-contract=off", "-DLITEBNN_PORT", "-DLITEBNN_PROFILE")

_DRIVER = """#include "board.h"

void litebnn_port_print(const char* text);
uint32_t litebnn_port_ticks(void);
{declared}
void litebnn_port_print(const char* text) {{ board_print(text); }}
uint32_t litebnn_port_ticks(void) {{ return 0; }}

int main(void) {{
  static int (*const selftests[])(void) = {{{listed}}};
  int failed = 0;
  for (uint32_t i = 0; i < sizeof selftests / sizeof *selftests; ++i) {{
    board_print("network ");
    board_print_number((int32_t)i);
    board_print("\\n");
    failed |= selftests[i]();
  }}
  return failed;
}}
"""


@dataclass(frozen=True)
class Run:
    """The result of running a network's self-test on a board."""

    # Everything that the program printed.
    printed: str
    # The instructions of each step of the network, in the last run.
    steps: tuple[int, ...]
    # The largest number of bytes of the stack that were in use.
    stack: int


def run_selftest(target: Target, folder: Path, flags: Sequence[str] = FLAGS) -> Run:
    """Compiles an exported folder for a board of `targets.toml` and runs its self-test in QEMU.

    Raises:
        ToolkitError: the compiler or QEMU is missing, the program does not compile, or a result is wrong.
    """
    program = folder / f"selftest_{target.name}.elf"
    compile_program(target, [folder / "main.c", HERE / "selftest_port.c"], program, flags, folder / "src")
    printed = run_program(target, program)
    steps = tuple(int(count) for count in re.findall(r"^step \d+: (\d+) instructions$", printed, re.MULTILINE))
    stack = re.search(r"^stack (\d+)$", printed, re.MULTILINE)
    if stack is None or "passed\n" not in printed:
        raise ToolkitError(f"the self-test on {target.name} printed: {printed.strip()}")
    return Run(printed, steps, int(stack[1]))


def run_selftests(target: Target, folders: Sequence[Path], program: Path) -> None:
    """Runs the self-tests of several exported folders as one program, so that the kernels are compiled only once.

    Args:
        folders: the exports, whose networks have different names.
        program: the file to write; files that call each network's self-test are written beside it.

    Raises:
        ToolkitError: the compiler or QEMU is missing, the program does not compile, or a result is wrong.
    """
    kernels = {path.name for path in KERNELS.rglob("*.c")}
    sources, includes = sorted(KERNELS.glob("builtin/**/*.c")), [f"-I{KERNELS / 'builtin'}"]
    functions = [f"selftest_{index}" for index in range(len(folders))]
    for folder, function in zip(folders, functions, strict=True):
        wrapper = program.with_name(f"{function}.c")
        wrapper.write_text(f'#define litebnn_selftest {function}\n#include "{folder / "main.c"}"\n')
        sources += [wrapper, *(path for path in (folder / "src").glob("*.c") if path.name not in kernels)]
        includes.append(f"-I{folder / 'src'}")
    driver = program.with_name("selftests.c")
    declared = "".join(f"int {function}(void);\n" for function in functions)
    driver.write_text(_DRIVER.format(declared=declared, listed=", ".join(functions)))
    compile_program(target, [driver, *sources], program, ("-O2", "-ffp-contract=off", "-DLITEBNN_PORT", *includes))
    printed = run_program(target, program)
    if printed.count("passed\n") != len(folders):
        raise ToolkitError(f"the self-tests on {target.name} printed: {printed.strip()}")


def section_bytes(target: Target, program: Path) -> tuple[int, int]:
    """The bytes of a program's flash, and of its static memory.

    Raises:
        ToolkitError: the compiler's programs are missing, or they cannot read the file.
    """
    run = _binutils(target, "size", str(program))
    text, data, bss = (int(number) for number in run.splitlines()[1].split()[:3])
    return text + data, data + bss


def symbols(target: Target, program: Path) -> list[str]:
    """The names of a program's functions and variables."""
    return [line.split()[-1] for line in _binutils(target, "nm", str(program)).splitlines()]


def _binutils(target: Target, tool: str, *arguments: str) -> str:
    run = subprocess.run([f"{target.triple}-{tool}", *arguments], capture_output=True, text=True)
    if run.returncode:
        raise ToolkitError(f"{target.triple}-{tool} failed: {run.stderr.strip()}")
    return run.stdout
