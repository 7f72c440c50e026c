"""The project's tasks, as `invoke --list` shows them: each calls into toolchains/, bench/, examples/ or the tests."""

import subprocess
import sys
from pathlib import Path

from invoke.context import Context
from invoke.exceptions import Exit
from invoke.tasks import task

ROOT = Path(__file__).resolve().parent
TARGET = "a row of toolchains/targets.toml"
TOOLCHAIN = "auto, gcc, zig, docker or ndk"


def _python(*words: str | Path, **options: object) -> None:
    """Runs this Python in the project's folder, with the options that are given, and ends the task where that fails."""
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value != ""]
    try:
        code = subprocess.run([sys.executable, *words, *flags], cwd=ROOT).returncode
    except KeyboardInterrupt:
        code = 130
    if code:
        raise Exit(code=code)


def _path(text: str) -> str:
    """A path as seen from where the user is; "" stays that."""
    return text and str(Path(text).absolute())


@task(help={"target": TARGET, "toolchain": TOOLCHAIN})
def build(context: Context, target: str = "host", toolchain: str = "auto") -> None:
    """Build the op library: build/TARGET/liblitebnn.so."""
    _python("-m", "toolchains.build", target=target, toolchain=toolchain)


@task
def targets(context: Context) -> None:
    """Print the targets, and the compilers and emulators that are here for them."""
    _python("-m", "toolchains.table")


@task
def docker_image(context: Context) -> None:
    """Build the image that `build --toolchain=docker` uses."""
    _python("-m", "toolchains.container")


@task(help={"target": TARGET, "toolchain": TOOLCHAIN})
def wheel(context: Context, target: str = "host", toolchain: str = "zig") -> None:
    """Make the wheel of a platform, with the op library inside: dist/litebnn-VERSION-py3-none-PLATFORM.whl."""
    _python("-m", "toolchains.wheel", target=target, toolchain=toolchain)


@task(help={"target": TARGET, "tflite_dir": "folder of your own build of TensorFlow Lite's C library"})
def runtime(context: Context, target: str = "host", tflite_dir: str = "") -> None:
    """Fetch LiteRT, for the example programs: build/runtime/TARGET."""
    _python("-m", "toolchains.runtime_library", target=target, tflite_dir=_path(tflite_dir))


@task(help={"target": TARGET, "toolchain": TOOLCHAIN})
def bundle(context: Context, target: str = "host", toolchain: str = "auto") -> None:
    """Pack programs, libraries and an example for a board: dist/litebnn-TARGET.tar.gz."""
    _python("-m", "toolchains.bundle", target=target, toolchain=toolchain)


@task(
    help={
        "target": TARGET,
        "host": "the board, or several with commas: [USER@]HOST[:PORT]",
        "folder": "folder on the board; by default the user's home",
        "identity": "private key file",
        "accept_host_key": "fingerprints of the boards' host keys, with commas, where they are not known yet",
        "model": "model to measure; by default the bundle's",
        "num_threads": "threads to run it on",
        "toolchain": TOOLCHAIN,
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
    accept_host_key: str = "",
) -> None:
    """Copy the bundle to boards over SSH, measure a model on all at once, and bring the results back."""
    files = {"identity": _path(identity), "model": _path(model)}
    board = {"target": target, "host": host, "folder": folder, "accept_host_key": accept_host_key}
    _python("-m", "toolchains.deploy", **board, **files, num_threads=num_threads, toolchain=toolchain)


@task(
    help={
        "trainer": "what trains the network: a module of examples/mnist/trainers",
        "mnist": "folder of MNIST's IDX files; by default scikit-learn's digits",
        "epochs": "training epochs",
    }
)
def demo(context: Context, trainer: str = "larq", mnist: str = "", epochs: str = "") -> None:
    """Train a small binarized network, convert it, build the library and run it, side by side."""
    build(context)
    _python("-m", "examples.mnist.demo", trainer=trainer, mnist=_path(mnist), epochs=epochs)


@task(
    help={
        "frameworks": "keras, torch, or keras,torch",
        "mnist": "folder of MNIST's IDX files; by default scikit-learn's digits",
        "epochs": "training epochs",
    }
)
def compare(context: Context, frameworks: str = "", mnist: str = "", epochs: str = "") -> None:
    """Train a small network in float32, int8 and 1-bit, and compare accuracy, size, memory, work and time."""
    runtime(context)
    build(context)
    _python("-m", "examples.compare", frameworks=frameworks, mnist=_path(mnist), epochs=epochs)


@task(
    help={
        "target": f"{TARGET}; other than this machine: instruction counts, not times",
        "peer": "also time Larq Compute Engine, in build/peer-venv",
        "threads": "threads to run on",
        "model": "network of larq-zoo, its files in build/zoo (bench/zoo/make_models.py)",
        "zoo": "instead measure all networks of larq-zoo that are in build/zoo, beside what they cannot be faster than",
        "rules": "instead measure what each rule for models costs, and write docs/rules-for-models.md",
        "costs": "instead measure what ops cost, which inspect estimates times from",
    }
)
def bench(
    context: Context,
    target: str = "host",
    peer: bool = False,
    threads: int = 1,
    model: str = "QuickNet",
    zoo: bool = False,
    rules: bool = False,
    costs: bool = False,
) -> None:
    """Measure the kernels layer by layer and whole models."""
    if rules:
        build(context)
        _python("-m", "bench.rules", target=target)
        return
    if costs:
        build(context)
        _python("-m", "bench.costs")
        return
    if zoo:
        build(context)
        _python("-m", "bench.zoo", target=target)
        return
    if target != "host":
        _python("-m", "bench.kernels", target=target, model=model)
        return
    build(context)
    _python("-m", "bench.kernels", threads=threads)
    _python("-m", "bench.models", model, *(["--peer"] if peer else []), threads=threads)


@task(help={"tags": "also the site of each release, a tag vN, in build/docs/vN"})
def docs(context: Context, tags: bool = False) -> None:
    """Build the site, build/docs/index.html; a warning is an error."""
    _python("-m", "docs", *(["--tags"] if tags else []))


@task
def charts(context: Context) -> None:
    """Draw docs/images/zoo.svg, and the table, from what bench.models has measured, bench/zoo/times.json."""
    _python("-m", "bench.zoo.chart")


@task
def screenshots(context: Context) -> None:
    """Take the pictures of the report's page and of the site in Chromium: docs/images/*.png."""
    docs(context)
    _python("-m", "tests.report.screenshots")


@task(help={"minutes": "how long each target runs", "target": "one of them: fuzz/targets/TARGET_fuzz.*"})
def fuzz(context: Context, minutes: float = 1, target: str = "") -> None:
    """Fuzz what reads strangers' files: options, graphs, images, models."""
    _python("-m", "fuzz", *([target] if target else []), seconds=round(60 * minutes))


@task(help={"count": "how many mutants", "seed": "which of them", "jobs": "how many to try at once"})
def mutants(context: Context, count: int = 500, seed: int = 0, jobs: int = 1) -> None:
    """Put small errors into the code, one at a time, and print how many of them the tests notice."""
    _python("-m", "mutants", count=count, seed=seed, jobs=jobs)


@task
def lint(context: Context) -> None:
    """Check style and types: ruff, mypy, clang-format."""
    _python("-m", "ruff", "check", ".")
    _python("-m", "ruff", "format", "--check", ".")
    _python("-m", "mypy")
    folders = [ROOT / name for name in ("ops", "bench", "examples", "fuzz")]
    sources = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".h", ".cc", ".c")]
    clang_format = "import sys, clang_format; sys.exit(clang_format.clang_format())"
    _python("-c", clang_format, "--dry-run", "--Werror", *sources)


@task(
    help={
        "k": "run only the tests that match, as pytest's -k",
        "long": "also run the tests that take minutes",
        "target": "instead emulate this target: its wheel, the golden models and the C++ tests",
        "runtimes": "instead run the ops' suite in every runtime that litebnn serves, each fetched into build/runtimes",
        "all": "run all there is, stress and valgrind too, and print a table of what ran and what was skipped, and why",
    }
)
def test(
    context: Context, k: str = "", long: bool = False, target: str = "host", runtimes: bool = False, all: bool = False
) -> None:
    """Lint, build for the host, and run all tests."""
    if target != "host":
        _python("-m", "pytest", "tests/emulated", target=target)
        return
    if runtimes:
        build(context)
        _python("-m", "tests.runtimes.environments")
        return
    lint(context)
    build(context)
    # A file's tests share what they build, and four workers with TensorFlow in each are as much as memory bears.
    spread = ("--numprocesses=logical", "--maxprocesses=4", "--dist=loadfile")
    if all:
        _python("-m", "tests.everything", *spread)
        return
    _python("-m", "pytest", *spread, *(["-k", k] if k else []), *(["--long"] if long else []))
