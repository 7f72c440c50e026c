"""Runs randomly damaged .tflite files in a runtime. The runtime must run each file or refuse it with a message, and
take little time.

Usage:

    python -m tests.runtimes.mutants --count=500

ops/tests/mutation_test.cc does the same faster in a fake runtime. This script uses real runtimes, best with a library
built with sanitizers. The environment variables LITEBNN_RUNTIME and LITEBNN_LIBRARY have the same meaning as in
suite.py.
"""

import argparse
import math
import sys
import time
from typing import Any

import numpy as np

from tests.runtimes.backends import Refused, backend
from tests.support import lce_models
from tests.support.lce_models import Conv

EXTREMES = (0, 1, -1, 2, 31, 32, 33, 255, 65536, 2**20, 2**31 - 2, 2**31 - 1)
# A model is skipped if a tensor's number of values lies between these limits. The ops accept such a model, but running
# it takes long.
LARGEST_TO_RUN, SMALLEST_TO_REFUSE = 2**16, 2**31
MAX_SECONDS = 1.0


def random_model(rng: np.random.Generator) -> Any:
    """A small well-formed model, as an object of the schema."""

    def pick(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    kind = pick(0, 4)
    dtypes = ("float32", "int8", "bool")
    if kind == 0:
        content = lce_models.quantize_model((pick(1, 3), pick(1, 4), pick(1, 70)), dtypes[pick(0, 2)], 0.5, 3)
    elif kind == 1:
        content = lce_models.dequantize_model((pick(1, 3), pick(1, 4), pick(1, 70)), dtypes[pick(0, 2)], 0.5, 3)
    elif kind == 2:
        size = (1, pick(3, 6), pick(3, 6), pick(1, 3))
        content = lce_models.bmaxpool_model(size, (pick(1, 3), pick(1, 3)), (pick(1, 3), pick(1, 3)), pick(0, 1))
    else:
        output = ("float32", "int8", "packed")[pick(0, 2)]
        content = Conv(
            (1, pick(3, 6), pick(3, 6), 2 * pick(1, 40)),
            pick(1, 40),
            (pick(1, 3), pick(1, 3)),
            padding=pick(0, 1),
            pad_values=pick(0, 1),
            output=output,
            seed=pick(0, 2**30),
        ).model()
    return lce_models.schema.ModelT.InitFromObj(lce_models.schema.Model.GetRootAs(content, 0))


def damage(model: Any, values: dict[str, int], rng: np.random.Generator) -> None:
    """Makes one random change in the model, whose op has the options `values`."""
    graph = model.subgraphs[0]
    operator = graph.operators[0]
    tensor = graph.tensors[rng.integers(len(graph.tensors))]
    buffer = model.buffers[tensor.buffer]
    options = bytes(operator.customOptions) if operator.customOptions is not None else b""
    extreme = int(rng.choice(EXTREMES))

    def set_options(content: bytes) -> None:
        operator.customOptions = np.frombuffer(content, np.uint8)

    match int(rng.integers(9)):
        case 0 if options:
            set_options(options[: rng.integers(len(options))])
        case 1 | 2 if options:
            changed = bytearray(options)
            changed[rng.integers(len(changed))] = rng.integers(256)
            set_options(bytes(changed))
        case 3 if len(tensor.shape):
            tensor.shape = list(tensor.shape)
            tensor.shape[rng.integers(len(tensor.shape))] = extreme
        case 4:
            tensor.type = int(rng.choice(list(lce_models.TYPES.values())))
        case 5:
            tensor.quantization = lce_models.schema.QuantizationParametersT()
            tensor.quantization.scale = [float(rng.choice([0, -1, 1e-40, 3e38, math.inf, math.nan]))]
            tensor.quantization.zeroPoint = [extreme]
        case 6 if buffer.data is not None:
            buffer.data = np.frombuffer(rng.bytes(int(rng.integers(1, 200))), np.uint8)
        case 7:
            operator.inputs = list(operator.inputs)
            operator.inputs[rng.integers(len(operator.inputs))] = int(rng.integers(-1, len(graph.tensors)))
        case _ if values:
            values[str(rng.choice(list(values)))] = extreme
            set_options(bytes(lce_models.flexbuffers.Dumps(values)))


def mutant(seed: int) -> tuple[bytes, Any]:
    """The file of a damaged model, and the model as an object."""
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    options = model.subgraphs[0].operators[0].customOptions
    values = lce_models.flexbuffers.Loads(bytes(options)) if options is not None and len(options) else {}
    for _ in range(rng.integers(1, 4)):
        damage(model, values, rng)
    builder = lce_models.flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output()), model


def largest_tensor(model: Any) -> int:
    """The number of values in the largest tensor."""
    return max(math.prod(max(int(size), 1) for size in tensor.shape) for tensor in model.subgraphs[0].tensors)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="tests.runtimes.mutants", description="Run damaged models.")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    runtime = backend()
    ran = refused = silent = 0
    slowest = 0.0
    for seed in range(options.seed, options.seed + options.count):
        content, model = mutant(seed)
        largest = largest_tensor(model)
        if LARGEST_TO_RUN < largest < SMALLEST_TO_REFUSE:
            continue
        tensor = model.subgraphs[0].tensors[0]
        shape = [int(size) for size in tensor.shape]
        for interface in runtime.interfaces:
            # The seed is printed before the run, so that it is known if the process crashes.
            print(f"\rseed {seed} {interface:14}", end="", file=sys.stderr, flush=True)
            begin = time.process_time()
            try:
                if largest < SMALLEST_TO_REFUSE and min(shape, default=1) > 0:
                    runtime.session(content, interface)(np.zeros(shape, _dtype(tensor.type)))
                else:
                    runtime.prepare(content, interface)
                ran += 1
            except Refused as refusal:
                refused += bool(str(refusal))
                silent += not str(refusal)
            seconds = time.process_time() - begin
            slowest = max(slowest, seconds)
    print(f"\n{options.count} models: {ran} runs, {refused} refusals, {silent} without a word; slowest {slowest:.3f} s")
    return 1 if silent or slowest > MAX_SECONDS else 0


def _dtype(code: int) -> Any:
    """For each TensorType, the type of NumPy."""
    return {code: np.dtype(name) for name, code in lce_models.TYPES.items()}[code]


if __name__ == "__main__":
    sys.exit(main())
