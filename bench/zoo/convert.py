"""Converts networks of larq-zoo with litebnn, and quantizes their float files for XNNPACK."""

from pathlib import Path
from typing import Any

import numpy as np

from bench.zoo import model_file
from litebnn.analysis.quantization import parameters_of_range
from litebnn.convert import convert_tflite
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Graph, begin_rewriting, derived, facts, finish_rewriting, like
from litebnn.quantize.calibration import observe_ranges
from litebnn.rules.build.int8 import dequantize_op, quantize_op
from litebnn.rules.build.notes import Notes
from litebnn.rules.phases import run_phases

SAMPLES = 2  # random images that calibrate the ranges of int8 tensors


def convert_network(name: str, *, int8: bool = False) -> Path:
    """Converts a network and returns the new file, NAME.litebnn.tflite.

    With `int8`, layers that are not binary become int8, and the file is NAME.int8.tflite.
    """
    source = model_file(name, "float")
    path = source.with_name(f"{name}.{'int8' if int8 else 'litebnn'}.tflite")
    options: dict[str, Any] = {"representative_dataset": _images()} if int8 else {}
    path.write_bytes(convert_tflite(source, **options))
    return path


def quantize_network(name: str) -> Path:
    """Quantizes all layers of a network to int8, the binary ones too. Returns the new file, NAME.quantized.tflite.

    The file has only builtin ops. Ops without an int8 form, such as SIGN, stay float. If a layer reads the output of
    such an op, values beyond -1 and 1 are clamped. The file is only for measuring time.
    """
    source = model_file(name, "float")
    path = source.with_name(f"{name}.quantized.tflite")
    model = read_model(source.read_bytes())
    begin_rewriting(model)
    for graph in model.graphs:
        _quantize_inputs(graph)
    notes = Notes(model, ranges=observe_ranges(model, _images()))
    run_phases(model, ("without_bits", "quantize", "int8", "tidy"), notes)
    finish_rewriting(model)
    path.write_bytes(write_model(model))
    return path


def _quantize_inputs(graph: Graph) -> None:
    """Quantizes the inputs of layers that ops without an int8 form write."""
    for op in [op for op in graph.ops if facts(op).layer]:
        values = op.input(facts(op).data)
        writer = graph.producer(values)
        if writer is None or facts(writer).int8 is not None:
            continue
        grid = parameters_of_range(-1.0, 1.0)
        levels = like(values, derived(values.name, "/levels"), type="INT8", quantization=grid)
        back = like(values, derived(values.name, "/numbers"))
        graph.insert(quantize_op(values, levels), before=op)
        graph.insert(dequantize_op(levels, back), before=op)
        graph.set_input(op, facts(op).data, back)


def _images() -> list[Any]:
    return list(np.random.default_rng(5).standard_normal((SAMPLES, 1, 224, 224, 3)).astype(np.float32))
