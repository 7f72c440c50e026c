"""The project's tasks, as `invoke --list` shows them. Each calls into toolchains/, bench/, examples/ or the tests.

A task first installs the extras of pyproject.toml that it needs, if it runs in the environment of bootstrap.py.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from invoke.context import Context
from invoke.exceptions import Exit
from invoke.tasks import task

import bootstrap
from toolchains.fetch import pytorch
from toolchains.needs import WITHOUT_DEPENDENCIES, needs

ROOT = Path(__file__).resolve().parent
# PyTorch's exporter needs numpy 2, which larq's metadata excludes.
TORCH_VENV = ROOT / ".venv-torch"
TARGET = "a row of toolchains/targets.toml"
INTERRUPTED = 130
TOOLCHAIN = "auto, gcc, clang, zig, docker or ndk"
# The extras of the tests, and the further ones of the deep tier.
TESTED, TESTED_DEEPLY = ("test", "demo", "larq"), ("compare", "docs", "notebook")
# What takes the place of an extra that has no wheels for this Python.
INSTEAD = {"larq": "keras"}


def fitting(*extras: str) -> list[str]:
    """The extras that have wheels for this Python, or what takes their place."""
    found = []
    for extra in extras:
        need = needs().get(extra)
        if need is None or need.has_wheels:
            found.append(extra)
            continue
        other = INSTEAD.get(extra, "")
        print(f"{extra}: {need.no_wheels()}; {other + ' takes its place' if other else 'its tests are skipped'}")
        found += [other] if other else []
    return found


def install(*extras: str, folder: Path = bootstrap.VENV) -> None:
    """Installs extras into an environment of bootstrap.py; leaves other environments alone."""
    if folder == bootstrap.VENV and Path(sys.prefix).resolve() != folder:
        return
    for extra in extras:
        if extra in needs() and not needs()[extra].has_wheels:
            raise Exit(f"the extra {extra} has {needs()[extra].no_wheels()}", code=1)
    try:
        with bootstrap.locked(folder):
            bootstrap.make_environment(folder)
            if "torch" in extras and not (folder / "litebnn-torch.stamp").is_file():
                bootstrap.pip_install(folder, *pytorch.choose(bootstrap.python_of(folder)))
            for apart in (WITHOUT_DEPENDENCIES[extra] for extra in extras if extra in WITHOUT_DEPENDENCIES):
                bootstrap.pip_install(folder, "--no-deps", *apart)
            bootstrap.install(folder, "dev", *extras)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Exit(f"cannot install the extras {', '.join(extras)}: {error}", code=1) from error


def torch_python() -> Path:
    """The Python of the environment for PyTorch, which is made if it does not exist."""
    install("demo", "torch", folder=TORCH_VENV)
    return bootstrap.python_of(TORCH_VENV)


def _together(first: Callable[[], object], second: Callable[[], object]) -> None:
    """Calls both at the same time: pip and most checks of lint keep only one CPU busy."""
    try:
        with ThreadPoolExecutor() as pool:
            other = pool.submit(first)
            second()
            other.result()
    except KeyboardInterrupt:
        raise Exit(code=INTERRUPTED) from None


def _run(
    words: Sequence[str | Path], options: Mapping[str, object], log: IO[bytes] | None, python: str | Path = ""
) -> None:
    """Runs a Python in the project's folder, without the options that are "". A failure ends the task.

    Args:
        words: the words of the command after the interpreter.
        options: the values of the options.
        log: file for stderr, which is printed only if the command fails. None leaves stderr alone.
        python: the interpreter, by default this one.
    """
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value != ""]
    try:
        code = subprocess.run([python or sys.executable, *words, *flags], cwd=ROOT, stderr=log).returncode
    except KeyboardInterrupt:
        code = INTERRUPTED
    if log and code not in (0, INTERRUPTED):
        log.seek(0)
        sys.stderr.write(log.read().decode(errors="replace"))
    if code:
        raise Exit(code=code)


def _python(*words: str | Path, **options: object) -> None:
    """Runs this Python with `words` and `options`."""
    _run(words, options, None)


def _quietly(*words: str | Path, python: str | Path = "", **options: object) -> None:
    """Runs a Python. Its stderr, to which frameworks and runtimes log, appears only if the command fails."""
    with tempfile.TemporaryFile() as log:
        _run(words, options, log, python)


def _install_docker(toolchain: str) -> None:
    if toolchain == "docker":
        install("docker")


def _path(text: str) -> str:
    """The absolute path of a path in the user's current folder. "" stays ""."""
    return text and str(Path(text).absolute())


@task(help={"json": "print the result as JSON"})
def doctor(context: Context, json: bool = False) -> None:
    """List what this machine has and lacks, with the commands that install missing requirements."""
    _python("-m", "litebnn", "doctor", *(["--json"] if json else []))


@task(help={"target": TARGET, "toolchain": TOOLCHAIN})
def build(context: Context, target: str = "host", toolchain: str = "auto") -> None:
    """Build the op library: build/TARGET/liblitebnn.so."""
    _install_docker(toolchain)
    _python("-m", "toolchains.build", target=target, toolchain=toolchain)


@task
def targets(context: Context) -> None:
    """Print the targets, with the compilers and emulators installed for each."""
    _python("-m", "toolchains.table")


@task
def docker_image(context: Context) -> None:
    """Build the image that `build --toolchain=docker` uses."""
    install("docker")
    _python("-m", "toolchains.container")


@task(help={"target": TARGET, "toolchain": TOOLCHAIN})
def wheel(context: Context, target: str = "host", toolchain: str = "zig") -> None:
    """Make the wheel of a platform, with the op library inside: dist/litebnn-VERSION-py3-none-PLATFORM.whl."""
    _install_docker(toolchain)
    _python("-m", "toolchains.wheel", target=target, toolchain=toolchain)


@task(help={"target": TARGET, "tflite_dir": "folder of your own build of TensorFlow Lite's C library"})
def runtime(context: Context, target: str = "host", tflite_dir: str = "") -> None:
    """Fetch LiteRT, for the example programs: build/runtime/TARGET."""
    _python("-m", "toolchains.runtime_library", target=target, tflite_dir=_path(tflite_dir))


@task(help={"target": TARGET, "toolchain": TOOLCHAIN})
def bundle(context: Context, target: str = "host", toolchain: str = "auto") -> None:
    """Pack programs, libraries and an example for a board: dist/litebnn-TARGET.tar.gz."""
    _install_docker(toolchain)
    _python("-m", "toolchains.bundle", target=target, toolchain=toolchain)


@task
def aar(context: Context) -> None:
    """Make the archive for Android apps, with the NDK that ANDROID_NDK_HOME names: dist/litebnn-VERSION.aar."""
    _python("-m", "toolchains.aar")


@task(help={"target": TARGET})
def deb(context: Context, target: str = "host") -> None:
    """Make Debian packages of the library, its headers and the programs: dist/PACKAGE_VERSION_ARCHITECTURE.deb."""
    _python("-m", "toolchains.deb.packages", target=target)


@task(
    help={
        "check": "check the products: tags, licenses, exports, and that a second build gives the same files",
        "only": "names of checks, separated by commas; by default all",
        "target": "targets, separated by commas; by default all with a product",
    }
)
def release(context: Context, check: bool = False, only: str = "", target: str = "") -> None:
    """Build everything that a release distributes into dist/; publishes nothing."""
    _python("-m", "toolchains.release", *(["--check"] if check else []), only=only, target=target)


@task(
    help={
        "target": TARGET,
        "host": "the board, or several boards separated by commas: [USER@]HOST[:PORT]",
        "folder": "folder on the board; by default the user's home",
        "identity": "private key file",
        "accept_host_key": "fingerprints of the host keys of boards that are not known yet, separated by commas",
        "model": "model to measure; by default the bundle's",
        "num_threads": "number of threads",
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
    install("deploy")
    _install_docker(toolchain)
    files = {"identity": _path(identity), "model": _path(model)}
    board = {"target": target, "host": host, "folder": folder, "accept_host_key": accept_host_key}
    _python("-m", "bench.deploy", **board, **files, num_threads=num_threads, toolchain=toolchain)


@task(
    help={
        "trainer": "framework that trains the network: larq, keras or torch; by default the first that is installed",
        "mnist": "folder of MNIST's IDX files; by default scikit-learn's digits",
        "epochs": "training epochs",
    }
)
def demo(context: Context, trainer: str = "", mnist: str = "", epochs: str = "") -> None:
    """Train and convert a small binarized network, build the library, and compare the network with its float form."""
    python: list[Path] = []

    def environment() -> None:
        if trainer == "torch":
            python.append(torch_python())
        else:
            install("demo", *([trainer] if trainer in ("larq", "keras") else [] if trainer else fitting("larq")))

    _together(environment, lambda: build(context))
    options = {"trainer": trainer, "mnist": _path(mnist), "epochs": epochs}
    _quietly("-m", "examples.mnist.demo", python=python[0] if python else "", **options)


@task(
    help={
        "network": "network of litebnn zoo, by default quicknet",
        "image": "the photograph, by default a cat",
        "weights": "weights file; by default pretrained on ImageNet, fetched once; random for random weights",
    }
)
def photo(context: Context, network: str = "", image: str = "", weights: str = "") -> None:
    """Fetch a pretrained network, convert it, build the library and classify a photograph; draws the result."""
    _together(lambda: install("keras", "photo"), lambda: build(context))
    given = weights if weights in ("", "imagenet", "random") else _path(weights)
    _quietly("-m", "examples.photo", network=network, image=_path(image), weights=given)


@task(
    help={
        "frameworks": "keras, torch, or keras,torch",
        "mnist": "folder of MNIST's IDX files; by default scikit-learn's digits",
        "epochs": "training epochs",
    }
)
def compare(context: Context, frameworks: str = "", mnist: str = "", epochs: str = "") -> None:
    """Train a small network in float32, int8 and 1-bit, and compare accuracy, size, memory, work and time."""

    def environments() -> None:
        if "torch" in (frameworks or "torch").split(","):
            torch_python()
        install("demo", "keras", "compare")

    def library() -> None:
        runtime(context)
        build(context)

    _together(environments, library)
    _quietly("-m", "examples.compare", frameworks=frameworks, mnist=_path(mnist), epochs=epochs)


@task(
    help={
        "target": f"{TARGET}; for other targets than this machine, instructions are counted instead of times",
        "peer": "also time Larq Compute Engine, in build/peer-venv",
        "threads": "number of threads",
        "model": "network of larq-zoo whose files are in build/zoo (bench/zoo/make_models.py)",
        "zoo": "instead measure all networks of larq-zoo that are in build/zoo, and their lower bounds of time",
        "rules": "instead measure what each rule for models costs, and write docs/rules-for-models.md",
        "costs": "instead measure the costs of ops, from which inspect estimates times",
        "micro": "instead count the instructions of the kernels for microcontrollers, on emulated boards",
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
    micro: bool = False,
) -> None:
    """Measure the kernels layer by layer and whole models."""
    if micro:
        _python("-m", "bench.micro", target="" if target == "host" else target)
        return
    if rules or costs:
        install("bench")
    if rules:
        build(context)
        _quietly("-m", "bench.rules", target=target)
        return
    if costs:
        build(context)
        _quietly("-m", "bench.costs")
        return
    if zoo:
        build(context)
        _quietly("-m", "bench.zoo", target=target)
        return
    if target != "host":
        _python("-m", "bench.kernels", target=target, model=model)
        return
    build(context)
    _python("-m", "bench.kernels", threads=threads)
    _quietly("-m", "bench.models", model, *(["--peer"] if peer else []), threads=threads)


@task(
    help={
        "tags": "also build the site of each release (a tag vN) in build/docs/vN",
        "generate": "instead rewrite the parts of the documents that the code knows",
    }
)
def docs(context: Context, tags: bool = False, generate: bool = False) -> None:
    """Build the documentation site, build/docs/index.html; a warning is an error."""
    install("docs")
    _python("-m", "docs", *(["--tags"] if tags else []), *(["--generate"] if generate else []))


@task
def charts(context: Context) -> None:
    """Draw docs/images/zoo.svg and write its table, from the times in bench/zoo/times.json."""
    install("bench")
    _python("-m", "bench.zoo.chart")


@task
def screenshots(context: Context) -> None:
    """Take the pictures of the report's page and of the site in Chromium: docs/images/*.png."""
    install("demo", "docs", "test")
    docs(context)
    _python("-m", "tests.report.screenshots")


@task(help={"minutes": "number of minutes for which each target runs", "target": "run only fuzz/targets/TARGET_fuzz.*"})
def fuzz(context: Context, minutes: float = 1, target: str = "") -> None:
    """Fuzz the code that reads untrusted input: options, graphs, images, models."""
    install("test")
    _python("-m", "fuzz", *([target] if target else []), seconds=round(60 * minutes))


@task(help={"count": "number of mutants", "seed": "seed that selects them", "jobs": "number of mutants to try at once"})
def mutants(context: Context, count: int = 500, seed: int = 0, jobs: int = 1) -> None:
    """Make small errors in the code, one at a time, and print how many of them the tests detect."""
    install("test")
    _python("-m", "mutants", count=count, seed=seed, jobs=jobs)


@task
def lint(context: Context) -> None:
    """Check style, types and who imports whom: ruff, mypy, import-linter, clang-format."""
    install("test")
    _python("-m", "ruff", "check", ".")
    _python("-m", "ruff", "format", "--check", ".")
    _python("-m", "mypy")
    with tempfile.TemporaryDirectory() as folder:  # without the tests, which may import anything
        for package in (ROOT / "converter" / "litebnn", ROOT / "toolchains"):
            shutil.copytree(package, Path(folder) / package.name, ignore=shutil.ignore_patterns("*_test.py"))
        linter = "import sys; sys.path.insert(0, sys.argv[1]); from importlinter.cli import lint_imports"
        _python("-c", f"{linter}; sys.exit(lint_imports(no_cache=True, no_logo=True))", folder)
    folders = [
        ROOT / name for name in ("android", "ops", "bench", "examples", "fuzz", "programs", "tests", "toolchains")
    ]
    sources = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".h", ".cc", ".c")]
    clang_format = "import sys, clang_format; sys.exit(clang_format.clang_format())"
    _python("-c", clang_format, "--dry-run", "--Werror", *sources)


@task(
    help={
        "k": "run only the tests that match, as for pytest's -k",
        "deep": "also run the tests that build, emulate, train or fuzz: half an hour",
        "long": "run all tests, including those that together take hours",
        "target": "instead test this target in an emulator: its wheel, the golden models and the C++ tests",
        "runtimes": "instead run the ops' suite in every runtime that litebnn serves, each fetched into build/runtimes",
        "remaining": "leave out lint, and the tests that passed in the previous run",
    }
)
def test(
    context: Context,
    k: str = "",
    deep: bool = False,
    long: bool = False,
    target: str = "host",
    runtimes: bool = False,
    remaining: bool = False,
) -> None:
    """Lint, build for the host, and run the tests."""
    if target != "host":
        install("test")
        _python("-m", "pytest", "tests/emulated", target=target)
        return
    if runtimes:
        install("test")
        build(context)
        _python("-m", "tests.runtimes.environments")
        return

    def environment() -> None:
        install(*fitting(*TESTED, *(TESTED_DEEPLY if deep or long else ())))
        if not remaining:
            lint(context)

    def library() -> None:
        # The first time, the runtime of the programs, which tests run, is fetched if it can be.
        if not (bootstrap.VENV / "litebnn-test.stamp").is_file():
            command = [sys.executable, "-m", "toolchains.runtime_library"]
            subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        build(context)

    _together(environment, library)
    # Deep tests in one file share their builds, and conftest.py orders the files. The limit of four workers bounds
    # memory, as each loads TensorFlow.
    order = ("--dist=loadfile", "--no-loadscope-reorder") if deep or long else ("--dist=worksteal",)
    spread = ("--numprocesses=logical", "--maxprocesses=4", *order)
    flags = {"deep": deep, "long": long, "remaining": remaining}
    options = [f"--{name}" for name, chosen in flags.items() if chosen]
    _python("-m", "pytest", *spread, *options, *(["-k", k] if k else []))
