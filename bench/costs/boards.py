"""Estimates the costs of ops on boards that are not available here, from an emulator's counts and llvm-mca's models.

Usage:

    python -m bench.costs.boards

A binary layer costs the cycles that llvm-mca models for its loops on the board's core (see bench/kernels/model.py). For
the runtime's own ops, an emulator counts the instructions. The cycles for an instruction are those in the inner loop of
a matrix product. The memory bandwidths are figures that others have published. No estimate has been compared with a
real board.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from bench.costs.__main__ import fitted
from bench.costs.chain import Chain
from bench.costs.fit import Cycles, Network, fit, workloads_of
from bench.costs.suite import other_networks
from bench.kernels.__main__ import Counter, build, count_layer, count_network, cycles_of_layers
from bench.kernels.model import cycles_of
from litebnn.files import write_whole
from litebnn.graph import packed_words
from litebnn.report.costs import FILE, Costs, read_costs, write_costs
from toolchains.command_line import parser, run
from toolchains.targets import find_target


@dataclass(frozen=True)
class BoardFacts:
    """Facts about a board from its makers and llvm-mca."""

    # The name of the board's row in toolchains/targets.toml.
    board: str
    isa: str
    # The number by which Linux identifies the core ("CPU part").
    part: str
    # The name of the core in llvm-mca.
    core: str
    ghz: float
    # The memory bandwidth of copying data, in GB/s.
    gigabytes: float
    tile: int
    # If llvm-mca cannot model the loops of `isa`, the 64-bit ISA whose loops it models instead; otherwise "".
    counted: str = ""


# The boards. The Raspberry Pi 3 runs a 32-bit system, for which llvm-mca has no model of the Cortex-A53.
BOARDS = (
    BoardFacts("rpi3", "neon32", "0xd03", "cortex-a53", 1.2, 2.0, 32, counted="neon64_in_order"),
    BoardFacts("rpi4", "neon64", "0xd08", "cortex-a72", 1.5, 4.0, 32),
    BoardFacts("rpi5", "neon64_tbl", "0xd0b", "neoverse-n1", 2.4, 9.0, 32),
)
# Shapes of LceBconv2d: image size, input channels, output channels, filter width.
LAYERS = (
    *((56, 64, 64, 3), (28, 128, 128, 3), (14, 256, 256, 3), (7, 512, 512, 3)),
    *((56, 64, 64, 1), (28, 128, 128, 1), (14, 256, 256, 1), (7, 512, 512, 1)),
    *((27, 32, 64, 3), (14, 96, 96, 3), (1, 1024, 1024, 1), (14, 512, 64, 3)),
)
# Kinds of work to which no cost is fitted on boards, because neither emulators nor llvm-mca model caches.
_MEMORY = ("bytes past the cache", "bytes past the last cache")
# The instructions of one iteration in XNNPACK's float matrix product, for tiles of 6 × 8: loads of both operands, and
# multiply-adds.
GEMM_LOOP = (
    *(f"ldr q{i}, [x{i}], #16" for i in range(6)),
    *("ldp q6, q7, [x6], #32" for _ in range(4)),
    *(
        f"fmla v{8 + 2 * row + half}.4s, v{6 + half}.4s, v{row}.s[{lane}]"
        for lane in range(4)
        for row in range(6)
        for half in range(2)
    ),
    "subs x9, x9, #16",
    "b.ne #0",
)
# The networks of the suite whose instructions an emulator counts. They cover all kinds of ops, and are small enough for
# an emulator. The networks use GREATER instead of SIGN, because the newest runtime that works in the emulator does not
# know SIGN.
COUNTED = (
    *("conv float 1x1 14x14x256", "conv float 1x1 28x28x64", "conv float 3x3 14x14x128", "conv float 3x3 7x7x512"),
    *("conv float 7x7 / 2 224x224x3-64", "conv float 3x3 / 2 224x224x3-16", "conv float 1x1 56x56x64-128"),
    *("conv int8 1x1 14x14x256", "conv int8 3x3 14x14x128", "conv int8 1x1 28x28x64", "conv int8 3x3 / 2 224x224x3-16"),
    *("dense float 512-1000", "dense float 1024-1000", "dense int8 512-1000", "dense int8 1024-1000"),
    *("dense float 256-10", "dense int8 256-10"),
    *("depthwise float 56x56x64 / 2", "depthwise float 28x28x128 / 2", "depthwise float 14x14x256 / 1"),
    *("depthwise int8 56x56x64 / 2", "depthwise int8 28x28x128 / 2", "depthwise int8 14x14x256 / 1"),
    *("depthwise float 7x7x512 / 1", "depthwise int8 7x7x512 / 1", "matmul 512-512", "matmul 2048-1024"),
    *("transposed float 2x2 / 2 8x8x512-256", "transposed float 3x3 / 2 7x7x256-256"),
    *("transposed float 8x8 / 4 16x16x64-21", "transposed int8 2x2 / 2 8x8x512-256"),
    *("transposed int8 3x3 / 2 7x7x256-256", "transposed int8 8x8 / 4 16x16x64-21"),
    *("transposed float 2x2 / 2 64x64x64-32", "transposed int8 2x2 / 2 64x64x64-32"),
    *("transposed float 2x2 / 2 4x4x32-16", "transposed int8 2x2 / 2 4x4x32-16"),
    *("QUANTIZE 28x28x128", "QUANTIZE 7x7x512", "DEQUANTIZE 28x28x128", "DEQUANTIZE 14x14x256"),
    *("GREATER 28x28x128", "GREATER 14x14x256", "ADD 28x28x128", "MUL 14x14x256", "ADD 7x7x512"),
    *("MAX_POOL_2D 3x3 / 2 56x56x64", "MAX_POOL_2D 2x2 / 2 28x28x128", "AVERAGE_POOL_2D 2x2 / 2 28x28x128"),
    *("average of 7x7x512", "SOFTMAX 1x1x1000", "LOGISTIC 14x14x256", "RESHAPE 28x28x128", "RESHAPE 7x7x512"),
    *("PAD of channels 14x14x256", "CONCATENATION 2 28x28x128", "CONCATENATION 5 14x14x256", "MEAN 7x7x512"),
    *("STRIDED_SLICE 14x14x256", "TANH 7x7x512", "MEAN 14x14x256"),
)


def single(size: int, channels: int, outputs: int, taps: int) -> bytes:
    """A network of one LceBconv2d, with the shape that kernels_bench runs."""
    return Chain(1, size, size, packed_words(channels), type="INT32").bconv(channels, outputs, taps).bytes()


def own_ops() -> Mapping[str, bytes]:
    """Networks of the ops that litebnn computes itself, without LceBconv2d."""
    networks = {}
    for size, channels in ((56, 64), (28, 128), (14, 256)):
        networks[f"pack {size}"] = Chain(1, size, size, channels).pack().bytes()
        networks[f"unpack {size}"] = Chain(1, size, size, packed_words(channels), type="INT32").unpack(channels).bytes()
        networks[f"pool of signs {size}"] = Chain(1, size, size, channels).pack().max_pool_signs(3, 2).bytes()
        for taps, stride in ((3, 2), (2, 2)):
            pool = Chain(1, size, size, packed_words(channels), type="INT32").unpack(channels)
            networks[f"pool {taps}x{taps} {size}"] = pool.pool("MAX_POOL_2D", taps, stride).bytes()
    return networks


def binary_cycles(facts: BoardFacts, row: Costs) -> Cycles:
    """Fits the costs of LceBconv2d on a board to modelled cycles."""
    target = find_target(facts.board)
    program, counter = build(target) / "bench" / "kernels" / "kernels_bench", Counter(target)
    names = [f"{size},{channels},{outputs},{taps},1,1,1,0" for size, channels, outputs, taps in LAYERS]
    layers = [count_layer(counter, program, facts.isa, name, "layer") for name in names]
    if facts.counted:
        other = find_target("rpi4")
        others = build(other) / "bench" / "kernels" / "kernels_bench"
        modelled = [count_layer(Counter(other), others, facts.counted, name, "layer") for name in names]
        cycles = cycles_of_layers(other, others, modelled, facts.core)
        each = sum(cycles) / sum(layer.instructions for layer in modelled)
        totals = [layer.instructions * each for layer in layers]
    else:
        totals = cycles_of_layers(target, program, layers, facts.core)
    works = [workloads_of(single(*shape), row)[0] for shape in LAYERS]
    found = fit([Network(name, work, total) for name, work, total in zip(names, works, totals, strict=True)], _MEMORY)
    # Only layers with float outputs are modelled. For outputs of other types, the same cost is assumed.
    of_floats = found["LceBconv2d"].get("floats", 0.0)
    found["LceBconv2d"] |= dict.fromkeys(("signs", "int8s", "added floats"), of_floats)
    return found


def counted_instructions() -> dict[str, float]:
    """Instructions per inference of the networks that have no LceBconv2d, on 64-bit Arm."""
    target, suite = find_target("rpi4"), dict(other_networks())
    build(target)
    networks = {**{name: suite[name] for name in COUNTED}, **own_ops()}
    return {name: float(count_network(target, "neon64", model)) for name, model in networks.items()}


def replace_boards(target: str) -> None:
    """Estimates the costs of ops on all boards, and replaces the boards' rows in the table of costs."""
    suite = {**dict(other_networks()), **own_ops()}
    instructions = counted_instructions()
    rows = []
    for facts in BOARDS:
        row = Costs(
            board=facts.board,
            description=find_target(facts.board).description,
            isa=facts.isa,
            needs=(facts.part,),
            ghz=facts.ghz,
            source="modelled by python -m bench.costs.boards",
            error=None,
            tile=facts.tile,
            tables=0,
            shared_tables=0,
            without=None,
            cycles={},
        )
        each = cycles_of(GEMM_LOOP, facts.core) / len(GEMM_LOOP)
        # The function `fitted` expects seconds. Each instruction counts as `each` cycles, and the board's clock
        # converts cycles to seconds.
        seconds = {name: count * each / (facts.ghz * 1e9) for name, count in instructions.items()}
        runtime = fitted({name: suite[name] for name in instructions}, seconds, row, _MEMORY)
        cycles = {**runtime, **binary_cycles(facts, row)}
        for terms in cycles.values():
            terms["bytes past the cache"] = float(f"{facts.ghz / facts.gigabytes:.4g}")
        row = replace(row, cycles=cycles)
        print(facts.board, row.cycles, flush=True)
        rows.append(row)
    kept = [
        row for row in read_costs(FILE.read_text(encoding="utf-8")) if row.board not in {each.board for each in rows}
    ]
    write_whole(FILE, write_costs([*kept, *rows]).encode())


def main() -> int:
    """Runs the command line and returns the exit code."""
    return run(parser("bench.costs.boards", __doc__), replace_boards, None)


if __name__ == "__main__":
    sys.exit(main())
