"""Programs for microcontrollers: compiles them for a target of targets.toml, and runs them on QEMU's board.

A program has a function `main` and may use board.h, with which it prints, counts instructions and measures its stack.
"""

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from toolchains.compilers import find_gcc
from toolchains.emulate import emulator
from toolchains.targets import ROOT, Target, ToolkitError

HERE = Path(__file__).parent
KERNELS = ROOT / "ops" / "micro"
# The clock rates of the boards' SysTick timers, in hertz.
HERTZ = {"mps2-an386": 25_000_000, "mps2-an500": 25_000_000, "mps3-an547": 32_000_000}
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
SECONDS = 300


def compile_program(
    target: Target, sources: Iterable[Path], program: Path, flags: Sequence[str] = ("-O2",), kernels: Path = KERNELS
) -> Path:
    """Compiles C files with the board's start-up code and the kernels of a folder; returns `program`.

    Args:
        kernels: ops/micro, or `src` of an exported network.

    Raises:
        ToolkitError: the compiler is missing, or reports an error.
    """
    find_gcc(target)
    hertz = [f"-DBOARD_HERTZ={HERTZ[target.machine]}u"] if target.machine in HERTZ else []
    command = [
        *(f"{target.triple}-gcc", *target.gcc_flags, "-std=c99", "-ffreestanding", *WARNINGS, *flags, *hertz),
        *("-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-nostartfiles"),
        *(f"-L{HERE}", f"-T{target.machine}.ld", f"-I{HERE}", f"-I{kernels}"),
        *map(str, (*sources, HERE / "board.c", *sorted(kernels.glob("*.c")))),
        *("-Wl,--no-warn-rwx-segments", "-o", str(program)),
    ]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise ToolkitError(f"compiling {program.name} for {target.name} failed: {run.stderr.strip()}")
    return program


def run_program(target: Target, program: Path, seconds: int = SECONDS) -> str:
    """Runs a program on the target's board; returns what it printed.

    Raises:
        ToolkitError: QEMU is missing, the program reports failure, or it does not end in time.
    """
    command = [
        *(emulator(target), "-M", target.machine, "-cpu", target.emulator_cpu, "-nographic", "-monitor", "none"),
        *("-serial", "none", "-icount", "shift=0", "-semihosting-config", "enable=on,target=native"),
        *(["-bios", "none"] if target.machine == "virt" else []),
        *("-kernel", str(program)),
    ]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise ToolkitError(f"{program.name} on {target.name} did not end in {seconds} s") from error
    printed = run.stdout + run.stderr
    if run.returncode:
        raise ToolkitError(f"{program.name} on {target.name} failed with code {run.returncode}: {printed.strip()}")
    return printed
