"""Converts the networks of make_models.py, and compares the results with those of Larq Compute Engine.

Usage:

    python -m bench.zoo.compare [NAME ...]

NAME is a network; the default is all. For each network the command prints the conversion's time and peak memory, file
sizes, binary multiply-adds, and the differences of outputs from the float model's. Rounding may flip the sign of a
value next to zero, and with random weights this changes outputs much. The exit code is 1 if outputs differ for other
reasons or in all samples. It is also 1 if a network has fewer binary multiply-adds than Larq Compute Engine's.
"""

import json
import multiprocessing
import re
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from bench.zoo import ZOO
from litebnn.convert import convert_tflite
from litebnn.flatbuffer import read_model, write_model
from litebnn.report.macs import Macs, count_macs
from litebnn.runtime import Interpreter
from litebnn.verify.divergence import LayerComparison, difference
from litebnn.verify.folded_weights import with_folded_weights

LARGEST_DIFFERENCE = 1e-3
SAMPLES = 6
COLUMNS = (
    "| model | convert s | peak MB | samples within 1e-3 | a sign flipped by rounding | median difference "
    "| bytes | bytes LCE | binary MACs | binary MACs LCE | other MACs | other MACs LCE |"
)


def convert(path: Path, queue: "multiprocessing.Queue[tuple[bytes, float, int, list[str]]]") -> None:
    """Converts a network. Runs in a separate process, whose peak memory is that of the conversion."""
    started = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        converted, report = convert_tflite(path, return_report=True)
    seconds = time.monotonic() - started
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    why = [f"{layer.name}: {'; '.join(layer.reasons)}" for layer in report.layers if not layer.binary]
    queue.put((converted, seconds, peak, why if caught else []))


def without_softmax(model: bytes) -> bytes:
    """Removes a final softmax, which would hide differences between logits that are far apart."""
    graph = read_model(model)
    last = graph.graphs[0].producer(graph.graphs[0].outputs[0])
    if last is None or last.name != "SOFTMAX":
        return model
    graph.graphs[0].outputs = [last.input(0)]
    graph.signatures = None
    return write_model(graph)


def main() -> int:
    names = sys.argv[1:] or sorted(path.name.split(".")[0] for path in ZOO.glob("*.float.tflite"))
    failed = False
    print(COLUMNS)
    print(re.sub(r"[^|]+", "---", COLUMNS))
    context = multiprocessing.get_context("spawn")
    for name in names:
        path = ZOO / f"{name}.float.tflite"
        queue = context.Queue()
        process = context.Process(target=convert, args=(path, queue))
        process.start()
        converted, seconds, peak, why = queue.get()
        process.join()
        (ZOO / f"{name}.litebnn.tflite").write_bytes(converted)

        source = with_folded_weights("compare", path.read_bytes())
        interpreters = [Interpreter(without_softmax(model)) for model in (source, converted)]
        x = np.random.default_rng(0).standard_normal((SAMPLES, *interpreters[0].input_shapes[0][1:])).astype(np.float32)
        outputs = (interpreter.predict(x) for interpreter in interpreters)
        pairs = list(zip(*outputs, strict=True))
        gaps = np.array([difference(*pair) if np.all(np.isfinite(pair)) else np.inf for pair in pairs])
        wrong = [x[i : i + 1] for i in np.flatnonzero(gaps > LARGEST_DIFFERENCE)]
        layers = LayerComparison("compare", source, converted)
        divergences = [layers.first_divergence([sample]) for sample in wrong]
        flipped = sum(divergence is not None and divergence.by_rounding for divergence in divergences)
        ours, facts = count_macs(converted), json.loads((ZOO / f"{name}.json").read_text())
        peer_path = ZOO / f"{name}.lce.tflite"
        peer, peer_bytes = Macs(0, 0, 0), 0
        if peer_path.exists():
            peer, peer_bytes = count_macs(peer_path.read_bytes()), peer_path.stat().st_size
        print(
            f"| {name} | {seconds:.1f} | {peak} | {SAMPLES - len(wrong)} of {SAMPLES} | {flipped} "
            f"| {np.median(gaps):.1e} | {len(converted):,} | {peer_bytes:,} "
            f"| {ours.binary:,} | {peer.binary:,} | {ours.other:,} | {peer.other:,} |",
            flush=True,
        )
        for line in why:
            print(f"  {line}")
        if facts["lce_error"]:
            print(f"  larq-compute-engine refuses it: {facts['lce_error']}")
        failed |= flipped < len(wrong) or len(wrong) == SAMPLES or ours.binary < peer.binary
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
