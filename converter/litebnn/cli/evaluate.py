"""`litebnn evaluate`: measures the accuracy of models on a data set, on all cores, a cluster, or boards."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from litebnn.cli.parsing import add_command, add_json, at_least, file_path, names_function, not_empty

if TYPE_CHECKING:
    from litebnn.evaluate.metrics import Evaluation
    from litebnn.evaluate.on_boards import Boards

# The number of most frequent confusions that are printed. With --json, all are printed.
_CONFUSIONS = 5
_BATCH_SIZE = 32


def add_to(commands: Any) -> None:
    """Adds the command `litebnn evaluate` to argparse's `commands`."""
    parser = add_command(
        commands,
        "evaluate",
        "measure the accuracy of models on a data set",
        "evaluate binary.tflite float.tflite --data=imagenet/val --preprocess=zoo",
        "evaluate binary.tflite --data=cifar10.npz --workers=4 --json > figures.json",
        "evaluate binary.tflite --data=imagenet/val --boards=pi@kitchen,pi@garden",
        "evaluate binary.tflite --data=my_data:batches --scheduler=tcp://10.0.0.2:8786",
    )
    parser.add_argument("models", type=file_path, nargs="+", metavar="MODEL", help=".tflite file")
    parser.add_argument(
        "--data",
        type=not_empty,
        required=True,
        metavar="SOURCE",
        help="folder of class folders, .npz file, parquet file or folder, or module:function that yields batches",
    )
    parser.add_argument(
        "--preprocess",
        type=not_empty,
        default="auto",
        metavar="RECIPE",
        help="auto, none, [-1,1], [0,1], zoo, MEAN/STD such as 127.5/127.5, or module:function",
    )
    parser.add_argument(
        "--batch-size",
        type=at_least(1),
        metavar="N",
        help=f"number of samples that a process takes at a time, {_BATCH_SIZE}",
    )
    parser.add_argument(
        "--workers",
        type=at_least(0),
        metavar="N",
        help="number of processes, by default one for each core; 0 to use only this process",
    )
    parser.add_argument(
        "--scheduler",
        type=not_empty,
        metavar="ADDRESS",
        help="address of a running Dask cluster, whose workers run the models",
    )
    parser.add_argument(
        "--boards",
        type=not_empty,
        metavar="A,B,C",
        help="run on these boards over SSH, each [USER@]HOST[:PORT], with a bundle unpacked",
    )
    parser.add_argument(
        "--board-folder",
        type=not_empty,
        metavar="DIR",
        help="folder on the boards with the bundle; by default the home folder",
    )
    parser.add_argument("--identity", type=file_path, metavar="FILE", help="private key for the boards")
    parser.add_argument(
        "--accept-host-key",
        type=not_empty,
        metavar="SHA256:…",
        help="fingerprints of the host keys of boards that are not known yet",
    )
    parser.add_argument(
        "--partial",
        type=file_path,
        metavar="FILE",
        help="file that keeps the results during the run; by default a name made from the job",
    )
    of_boards = "--board-folder", "--identity", "--accept-host-key"
    parser.only_if(lambda options: options.boards, "is for boards: name them with --boards", *of_boards)
    parser.only_if(
        lambda options: not names_function(options.data),
        "is not for a function, whose batches stay as they are",
        "--batch-size",
    )
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from litebnn.cli.output import print_json
    from litebnn.cli.progress import counting
    from litebnn.errors import printable
    from litebnn.evaluate.run import evaluate_models

    with counting("images") as (progress, say):
        evaluation = evaluate_models(
            options.models,
            options.data,
            preprocess=options.preprocess,
            batch_size=options.batch_size or _BATCH_SIZE,
            workers=options.workers,
            scheduler=options.scheduler,
            boards=_boards(options),
            partial=options.partial or True,
            progress=progress,
            on_warning=lambda line: say(f"litebnn: {printable(line)}"),
        )
    if options.json:
        print_json(evaluation.to_dict())
    else:
        _print(evaluation)


def _boards(options: argparse.Namespace) -> Boards | None:
    from litebnn.evaluate.on_boards import Boards

    if options.boards is None:
        return None
    return Boards(
        options.boards.split(","), options.identity, options.accept_host_key or "", options.board_folder or "."
    )


def _print(evaluation: Evaluation) -> None:
    from litebnn.cli.output import print_table
    from litebnn.errors import printable

    counts, numbers = evaluation.counts, range(len(evaluation.models))
    same = [f"same as {i + 1}" for i in numbers] if len(numbers) > 1 else []
    columns = ["model", "top-1", "top-5", "ms/image", *same]
    rows = [
        (
            name,
            _percent(evaluation.top_1(i)),
            _percent(evaluation.top_5(i)),
            f"{1000 * counts.models[i].seconds / counts.samples:.2f}",
            *(_percent(evaluation.agreement(i, j)) for j, _ in enumerate(same)),
        )
        for i, name in enumerate(evaluation.models)
    ]
    print_table(columns, rows, numbers=columns[1:])
    for i, model in enumerate(evaluation.models):
        wrong = sorted((-count, label, one) for label, one, count in evaluation.confusion(i) if label != one)
        for count, label, one in wrong[:_CONFUSIONS]:
            names = [evaluation.classes.get(each, str(each)) for each in (label, one)]
            print(printable(f"· {model} takes {-count} of {names[0]} for {names[1]}"))
    left_out = f", {len(evaluation.left_out)} left out" if evaluation.left_out else ""
    rate = f"{evaluation.images_per_second:.1f} images/s"
    print(f"{counts.samples} images{left_out}, {evaluation.seconds:.1f} s, {rate}")


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f} %"
