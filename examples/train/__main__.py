"""Trains a binarized network on a folder of images, and converts it.

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
