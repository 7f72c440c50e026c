"""The project's tasks: `invoke --list`. Thin on purpose; the work is in toolchains/, tests/, examples/, converter/."""

import subprocess
import sys
from pathlib import Path

from invoke.context import Context
from invoke.exceptions import Exit
from invoke.tasks import task

ROOT = Path(__file__).resolve().parent


def _python(*arguments: str | Path) -> None:
    """Runs this Python in the project's folder and ends the task where that fails."""
    try:
        code = subprocess.run([sys.executable, *arguments], cwd=ROOT).returncode
    except KeyboardInterrupt:
        code = 130
    if code:
        raise Exit(code=code)


def _paths(**options: str) -> list[str]:
    """Flags for the options that are given, with their paths seen from where the user is."""
    return [f"--{name.replace('_', '-')}={Path(path).absolute()}" for name, path in options.items() if path]


@task(help={"target": "a row of toolchains/targets.toml", "toolchain": "auto, gcc, zig or docker"})
def build(context: Context, target: str = "host", toolchain: str = "auto") -> None:
    """Build the op library: build/TARGET/liblitebnn.so."""
    _python("-m", "toolchains.build", f"--target={target}", f"--toolchain={toolchain}")


@task
def targets(context: Context) -> None:
    """Print the targets, and the compilers and emulators that are here for them."""
    _python("-m", "toolchains.table")


@task
def docker_image(context: Context) -> None:
    """Build the image that `build --toolchain=docker` uses."""
    _python("-m", "toolchains.container")


@task(help={"target": "a row of toolchains/targets.toml", "toolchain": "zig, docker, gcc or auto"})
def wheel(context: Context, target: str = "host", toolchain: str = "zig") -> None:
    """Make the wheel of a platform, with the op library inside: dist/litebnn-VERSION-py3-none-PLATFORM.whl."""
    _python("-m", "toolchains.wheel", f"--target={target}", f"--toolchain={toolchain}")


@task(help={"target": "a row of toolchains/targets.toml", "tflite_dir": "folder of your own build of the C library"})
def runtime(context: Context, target: str = "host", tflite_dir: str = "") -> None:
    """Fetch TensorFlow Lite's C library, for the example programs: build/runtime/TARGET."""
    _python("-m", "toolchains.runtime_library", f"--target={target}", *_paths(tflite_dir=tflite_dir))


@task(help={"target": "a row of toolchains/targets.toml", "toolchain": "auto, gcc, zig or docker"})
def bundle(context: Context, target: str = "host", toolchain: str = "auto") -> None:
    """Pack programs, libraries and an example for a board: dist/litebnn-TARGET.tar.gz."""
    _python("-m", "toolchains.bundle", f"--target={target}", f"--toolchain={toolchain}")


@task(
    help={
        "target": "a row of toolchains/targets.toml",
        "host": "the board: [USER@]HOST[:PORT]",
        "folder": "folder on the board; by default the user's home",
        "identity": "private key file",
        "model": "model to measure; by default the bundle's",
        "num_threads": "threads to run it on",
        "toolchain": "auto, gcc, zig or docker",
    }
)
def deploy(
    context: Context,
    target: str,
    host: str,
    folder: str = ".",
    identity: str = "",
    model: str = "",
    num_threads: int = 1,
    toolchain: str = "auto",
) -> None:
    """Copy the bundle to a board over SSH, measure a model there, and bring the results back."""
    places = [f"--target={target}", f"--host={host}", f"--folder={folder}", *_paths(identity=identity, model=model)]
    _python("-m", "toolchains.deploy", *places, f"--num-threads={num_threads}", f"--toolchain={toolchain}")


@task(help={"mnist": "folder of MNIST's IDX files; by default scikit-learn's digits", "epochs": "training epochs"})
def demo(context: Context, mnist: str = "", epochs: str = "") -> None:
    """Train a small binarized network, convert it, build the library and run it, side by side."""
    build(context)
    _python("-m", "examples.mnist.demo", *_paths(mnist=mnist), *([f"--epochs={epochs}"] if epochs else []))


@task(
    help={
        "target": "a row of toolchains/targets.toml; other than this machine: instruction counts, not times",
        "peer": "also time Larq Compute Engine, in build/peer-venv",
        "threads": "threads to run on",
        "model": "network of larq-zoo, its files in build/zoo (bench/zoo/make_models.py)",
    }
)
def bench(
    context: Context, target: str = "host", peer: bool = False, threads: int = 1, model: str = "QuickNet"
) -> None:
    """Measure the kernels layer by layer and whole models."""
    file = ROOT / "build" / "zoo" / f"{model}.lce.tflite"
    if target != "host":
        counted = [f"--model={file}"] if file.is_file() else []
        _python("-m", "bench.kernels", f"--target={target}", *counted)
        return
    build(context)
    _python("-m", "bench.kernels", f"--threads={threads}")
    _python("-m", "bench.models", model, f"--threads={threads}", *(["--peer"] if peer else []))


@task
def lint(context: Context) -> None:
    """Check style and types: ruff, mypy, clang-format."""
    _python("-m", "ruff", "check", ".")
    _python("-m", "ruff", "format", "--check", ".")
    _python("-m", "mypy")
    sources = [
        path
        for suffix in ("h", "cc", "c")
        for part in ("ops", "bench", "examples")
        for path in (ROOT / part).rglob(f"*.{suffix}")
    ]
    _python("-c", "import sys, clang_format; sys.exit(clang_format.clang_format())", "--dry-run", "--Werror", *sources)


@task(
    help={
        "k": "run only the tests that match, as pytest's -k",
        "long": "also run the tests that take minutes",
        "target": "instead emulate this target: its wheel, the golden models and the C++ tests",
        "runtimes": "instead run the ops' suite in every runtime that litebnn serves, each fetched into build/runtimes",
    }
)
def test(context: Context, k: str = "", long: bool = False, target: str = "host", runtimes: bool = False) -> None:
    """Lint, build for the host, and run all tests."""
    if target != "host":
        _python("-m", "pytest", "tests/emulated", f"--target={target}")
        return
    if runtimes:
        build(context)
        _python("-m", "tests.runtimes.environments")
        return
    lint(context)
    build(context)
    _python("-m", "pytest", *(["-k", k] if k else []), *(["--long"] if long else []))
