"""Checks that install a wheel: with pip for other platforms, and in a fresh environment on this machine."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from toolchains.release.products import Failed, Product, Skipped, expect
from toolchains.targets import ROOT, VERSION, read_toml

# A platform for which litebnn publishes no wheel.
FOREIGN = "manylinux_2_28_s390x"
EXAMPLE = ROOT / "tests" / "golden" / "1x1"
# The first three lines of Python of a new user. They run the golden model that EXAMPLE names.
THREE_LINES = """\
import litebnn, numpy
example = numpy.load("example.npz")
outputs = litebnn.Interpreter("example.lce.tflite").predict(example["input"])
"""
CHECK = """
import json, pathlib, sys
difference = float(abs(outputs - example["lce"][: len(outputs)]).max() / abs(example["lce"]).max())
print(json.dumps([difference, str(pathlib.Path(litebnn.__file__).resolve()), sys.prefix]))
"""
SECONDS = 900


def pythons() -> list[str]:
    """The versions of Python that pyproject.toml names."""
    words = (text.rpartition(" ")[2] for text in read_toml(ROOT / "pyproject.toml")["project"]["classifiers"])
    return [word for word in words if word.startswith("3.")]


def interpreters() -> dict[str, str]:
    """The paths of this machine's interpreters for the project's versions of Python, by version."""
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    programs = {version: shutil.which(f"python{version}") for version in pythons()} | {here: sys.executable}
    return {version: program for version, program in programs.items() if program}


def _pip(python: str | Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


def _resolves(wheel: Path, platform: str, python: str) -> bool:
    """True if pip selects this wheel from its folder, when pip is asked for another platform and Python."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy2(wheel, folder)
        choice = ["--no-deps", "--only-binary=:all:", "--no-index", f"--find-links={folder}", "--dry-run"]
        of = [f"--platform={platform}", f"--python-version={python}", f"--target={folder}/installed"]
        run = _pip(sys.executable, "install", "--quiet", "--report=-", *choice, *of, f"litebnn=={VERSION}")
        return run.returncode == 0 and wheel.name in run.stdout


def tags(product: Product, file: Path) -> str:
    """pip takes the wheel for each supported Python on the platform in the wheel's name, and for no other platform."""
    platform = file.stem.rpartition("-")[2]
    expect(platform == product.target.wheel, f"expected the tag {product.target.wheel}, found {platform}")
    refused = [python for python in pythons() if not _resolves(file, platform, python)]
    expect(not refused, f"pip for {platform} does not take it for Python {', '.join(refused)}")
    expect(not _resolves(file, FOREIGN, pythons()[0]), f"pip takes it for {FOREIGN} too")
    return f"Python {', '.join(pythons())} on {platform}"


@contextmanager
def _environment(
    product: Product, file: Path, extra: str = "", interpreter: str = sys.executable
) -> Iterator[tuple[Path, Path]]:
    """Yields the folder of a fresh environment with the wheel, and its Python. Skips the check unless the wheel is for
    this machine."""
    from packaging.tags import sys_tags
    from packaging.utils import parse_wheel_filename

    if not parse_wheel_filename(file.name)[3] & set(sys_tags()):
        raise Skipped(f"this machine is not {product.target.name}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run([interpreter, "-m", "venv", folder / "venv"], check=True)
        python = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        done = _pip(python, "install", "--quiet", "--only-binary=:all:", f"{file}{extra}")
        expect(done.returncode == 0, f"pip install: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
        yield folder, python


def _run(python: Path, arguments: Sequence[str | Path], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs the environment's Python, without the variables that configure the Python of this process."""
    ours = ("PYTHON", "LITEBNN", "TF_USE_LEGACY_KERAS", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    path = os.pathsep.join([str(python.parent), environment["PATH"]])
    return subprocess.run(
        [str(python), *map(str, arguments)],
        cwd=folder,
        env=environment | {"PATH": path, **more},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def three_lines(product: Product, file: Path) -> str:
    """After `pip install` of only the wheel, three lines of Python run a model, with each Python of this machine."""
    largest = {version: _difference(product, file, program) for version, program in interpreters().items()}
    return f"Python {', '.join(largest)}, output within {max(largest.values()):.1g}"


def _difference(product: Product, file: Path, interpreter: str) -> float:
    """Runs THREE_LINES, a short Python program that runs a recorded model, in a fresh environment. Returns the largest
    difference of its output from the recorded output.
    """
    with _environment(product, file, interpreter=interpreter) as (folder, python):
        shutil.copy2(f"{EXAMPLE}.npz", folder / "example.npz")
        shutil.copy2(f"{EXAMPLE}.lce.tflite", folder / "example.lce.tflite")
        run = _run(python, ["-c", THREE_LINES + CHECK], folder)
        if run.returncode:
            raise Failed(f"{interpreter}: {(run.stderr.strip().splitlines() or ['failed'])[-1]}")
        difference, package, prefix = json.loads(run.stdout.splitlines()[-1])
        expect(Path(package).is_relative_to(prefix), f"litebnn was imported from {package}")
        expect(difference < 1e-4, f"the model's output differs by {difference:g}")
        return float(difference)


def readme(product: Product, file: Path) -> str:
    """Runs README's Python example and its command in a fresh environment with the wheel and its extra `keras`."""
    from tests.support.documents import blocks

    chosen = [block for block in blocks("README.md") if block.language == "python" and not block.not_run]
    with _environment(product, file, "[keras]") as (folder, python):
        shutil.copy2(ROOT / "tests" / "golden" / "conv_pool_bn_conv.lce.tflite", folder / "model.tflite")
        text = "\n".join(f"{block.given}\n{block.text}" for block in chosen)
        for what, arguments in {
            "its Python": ["-c", text],
            "litebnn --version": ["-m", "litebnn", "--version"],
        }.items():
            run = _run(python, arguments, folder)
            expect(run.returncode == 0, f"{what}: {(run.stderr.strip().splitlines() or ['failed'])[-1]}")
        expect(VERSION in run.stdout, f"litebnn --version says {run.stdout.strip()}")
    return f"{len(chosen)} blocks of Python, litebnn --version"
