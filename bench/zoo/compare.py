"""Converts the networks that make_models.py wrote, and sets the result beside larq-compute-engine's.

    python -m bench.zoo.compare [NAME ...]

For each model: the conversion's time and peak memory, the differences of the outputs to the float model's (a sign
of a value next to zero may turn over with rounding, and a network of random weights makes much of it), and
file sizes and binary multiply-accumulates here and there. It ends with exit code 1 where a model fails.
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
from litebnn.report.divergence import LayerComparison, difference
from litebnn.report.folded_weights import with_folded_weights
from litebnn.report.macs import Macs, count_macs
from litebnn.runtime import Interpreter

LARGEST_DIFFERENCE = 1e-3
SAMPLES = 6
COLUMNS = (
    "| model | convert s | peak MB | samples within 1e-3 | a sign turned by rounding | median difference "
    "| bytes | bytes LCE | binary MACs | binary MACs LCE | other MACs | other MACs LCE |"
)


def convert(path: Path, queue: "multiprocessing.Queue[tuple[bytes, float, int, list[str]]]") -> None:
    """In a process of its own, for the peak of memory to be its own."""
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
    """The model up to its logits: a softmax of values far apart would hide every difference."""
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
        places = [layers.first_divergence([sample]) for sample in wrong]
        turned = sum(place is not None and place.by_rounding for place in places)
        ours, facts = count_macs(converted), json.loads((ZOO / f"{name}.json").read_text())
        peer_path = ZOO / f"{name}.lce.tflite"
        peer, peer_bytes = Macs(0, 0, 0), 0
        if peer_path.exists():
            peer, peer_bytes = count_macs(peer_path.read_bytes()), peer_path.stat().st_size
        print(
            f"| {name} | {seconds:.1f} | {peak} | {SAMPLES - len(wrong)} of {SAMPLES} | {turned} "
            f"| {np.median(gaps):.1e} | {len(converted):,} | {peer_bytes:,} "
            f"| {ours.binary:,} | {peer.binary:,} | {ours.other:,} | {peer.other:,} |",
            flush=True,
        )
        for line in why:
            print(f"  {line}")
        if facts["lce_error"]:
            print(f"  larq-compute-engine refuses it: {facts['lce_error']}")
        failed |= turned < len(wrong) or len(wrong) == SAMPLES or ours.binary < peer.binary
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
