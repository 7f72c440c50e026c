"""Builds the kernels' benchmark and runs it: on this machine the clock, for other targets an emulator's counts.

    python -m bench.kernels [--target=NAME] [--isa=NAME] [--against=NAME] [--threads=N] [--only=TEXT] [--model=NAME]

For a target that is not this machine it prints guest instructions per binary multiply-add of each layer, counted by a
plugin of qemu-user, and the cycles that llvm-mca gives the inner loop on the Cortex cores; with --model, a network of
bench/zoo, also the instructions of one inference in benchmark_model.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.zoo import model_file
from toolchains.build import LIBRARY, first_error
from toolchains.command_line import parser, run
from toolchains.compilers import find_gcc
from toolchains.emulate import emulator
from toolchains.runtime_library import c_library_of, fetch_c_library, library_in
from toolchains.targets import BUILD, ROOT, Target, ToolkitError, find_target

FOLDER = BUILD / "bench"
LAYERS = [f"bconv {f}x{f} {size}x{size}x{64 * 56 // size}" for f in (3, 1, 5) for size in (56, 28, 14, 7)]
# These functions of ops/kernels/isa/neon64/sum_windows.S sum chunks of six words, each for its own cores, which do so
# many vector instructions a cycle.
LOOPS = {
    "litebnn_sum_windows_6": {"cortex-a72": 2, "cortex-a76": 2},
    "litebnn_sum_windows_in_order_6": {"cortex-a53": 1, "cortex-a55": 1},
}
# One turn of such a loop takes six words of four pixels and 32 channels.
LOOP_MACS = 6 * 32 * 4 * 32

Command = Sequence[str | Path]


def output_of(command: Command) -> str:
    """What a command prints.

    Raises:
        ToolkitError: it failed.
    """
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise ToolkitError(f"{command[0]} ended with code {done.returncode}{first_error(done.stdout)}")
    return done.stdout


def build(target: Target) -> Path:
    """Builds kernels_bench and the library for the target and returns the folder of the build."""
    compiler = find_gcc(target)
    folder = FOLDER / target.name
    output_of(compiler.configure(folder, LITEBNN_BUILD_BENCHMARKS="ON"))
    output_of(compiler.compile(folder))
    return folder


class Counter:
    """Counts the instructions of emulated programs; the difference of two runs is that of what one does more."""

    def __init__(self, target: Target) -> None:
        if not shutil.which("cc"):
            raise ToolkitError("cc is missing: install the Debian package gcc")
        self._plugin = FOLDER / "insn_count.so"
        source = ROOT / "bench" / "kernels" / "insn_count.c"
        output_of(["cc", "-O2", "-shared", "-fPIC", "-o", self._plugin, source])
        self._emulator = [emulator(target), "-L", f"/usr/{target.triple}"]

    def run(self, command: Command) -> str:
        return output_of([*self._emulator, *command])

    def count(self, command: Command) -> int:
        output = output_of([*self._emulator, "-plugin", self._plugin, "-d", "plugin", *command])
        return int(re.findall(r"guest instructions: (\d+)", output)[0])


def count_layers(counter: Counter, program: Path, only: str) -> None:
    for layer in LAYERS:
        if only not in layer:
            continue

        def command(iterations: int, layer: str = layer) -> Command:
            return [program, f"--only={layer}", f"--iterations={iterations}"]

        macs = int(re.findall(r"(\d+) MACs", counter.run(command(1)))[0])
        instructions = (counter.count(command(4)) - counter.count(command(2))) / 2
        print(f"{layer:<22} {instructions / 1e6:8.3f} M instructions, {instructions / macs:.4f} per multiply-add")


def benchmark_model(target: Target) -> Path:
    """benchmark_model for the target, on a runtime that an emulator with plugins can run: they crash in LiteRT.

    Raises:
        ToolkitError: there is no such runtime for the target, or the build failed.
    """
    runtime = fetch_c_library(target.name)
    compiler = find_gcc(target)
    folder = FOLDER / f"{target.name}-programs"
    output_of(compiler.configure(folder, LITEBNN_TFLITE_DIR=str(runtime)))
    output_of(compiler.compile(folder, "benchmark_model"))
    shutil.copy2(library_in(runtime), folder / "examples")
    return folder / "examples" / "benchmark_model"


def count_model(counter: Counter, target: Target, library: Path, name: str) -> None:
    try:
        # Without a runtime to run it in, nobody should be sent to make the model.
        c_library_of(target)
        model, program = model_file(name, "lce"), benchmark_model(target)
    except ToolkitError as reason:
        print(f"{name} is not counted: {reason}")
        return

    options = [f"--graph={model}", "--use_xnnpack=1", f"--external_delegate_path={library}", "--warmup_runs=1"]

    def command(runs: int) -> Command:
        return [program, *options, f"--num_runs={runs}"]

    instructions = counter.count(command(2)) - counter.count(command(1))
    print(f"{model.name}: {instructions / 1e6:.2f} M instructions an inference")


def loop_of(function: str, listing: str) -> list[str]:
    """The instructions of a function's loop, without the branch at its end, from objdump's listing."""
    body = re.findall(rf"<{function}>:\n(.*?)\sret\n", listing, re.DOTALL)[0]
    lines = [(int(address, 16), text) for address, text in re.findall(r"^ *([0-9a-f]+):\s+(.*)$", body, re.MULTILINE)]
    begin = int(re.findall(r"^cbnz\s+x6, ([0-9a-f]+)", lines[-1][1])[0], 16)
    return [text for address, text in lines[:-1] if address >= begin]


def analyze_loops(target: Target, program: Path) -> None:
    """Prints the cycles that llvm-mca gives the inner loops of 64-bit NEON."""
    analyzer = next((name for name in ("llvm-mca-19", "llvm-mca") if shutil.which(name)), None)
    if analyzer is None:
        print("inner loops: llvm-mca is missing: install the Debian package llvm-19")
        return
    listing = output_of([f"{target.triple}-objdump", "-d", "--no-show-raw-insn", program])
    source = program.with_name("loop.s")
    for function, cores in LOOPS.items():
        loop = loop_of(function, listing)
        source.write_text("\n".join([*loop, ""]))
        print(f"{function}: {len(loop) + 1} instructions for {LOOP_MACS} multiply-adds")
        for core, vectors in cores.items():
            output = output_of([analyzer, "-mtriple=aarch64", f"-mcpu={core}", "-iterations=100", source])
            cycles = int(re.findall(r"Total Cycles:\s+(\d+)", output)[0]) / 100
            bound = 128 / 3 * vectors
            speed = LOOP_MACS / cycles
            print(
                f"  {core:<11} {cycles:6.1f} cycles, {speed:5.1f} multiply-adds a cycle,"
                f" {speed / bound * 100:3.0f} % of {bound:.1f}"
            )


def measure(target: str, isa: str, against: str, threads: int, only: str, model: str) -> None:
    """Times or counts the kernels of a target."""
    row = find_target(target)
    folder = build(row)
    program = folder / "bench" / "kernels" / "kernels_bench"
    if not row.triple:
        chosen = [f"--isa={isa}"] if isa else []
        chosen += [f"--against={against}"] if against else []
        if subprocess.run([program, f"--threads={threads}", f"--only={only}", *chosen]).returncode:
            raise ToolkitError(f"{program} failed")
        return
    counter = Counter(row)
    count_layers(counter, program, only)
    if row.processor == "aarch64":
        analyze_loops(row, program)
    if model:
        count_model(counter, row, folder / LIBRARY, model)


def main() -> int:
    """The command line; returns the exit code."""
    own = parser("bench.kernels", __doc__)
    own.add_argument("--isa", default="", help="this machine only: the instruction set, by default the best")
    own.add_argument("--against", default="", help="this machine only: another instruction set, taking turns")
    own.add_argument("--threads", type=int, default=1, help="this machine only")
    own.add_argument("--only", default="", help="layers whose name has this in it")
    own.add_argument("--model", default="", help="other targets only: count an inference of this network too")
    return run(own, measure, None)


if __name__ == "__main__":
    sys.exit(main())
