"""Builds the kernels' benchmark and runs it: on this machine the clock, for other targets an emulator's counts.

    python -m bench.kernels [--target=NAME] [--isa=NAME] [--threads=N] [--only=TEXT] [--model=FILE]

For a target that is not this machine it prints guest instructions per binary multiply-add of each layer, counted by a
plugin of qemu-user, and the cycles that llvm-mca gives the inner loop on the Cortex cores; with --model, and the
target's benchmark_model built by `invoke build` after `invoke runtime`, also the instructions of one inference.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from toolchains.compilers import find_gcc
from toolchains.targets import Target, ToolkitError, find_target

ROOT = Path(__file__).resolve().parents[2]
LAYERS = [f"bconv {f}x{f} {size}x{size}x{64 * 56 // size}" for f in (3, 1, 5) for size in (56, 28, 14, 7)]
# The functions of ops/kernels/isa/neon64/sum_windows.S for chunks of six words, by the cores that they are for: how
# many vector instructions those do a cycle.
LOOPS = {
    "litebnn_sum_windows_6": {"cortex-a72": 2, "cortex-a76": 2},
    "litebnn_sum_windows_in_order_6": {"cortex-a53": 1, "cortex-a55": 1},
}
# Six words of four pixels and 32 channels.
LOOP_MACS = 6 * 32 * 4 * 32


def _run(command: list[str | Path], **options: str) -> str:
    environment = {**os.environ, **options}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"benchmark: {command[0]} ended with code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def build(target: Target) -> Path:
    """Builds kernels_bench and the library for the target and returns the folder of the build."""
    compiler = find_gcc(target)
    folder = ROOT / "build" / "bench" / target.name
    definitions = [f"-D{name}={value}" for name, value in compiler.cmake_arguments.items()]
    generator = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={compiler.ninja}"] if compiler.ninja else []
    benchmarks = "-DLITEBNN_BUILD_BENCHMARKS=ON"
    _run([compiler.cmake, "-S", ROOT, "-B", folder, *generator, "-DCMAKE_BUILD_TYPE=Release", benchmarks, *definitions])
    _run([compiler.cmake, "--build", folder, "--parallel", str(os.cpu_count() or 1)])
    return folder


class Counter:
    """Counts the instructions of emulated programs; the difference of two runs is that of what one does more."""

    def __init__(self, target: Target) -> None:
        for program in (target.emulator, "cc"):
            if not shutil.which(program):
                raise ToolkitError(f"{program} is missing: install the Debian packages qemu-user and gcc")
        self._plugin = ROOT / "build" / "bench" / "insn_count.so"
        source = ROOT / "ops" / "bench" / "insn_count.c"
        _run(["cc", "-O2", "-shared", "-fPIC", "-o", self._plugin, source])
        self._emulator: list[str | Path] = [target.emulator, "-L", f"/usr/{target.triple}"]

    def run(self, command: list[str | Path]) -> str:
        return _run([*self._emulator, *command])

    def count(self, command: list[str | Path]) -> int:
        output = _run([*self._emulator, "-plugin", self._plugin, "-d", "plugin", *command])
        return int(re.findall(r"guest instructions: (\d+)", output)[0])


def count_layers(counter: Counter, program: Path, only: str) -> None:
    for layer in LAYERS:
        if only not in layer:
            continue

        def command(iterations: int, layer: str = layer) -> list[str | Path]:
            return [program, f"--only={layer}", f"--iterations={iterations}"]

        macs = int(re.findall(r"(\d+) MACs", counter.run(command(1)))[0])
        instructions = (counter.count(command(4)) - counter.count(command(2))) / 2
        print(f"{layer:<22} {instructions / 1e6:8.3f} M instructions, {instructions / macs:.4f} per multiply-add")


def count_model(counter: Counter, target: Target, library: Path, model: Path) -> None:
    program = target.folder / "benchmark_model"
    if not program.is_file():
        raise SystemExit(f"benchmark: no {program}: make it by invoke runtime and invoke build, for this target")

    place = ["-E", f"LD_LIBRARY_PATH={target.folder}"]
    options = [f"--graph={model}", "--use_xnnpack=1", f"--external_delegate_path={library}", "--warmup_runs=1"]

    def command(runs: int) -> list[str | Path]:
        return [*place, program, *options, f"--num_runs={runs}"]

    instructions = counter.count(command(2)) - counter.count(command(1))
    print(f"{model.name}: {instructions / 1e6:.2f} M instructions an inference")


def _loop_of(function: str, listing: str) -> list[str]:
    """The instructions of a function's loop, without the branch at its end, from objdump's listing."""
    body = re.findall(rf"<{function}>:\n(.*?)\sret\n", listing, re.DOTALL)[0]
    lines = [(int(address, 16), text) for address, text in re.findall(r"^ *([0-9a-f]+):\s+(.*)$", body, re.MULTILINE)]
    begin = int(re.findall(r"^cbnz\s+x6, ([0-9a-f]+)", lines[-1][1])[0], 16)
    return [text for address, text in lines[:-1] if address >= begin]


def analyze_loops(target: Target, folder: Path) -> None:
    """Prints the cycles that llvm-mca gives the inner loops of 64-bit NEON."""
    analyzer = next((name for name in ("llvm-mca-19", "llvm-mca") if shutil.which(name)), None)
    if analyzer is None:
        print("inner loops: llvm-mca is missing: install the Debian package llvm-19")
        return
    program = folder / "ops" / "bench" / "kernels_bench"
    listing = _run([f"{target.triple}-objdump", "-d", "--no-show-raw-insn", program])
    source = folder / "loop.s"
    for function, cores in LOOPS.items():
        loop = _loop_of(function, listing)
        source.write_text("\n".join([*loop, ""]))
        print(f"{function}: {len(loop) + 1} instructions for {LOOP_MACS} multiply-adds")
        for core, vectors in cores.items():
            output = _run([analyzer, "-mtriple=aarch64", f"-mcpu={core}", "-iterations=100", source])
            cycles = int(re.findall(r"Total Cycles:\s+(\d+)", output)[0]) / 100
            bound = 128 / 3 * vectors
            speed = LOOP_MACS / cycles
            print(
                f"  {core:<11} {cycles:6.1f} cycles, {speed:5.1f} multiply-adds a cycle,"
                f" {speed / bound * 100:3.0f} % of {bound:.1f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description="Time or count the kernels.")
    parser.add_argument("--target", default="host")
    parser.add_argument("--isa", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="layers whose name has this in it")
    parser.add_argument("--model", type=Path, help="count one inference of this model too; other targets only")
    options = parser.parse_args()
    try:
        target = find_target(options.target)
        folder = build(target)
        program = folder / "ops" / "bench" / "kernels_bench"
        if not target.triple:
            command: list[str | Path] = [program, f"--threads={options.threads}", f"--only={options.only}"]
            if options.isa:
                command.append(f"--isa={options.isa}")
            sys.exit(subprocess.run(command).returncode)
        counter = Counter(target)
        count_layers(counter, program, options.only)
        if target.processor == "aarch64":
            analyze_loops(target, folder)
        if options.model:
            count_model(counter, target, folder / "liblitebnn.so", options.model)
    except ToolkitError as error:
        raise SystemExit(f"benchmark: {error}") from error


if __name__ == "__main__":
    main()
