"""Compares four forms of one small network: float32, two kinds of int8, and 1-bit. Keras and PyTorch each make all
forms.

Usage: invoke compare [--mnist=DIR] [--frameworks=keras,torch] [--epochs=N]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from examples.compare.charts import Results, as_table, draw
from examples.compare.makers import FORMS, FRAMEWORKS, file_name
from examples.compare.measure import measure
from examples.mnist.data import Digits, bundled_digits, mnist

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "build" / "compare"
BENCHMARK_MODEL = ROOT / "build" / "host" / "benchmark_model"
TORCH_PYTHON = ROOT / ".venv-torch" / "bin" / "python"
EPOCHS = 15


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.compare", description="Compare forms of a network.")
    parser.add_argument("--frameworks", default=",".join(FRAMEWORKS), help="of keras and torch, with a comma between")
    parser.add_argument("--mnist", type=Path, help="folder of MNIST's t10k IDX files; by default scikit-learn's digits")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help=f"training epochs (default: {EPOCHS})")
    options = parser.parse_args(arguments)
    frameworks = options.frameworks.split(",")
    for framework in frameworks:
        if framework not in FRAMEWORKS:
            parser.error(f'--frameworks has "{framework}", expected {" or ".join(FRAMEWORKS)}')
    if options.epochs < 1:
        parser.error(f"--epochs is {options.epochs}, expected at least 1")
    console = Console()
    try:
        digits = mnist(options.mnist) if options.mnist else bundled_digits()
        compare(frameworks, digits, options.mnist, options.epochs, console)
    except (ValueError, OSError, ImportError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("compare: interrupted", file=sys.stderr)
        return 130
    return 0


def compare(
    frameworks: list[str], digits: Digits, folder: Path | None, epochs: int, console: Console, output: Path = OUTPUT
) -> Results:
    """Makes the network's four forms (float32, two of int8, 1-bit) with each framework, and measures them.

    Prints a table of the results. Writes the models and the charts to the folder `output`.

    Returns:
        The measured figures of each framework's forms.

    Raises:
        OSError: a framework's process or `benchmark_model` failed.
        ImportError: a framework is not installed.
    """
    names = [(framework, form) for framework in frameworks for form in FORMS]
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output, prefix=".making-") as work, bars(console) as progress:
        for framework in frameworks:
            make(framework, Path(work), folder, epochs, progress)
        for name in names:
            (Path(work) / file_name(*name)).replace(output / file_name(*name))
    with console.status("Measuring …"):
        figures = measure([output / file_name(*name) for name in names], digits, BENCHMARK_MODEL)
    results = dict(zip(names, figures, strict=True))
    console.print(as_table(results))
    for framework in frameworks:
        console.print(verdict(framework, results), highlight=False)
    draw(results, output / "compare.png")
    console.print(f"Charts: {output / 'compare.png'}; models: {output}", highlight=False, soft_wrap=True)
    return results


def bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), console=console
    )


def make(framework: str, work: Path, folder: Path | None, epochs: int, progress: Progress) -> None:
    """Writes one framework's files into the folder `work`, in a process of that framework's environment."""
    python = python_of(framework)
    command = [str(python), "-m", "examples.compare.makers", framework, str(work), f"--epochs={epochs}"]
    command += [f"--mnist={folder.resolve()}"] if folder else []
    tasks = {form: progress.add_task(f"{framework} {form}", total=1.0) for form in FORMS}
    errors = work / f"{framework}.log"
    with errors.open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        reported = ""
        for line in process.stdout:
            message = json.loads(line)
            reported = message.get("error", reported)
            if "form" in message:
                progress.update(tasks[message["form"]], completed=message["done"])
        if process.wait():
            text = errors.read_text(encoding="utf-8", errors="replace").strip()
            if not reported:
                print(text, file=sys.stderr)
                reported = text.rpartition("\n")[2] or f"exit code {process.returncode}"
            raise OSError(f"{framework}: {reported}")


def python_of(framework: str) -> Path:
    """The path of the Python that has the framework: this Python, or that of PyTorch's own environment.

    Raises:
        ImportError: PyTorch's environment does not exist.
    """
    if framework != "torch":
        return Path(sys.executable)
    if not TORCH_PYTHON.is_file():
        raise ImportError(f"there is no {TORCH_PYTHON}: python3 bootstrap.py compare makes it")
    return TORCH_PYTHON


def verdict(framework: str, results: Results) -> str:
    """One line that compares the network's 1-bit form with its float and int8 forms."""
    binary, real = results[framework, "1-bit"], results[framework, "float32"]
    smallest = min(results[framework, form].bytes for form in FORMS if form != "1-bit")
    return (
        f"{framework}: the 1-bit file is {smallest / binary.bytes:.1f} times smaller than the next and "
        f"{real.bytes / binary.bytes:.1f} times smaller than float32; its accuracy is "
        f"{(binary.accuracy - real.accuracy) * 100:+.1f} points beside float32's"
    )


if __name__ == "__main__":
    sys.exit(main())
