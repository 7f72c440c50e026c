"""Trains a binarized network on a folder of images with Keras or PyTorch, and converts it.

`recipe.py` has the order of the work, which is the same for both frameworks, as are the options, images and
checkpoints. An engine has what differs: the network, one training step, and the conversion.

Usage: python -m examples.train --data=FOLDER --output=FOLDER [OPTIONS]
"""

import sys

from examples.train.options import parse
from examples.train.recipe import train


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        train(options)
    except (ValueError, OSError, ImportError) as error:
        print(f"train: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"train: interrupted; the same command continues from {options.output}", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
