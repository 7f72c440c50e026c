"""Builds the kernels' benchmark, and times it on this machine or counts its instructions for another target.

Usage:

    python -m bench.kernels [--target=NAME] [--isa=NAME] [--against=NAME] [--threads=N] [--only=TEXT] [--model=NAME]
                            [--output=NAME]

An emulator runs the programs of another target. A plugin of qemu-user counts each layer's guest instructions per binary
multiply-add. For SME2, the log of a newer qemu is counted instead. For 64-bit Arm, each ISA is counted, and llvm-mca's
model of the layers' loops is printed too. The option --model also counts the instructions of one inference of a network
of bench/zoo.
"""

import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter as Executions
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.kernels.model import Blocks, analyzer, loops_of, model_layer, parse_blocks, parse_listing
from bench.zoo import model_file
from toolchains.build import build_benchmark, copy_whole, first_error, work_folder
from toolchains.command_line import parser, run
from toolchains.compilers import find_gcc
from toolchains.emulate import emulator, recent_emulator
from toolchains.needs import needs
from toolchains.runtime_library import c_library_of, fetch_c_library, library_in
from toolchains.targets import BUILD, ROOT, Target, ToolkitError, find_system_target

FOLDER = BUILD / "bench"
LAYERS = [f"bconv {f}x{f} {size}x{size}x{64 * 56 // size}" for f in (3, 1, 5) for size in (56, 28, 14, 7)]
# The ISAs of 64-bit Arm, and the names of llvm-mca's cores that model them. For the Cortex-A76, llvm-mca uses the A57's
# model, but its Neoverse N1 has the A76's pipeline. llvm-mca has no model of a core with SME2.
CORES = {
    "neon64_tbl": ("neoverse-n1",),
    "neon64": ("cortex-a72", "neoverse-n1"),
    "neon64_in_order": ("cortex-a53", "cortex-a55"),
    "sme2": (),
}
OUTPUTS = ("float", "float_sum", "int8", "int8_sum")
# The CPU with SME2 that the emulator imitates. Its vectors have 64 bytes, like those of the first real CPUs with SME2.
SME2_CPU = "max,sme512=on,sme-default-vector-length=64"

Command = Sequence[str | Path]


def output_of(command: Command) -> str:
    """Runs a command, and returns its output.

    Raises:
        ToolkitError: the command failed.
    """
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise ToolkitError(f"{command[0]} ended with code {done.returncode}{first_error(done.stdout)}")
    return done.stdout


def build(target: Target) -> Path:
    """Builds kernels_bench and the library for the target, and returns the build folder."""
    # The output is for results alone.
    with contextlib.redirect_stdout(sys.stderr):
        return build_benchmark(target.name, "gcc")


class Counter:
    """Counts the instructions of programs that run on the target's emulated CPU."""

    def __init__(self, target: Target, isa: str = "") -> None:
        if not shutil.which("cc"):
            raise ToolkitError(f"cc is missing: {needs()['gcc'].install}")
        FOLDER.mkdir(parents=True, exist_ok=True)
        self._plugin = FOLDER / "insn_count.so"
        source = ROOT / "bench" / "kernels" / "insn_count.c"
        output_of(["cc", "-O2", "-shared", "-fPIC", "-o", self._plugin, source])
        self._emulator = [
            emulator(target),
            *("-cpu", target.emulator_cpu),
            *("-L", f"/usr/{target.triple}"),
            *(["-E", f"LITEBNN_ISA={isa}"] if isa else []),
        ]

    def run(self, command: Command) -> str:
        return output_of([*self._emulator, *command])

    def count(self, command: Command) -> int:
        return int(re.findall(r"guest instructions: (\d+)", self._count(command, ""))[0])

    def blocks(self, command: Command) -> Blocks:
        return parse_blocks(self._count(command, ",blocks=on"))

    def _count(self, command: Command, options: str) -> str:
        return output_of([*self._emulator, "-plugin", f"{self._plugin}{options}", "-d", "plugin", *command])


class LogCounter:
    """Counts instructions in the log of a statically linked emulator, which cannot load the plugin of the class
    `Counter`."""

    def __init__(self, target: Target, cpu: str) -> None:
        self._emulator = [recent_emulator(target), "-cpu", cpu, "-L", f"/usr/{target.triple}"]

    def run(self, command: Command) -> str:
        return output_of([*self._emulator, *command])

    def blocks(self, command: Command) -> Blocks:
        log = ["-one-insn-per-tb", "-d", "exec,nochain", "-D", "/dev/stdout"]
        executions: Executions[str] = Executions()
        with subprocess.Popen([*self._emulator, *log, *command], stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            # In a line of the log, the second number in brackets is the instruction's address.
            executions.update(line.split("/", 2)[1] for line in program.stdout if line.startswith("Trace "))
        if program.returncode:
            raise ToolkitError(f"{command[0]} ended with code {program.returncode}")
        return Executions({(int(address, 16), 1): times for address, times in executions.items()})


@dataclass(frozen=True)
class Layer:
    """A layer, and the emulator's counts of one run of it."""

    name: str
    macs: int
    blocks: Blocks

    @property
    def instructions(self) -> int:
        return sum(instructions * executions for (_, instructions), executions in self.blocks.items())


def count_layer(
    counter: Counter | LogCounter, program: Path, isa: str, name: str, which: str = "only", output: str = "float"
) -> Layer:
    """Counts the instructions of one run of a layer. `name` is the name of a layer in kernels_bench, or a shape if
    `which` is "layer".
    """

    def command(iterations: int) -> Command:
        chosen = [f"--output={output}", *([f"--isa={isa}"] if isa else [])]
        return [program, "--only=bconv", f"--{which}={name}", f"--iterations={iterations}", *chosen]

    macs = int(re.findall(r"(\d+) MACs", counter.run(command(1)))[0])
    # The emulator counts the instructions of a program that runs the layer three times, and of one that runs it twice.
    # The difference is one run of the layer.
    blocks = counter.blocks(command(3))
    blocks.subtract(counter.blocks(command(2)))
    return Layer(name, macs, blocks)


def count_layers(counter: Counter | LogCounter, program: Path, isa: str, only: str, output: str) -> list[Layer]:
    layers = [count_layer(counter, program, isa, name, output=output) for name in LAYERS if only in name]
    for layer in layers:
        each = layer.instructions / layer.macs
        print(f"{layer.name:<22} {layer.instructions / 1e6:8.3f} M instructions, {each:.4f} per multiply-add")
    return layers


def cycles_of_layers(target: Target, program: Path, layers: Sequence[Layer], core: str) -> list[float]:
    """The cycles that layers of 64-bit NEON take on a core, as modelled by llvm-mca.

    Raises:
        ToolkitError: llvm-mca is missing.
    """
    if analyzer() is None:
        raise ToolkitError(f"llvm-mca is missing: {needs()['llvm'].install}")
    listing = output_of([f"{target.triple}-objdump", "-d", "--no-show-raw-insn", program])
    instructions = parse_listing(listing)
    return [model_layer(*loops_of(layer.blocks, instructions), core).cycles for layer in layers]


def model_layers(target: Target, program: Path, layers: list[Layer], cores: Sequence[str]) -> None:
    """Prints the cycles that llvm-mca models for layers of 64-bit NEON."""
    if analyzer() is None:
        print(f"not modelled: llvm-mca is missing: {needs()['llvm'].install}")
        return
    listing = output_of([f"{target.triple}-objdump", "-d", "--no-show-raw-insn", program])
    instructions = parse_listing(listing)
    for core in cores:
        cycles = 0.0
        for layer in layers:
            model = model_layer(*loops_of(layer.blocks, instructions), core)
            cycles += model.cycles
            print(
                f"{layer.name:<22} {core}: {model.inner_loop:.1f} multiply-adds a cycle in the inner loop,"
                f" {layer.macs / model.cycles:.1f} in the whole layer of {model.cycles / 1e3:.0f} thousand cycles"
            )
        if len(layers) > 1:
            print(f"{'together':<22} {core}: {sum(layer.macs for layer in layers) / cycles:.1f} multiply-adds a cycle")


@cache
def benchmark_model(target: Target) -> Path:
    """Builds benchmark_model for the target with TensorFlow Lite's C library, because LiteRT does not work in an
    emulator with plugins.

    Raises:
        ToolkitError: the target has no such runtime, or the build failed.
    """
    runtime = fetch_c_library(target.name)
    compiler = find_gcc(target)
    folder = FOLDER / f"{target.name}-programs"
    output_of(compiler.configure(folder, LITEBNN_TFLITE_DIR=str(runtime)))
    output_of(compiler.compile(folder, "benchmark_model"))
    copy_whole(library_in(runtime), folder / "programs")
    return folder / "programs" / "benchmark_model"


def count_network(target: Target, isa: str, model: bytes, *, delegated: bool = True) -> int:
    """Counts the instructions of one inference of a network, with litebnn's delegate or without.

    Raises:
        ToolkitError: there is no runtime that works in an emulator with plugins, or the build failed.
    """
    with tempfile.NamedTemporaryFile(suffix=".tflite") as file:
        file.write(model)
        file.flush()
        library = work_folder(target, find_gcc(target)) / target.names.library
        return _count_inference(
            Counter(target, isa), benchmark_model(target), library if delegated else None, Path(file.name)
        )


def _count_inference(counter: Counter, program: Path, library: Path | None, model: Path) -> int:
    options = [f"--graph={model}", "--use_xnnpack=1", "--warmup_runs=1"]
    options += [] if library is None else [f"--external_delegate_path={library}"]

    def command(runs: int) -> Command:
        return [program, *options, f"--num_runs={runs}"]

    return counter.count(command(2)) - counter.count(command(1))


def count_model(counter: Counter, target: Target, library: Path, name: str) -> None:
    try:
        # A missing runtime is reported first, because no model can be counted without a runtime.
        c_library_of(target)
        model, program = model_file(name, "lce"), benchmark_model(target)
    except ToolkitError as reason:
        print(f"{name} is not counted: {reason}")
        return

    instructions = _count_inference(counter, program, library, model)
    print(f"{model.name}: {instructions / 1e6:.2f} M instructions an inference")


def measure(target: str, isa: str, against: str, threads: int, only: str, model: str, output: str) -> None:
    """Times the kernels on this machine, or counts their instructions for another target."""
    row = find_system_target(target)
    folder = build(row)
    program = folder / "bench" / "kernels" / "kernels_bench"
    if not row.triple:
        chosen = [f"--output={output}", *([f"--isa={isa}"] if isa else [])]
        chosen += [f"--against={against}"] if against else []
        if subprocess.run([program, f"--threads={threads}", f"--only={only}", *chosen]).returncode:
            raise ToolkitError(f"{program} failed")
        return
    counter = Counter(row)
    isas = CORES if row.processor == "aarch64" else {"": ()}
    for name, cores in isas.items():
        if isa in ("", name):
            print(f"ISA {name}" if name else "")
            try:
                layer_counter = LogCounter(row, SME2_CPU) if name == "sme2" else counter
            except ToolkitError as reason:
                print(f"{name} is not counted: {reason}")
                continue
            layers = count_layers(layer_counter, program, name, only, output)
            if cores:
                model_layers(row, program, layers, cores)
    if model:
        count_model(counter, row, folder / row.names.library, model)


def main() -> int:
    """Runs the command line and returns the exit code."""
    own = parser("bench.kernels", __doc__)
    own.add_argument("--isa", default="", help="instruction set; by default the best one, or each one on 64-bit Arm")
    own.add_argument("--against", default="", help="this machine only: another instruction set, taking turns")
    own.add_argument("--threads", type=int, default=1, help="this machine only")
    own.add_argument("--only", default="", help="only layers whose name contains this text")
    own.add_argument("--model", default="", help="other targets only: count an inference of this network too")
    own.add_argument(
        "--output", default="float", choices=OUTPUTS, help="what layers write; a sum adds an earlier layer's output"
    )
    return run(own, measure, None)


if __name__ == "__main__":
    sys.exit(main())
