"""`litebnn compare`: differences of two models in outputs, layer by layer, in size and in time."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from litebnn.cli.parsing import add_command, add_json, at_least, file_path, not_negative
from litebnn.errors import ConversionError, boundary, printable

if TYPE_CHECKING:
    from litebnn.benchmark import Measurement
    from litebnn.report.comparison import Comparison
    from litebnn.verify.divergence import Divergence

_DIFFERS = 2
_FIRST_LAYERS = 12
_SAMPLES = 4
_SIZES = ("", "bytes", "binary MACs", "int8 MACs", "float MACs", "median ms", "peak MiB")
_LAYERS = ("layer", "differs", "distance", "on average", "samples")


def add_to(commands: Any) -> None:
    """Adds the command `litebnn compare` to argparse's `commands`."""
    parser = add_command(
        commands,
        "compare",
        "compare two models: outputs, layers, size and time",
        "compare float.tflite binary.tflite",
        "compare before.tflite after.tflite --input images.npz --tolerance 1e-3",
        "compare a.tflite b.tflite --seed 7 --samples 20 --runs 0 --json > differences.json",
    )
    parser.add_argument("first", type=file_path, metavar="A", help=".tflite file")
    parser.add_argument("second", type=file_path, metavar="B", help=".tflite file to compare with the first one")
    parser.add_argument(
        "--input",
        type=file_path,
        metavar="FILE",
        help=".npy or .npz file, batch first: an array for each input, by name or in order",
    )
    parser.add_argument("--seed", type=at_least(0), metavar="N", help="seed of the random inputs (0)")
    parser.add_argument("--samples", type=at_least(1), metavar="N", help=f"number of random inputs ({_SAMPLES})")
    parser.only_if(
        lambda options: options.input is None, "is for random inputs: leave --input out", "--seed", "--samples"
    )
    parser.add_argument(
        "--runs", type=at_least(0), default=20, metavar="N", help="number of timed runs of each model (20)"
    )
    parser.add_argument(
        "--tolerance",
        type=not_negative,
        metavar="X",
        help=f"exit with {_DIFFERS} if an output differs by more than X times its largest value",
    )
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from litebnn.benchmark import Contender, measure
    from litebnn.cli.output import print_json
    from litebnn.cli.progress import progress
    from litebnn.cli.shared import by_input, read_arrays
    from litebnn.files import read_file
    from litebnn.flatbuffer import read_strictly
    from litebnn.report.comparison import compare_models, open_shapes
    from litebnn.safety import check_model

    paths = options.first, options.second
    contents = []
    for path in paths:
        contents.append(read_file(path))
        try:
            with boundary():
                check_model(read_strictly(contents[-1]))
        except ConversionError as error:
            raise ConversionError(f"{path}: {error}") from error
    inputs = None if options.input is None else by_input(read_arrays(options.input), contents[0])
    with progress("comparing") as show:
        comparison = compare_models(
            contents[0], contents[1], inputs, samples=options.samples or _SAMPLES, seed=options.seed or 0
        )
        times = []
        if options.runs:
            shapes = open_shapes(contents[0], inputs)
            contenders = [Contender(path, input_shapes=shapes) for path in paths]
            times = measure(contenders, runs=options.runs, ops=False, progress=show)
    if options.json:
        measurements = [one.to_dict() for one in times]
        print_json({"models": [str(path) for path in paths], **comparison.to_dict(), "measurements": measurements})
    else:
        _print([str(path) for path in paths], comparison, times)
    differs = options.tolerance is not None and not comparison.difference <= options.tolerance
    return _DIFFERS if differs else 0


def _print(names: list[str], comparison: Comparison, times: list[Measurement]) -> None:
    from litebnn.cli.output import print_table

    rows = []
    for place, name in enumerate(names):
        figures = [f"{count:,}" for count in (comparison.bytes[place], *comparison.macs[place])]
        measured = [f"{one.median * 1e3:.3f}, {one.peak_memory_bytes / 2**20:.1f}" for one in times[place : place + 1]]
        rows.append([name, *figures, *(measured[0].split(", ") if measured else ("", ""))])
    print_table(_SIZES, rows, numbers=_SIZES[1:])
    samples = "1 sample" if comparison.samples == 1 else f"{comparison.samples} samples"
    print()
    for output in comparison.outputs:
        line = f'output "{printable(output.name)}": off by {output.difference:.1e} of its largest value in {samples}'
        classes = "" if output.same_class is None else f"; the largest value is the same in {output.same_class:.0%}"
        print(line + classes)
    common = f"of the {comparison.common_layers} layers that both models have"
    if not comparison.layers:
        print(f"none {common} differs")
        return
    print(f"{len(comparison.layers)} {common} differ, these first:\n")
    print_table(_LAYERS, map(_layer_row, comparison.layers[:_FIRST_LAYERS]), numbers=_LAYERS[1:])


def _layer_row(layer: Divergence) -> list[str]:
    from litebnn.report.op_properties import short_name

    samples = str(layer.samples)
    if not layer.flipped:
        return [short_name(layer.layer), f"{layer.difference:.1e}", "", "", samples]
    distances = [f"{distance:.1e}" for distance in (layer.distance, layer.mean_distance)]
    return [short_name(layer.layer), f"{layer.flipped:,} of {layer.signs:,} signs", *distances, samples]
