"""`litebnn zoo`: lists pretrained networks, or writes one as a converted .tflite file with labels and preprocessing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litebnn.cli.parsing import add_command, add_json, file_path, not_empty

if TYPE_CHECKING:
    from litebnn.report.conversion import ConversionReport

_PRETRAINED, _RANDOM = "imagenet", "random"


def add_to(commands: Any) -> None:
    """Adds the command `litebnn zoo` to argparse's `commands`."""
    parser = add_command(
        commands,
        "zoo",
        "list pretrained networks, or write one as a .tflite file",
        "zoo",
        "zoo quicknet -o quicknet.tflite",
        "zoo quicknet -o quicknet.tflite --weights quicknet_weights.h5",
        "zoo birealnet -o birealnet.tflite --int8 imagenet/train",
    )
    parser.add_argument(
        "network",
        type=not_empty,
        nargs="?",
        metavar="NETWORK",
        help="name of the network; without a name, all networks are listed",
    )
    parser.add_argument("-o", "--output", type=file_path, metavar="OUT", help=".tflite file to write")
    parser.add_argument(
        "--weights",
        type=not_empty,
        default=None,
        metavar="FILE",
        help="weights file; by default those pretrained on ImageNet, which are fetched once; random for random ones",
    )
    parser.add_argument(
        "--labels",
        type=file_path,
        metavar="FILE",
        help="file with the names of the classes, one for each line; by default ImageNet's",
    )
    parser.add_argument(
        "--int8",
        type=not_empty,
        metavar="SOURCE",
        help="convert the layers that are not binary to int8, with ranges from these images: "
        "a data set as for litebnn evaluate --data",
    )
    add_json(parser)
    options = "--output", "--weights", "--labels", "--int8"
    parser.only_if(lambda options: options.network, "is for one network, which is not named", *options)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from litebnn.zoo.networks import find_network

    if options.network is None:
        _list(options.json)
        return
    network = find_network(options.network)
    if options.output is None:
        raise ValueError(f"-o is missing: expected the name of a .tflite file to write {network.command} to")
    _write(network.command, options)


def _list(as_json: bool) -> None:
    from litebnn.cli.output import print_json, print_table
    from litebnn.zoo.figures import figures
    from litebnn.zoo.networks import NETWORKS

    if as_json:
        print_json(
            {
                network.command: {
                    "name": network.name,
                    "top_1": network.top_1,
                    "top_5": network.top_5,
                    "paper": network.paper.address,
                    "weights": network.address(),
                    **vars(figures()[network.name]),
                }
                for network in NETWORKS.values()
            }
        )
        return
    boards = list(next(iter(figures().values())).seconds)
    header = ["network", "top-1 %", "top-5 %", "binary MACs", "other MACs", "file", *boards]
    print_table(header, map(_row, NETWORKS.values()), numbers=header[1:])
    print("· times are estimates for one inference with one thread")
    print("· litebnn zoo NETWORK -o FILE fetches and converts one")


def _row(network: Any) -> list[str]:
    from litebnn.report.units import amount
    from litebnn.zoo.figures import figures

    found = figures()[network.name]
    return [
        network.command,
        f"{network.top_1:.1f}",
        f"{network.top_5:.1f}",
        amount(found.binary_macs),
        amount(found.other_macs),
        amount(found.bytes, "B"),
        *(amount(seconds, "s") for seconds in found.seconds.values()),
    ]


def _write(name: str, options: argparse.Namespace) -> None:
    from litebnn.cli.output import print_json
    from litebnn.cli.progress import progress
    from litebnn.evaluate.data_set import DataSet
    from litebnn.files import check_destination, write_whole
    from litebnn.zoo.convert import convert_network
    from litebnn.zoo.fetch import fetch_weights
    from litebnn.zoo.networks import find_network

    weights = Path(options.weights) if options.weights not in (None, _RANDOM) else None
    check_destination(options.output, ".tflite", weights, options.labels)
    labels = _labels(options.labels) if options.labels else ()
    if options.weights is None:
        if labels:
            raise ValueError("--labels is for --weights of your own: pretrained networks have ImageNet's classes")
        weights = fetch_weights(find_network(name))  # precedes the progress line, because fetching draws a progress bar
    with progress(f"building {name}") as show:
        converted, report = convert_network(
            name,
            weights=weights if options.weights is not None else _PRETRAINED,
            labels=labels,
            representative_dataset=None if options.int8 is None else DataSet(options.int8, "zoo"),
            verify=True,
            progress=lambda step: show(step.replace("_", " ")),
        )
    write_whole(options.output, converted)
    if options.json:
        print_json(report.to_dict())
    else:
        _print(options, report)


def _labels(file: Path) -> tuple[str, ...]:
    """The labels in a file, one a line.

    Raises:
        ValueError: the file has no labels, or is no text in UTF-8.
    """
    from litebnn.files import read_file
    from litebnn.flatbuffer.metadata import labels_in

    labels = labels_in(read_file(file), str(file))
    if not labels:
        raise ValueError(f"{file} has no labels")
    return labels


def _print(options: argparse.Namespace, report: ConversionReport) -> None:
    for remark in report.remarks():
        print(f"· {remark}")
    print(report.summary())
    if options.weights == _RANDOM:
        print("· the weights are random: the network is for measuring, and what it says of an image means nothing")
    print(f"· next: label_image --tflite_model {options.output} --image PHOTO --lcompute 1")
