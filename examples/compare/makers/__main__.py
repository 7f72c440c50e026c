"""Makes one framework's files. The program `examples.compare` starts this one."""

import argparse
import importlib
import json
import os
import sys
from pathlib import Path

from examples.compare.makers import FRAMEWORKS, file_name
from examples.mnist.data import bundled_digits, mnist


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.compare.makers", description="Make the four forms.")
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mnist", type=Path)
    parser.add_argument("--epochs", type=int, required=True)
    options = parser.parse_args()
    # Exporters print to standard output, so the lines of progress get a copy of its file descriptor.
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def on_progress(form: str, done: float) -> None:
        print(json.dumps({"form": form, "done": round(done, 3)}), file=lines, flush=True)

    try:
        digits = mnist(options.mnist) if options.mnist else bundled_digits()
        maker = importlib.import_module(f"examples.compare.makers.{options.framework}")
        for form, content in maker.make(digits, options.epochs, on_progress):
            (options.folder / file_name(options.framework, form)).write_bytes(content)
            on_progress(form, 1.0)
    except (ImportError, ValueError, OSError) as error:
        print(json.dumps({"error": " ".join(str(error).split())}), file=lines, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
