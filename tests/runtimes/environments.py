"""Makes an environment for each runtime under build/runtimes/, and runs the suite in each with the same op library.

python -m tests.runtimes.environments [NAME ...]
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from toolchains.runtime_library import C_LIBRARY, fetch_c_library
from toolchains.targets import BUILD, ROOT, ToolkitError

FOLDER = BUILD / "runtimes"
COMMON = ("pytest>=8",)


@dataclass(frozen=True)
class Environment:
    """A runtime and the packages that provide it."""

    name: str
    requirements: tuple[str, ...]  # for pip
    package: str  # the name in litebnn.runtime.find; empty for the C library
    newest_python: tuple[int, int]  # the newest one with wheels of the runtime

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"


ANY_PYTHON = (3, 99)
ENVIRONMENTS = (
    Environment("ai-edge-litert", ("ai-edge-litert",), "ai-edge-litert", ANY_PYTHON),
    Environment("ai-edge-litert-nightly", ("ai-edge-litert-nightly",), "ai-edge-litert", ANY_PYTHON),
    Environment("ai-edge-litert-2.3", ("ai-edge-litert==2.3.*",), "ai-edge-litert", ANY_PYTHON),
    Environment("ai-edge-litert-2.2", ("ai-edge-litert==2.2.*",), "ai-edge-litert", ANY_PYTHON),
    # ai-edge-litert imports ml_dtypes when it makes a compiled model, but does not declare this requirement.
    Environment("ai-edge-litert-2.1", ("ai-edge-litert==2.1.6", "ml_dtypes"), "ai-edge-litert", ANY_PYTHON),
    Environment("ai-edge-litert-1.4", ("ai-edge-litert==1.4.*",), "ai-edge-litert", (3, 13)),
    Environment("tflite-runtime-2.14", ("tflite-runtime==2.14.*", "numpy<2"), "tflite-runtime", (3, 11)),
    Environment("tensorflow", ("tensorflow",), "tensorflow", ANY_PYTHON),
    Environment("tensorflow-2.16", ("tensorflow==2.16.*",), "tensorflow", (3, 12)),
    Environment("c-library-2.9", ("numpy",), "", ANY_PYTHON),
)


def prepare(environment: Environment) -> None:
    """Makes the environment, unless it exists for the same requirements and Python.

    Raises:
        ToolkitError: this Python is too new for the runtime, or pip failed.
    """
    if sys.version_info[:2] > environment.newest_python:
        newest = ".".join(map(str, environment.newest_python))
        raise ToolkitError(f"no wheel for Python {sys.version_info[0]}.{sys.version_info[1]}: use {newest} or older")
    requirements = [*environment.requirements, *COMMON]
    stamp = environment.folder / "requirements.txt"
    wanted = "\n".join([sys.version, *requirements])
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment.folder)], check=True)
    pip = [str(environment.python), "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    if subprocess.run([*pip, *requirements]).returncode:
        raise ToolkitError(f"pip cannot install {' '.join(requirements)}")
    stamp.write_text(wanted, encoding="utf-8")


def write_cases() -> Path:
    """Writes the suite's cases and returns their folder; this Python must have the .tflite schema."""
    folder = FOLDER / "cases"
    subprocess.run([sys.executable, "-m", "tests.runtimes.cases", str(folder)], cwd=ROOT, check=True)
    return folder


def c_library() -> str:
    """Path of the runtime's C library.

    Raises:
        ToolkitError: the C library cannot be fetched.
    """
    return str(fetch_c_library("host") / C_LIBRARY)


def run_python(
    python: Path, arguments: list[str], runtime: str, library: Path, variables: dict[str, str] | None = None
) -> int:
    """Runs a Python in which `runtime` is installed, with the environment variables that `backends.py` reads. Returns
    the exit code.
    """
    environment = {
        "LITEBNN_RUNTIME": runtime,
        "LITEBNN_LIBRARY": str(library),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "converter")]),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        **(variables or {}),
    }
    return subprocess.run([str(python), *arguments], cwd=ROOT, env=os.environ | environment).returncode


def run_suite(python: Path, runtime: str, cases: Path, library: Path, variables: dict[str, str] | None = None) -> int:
    """Runs tests/runtimes/suite.py in a Python in which `runtime` is installed, and returns pytest's exit code."""
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "tests/runtimes/suite.py"]
    return run_python(python, arguments, runtime, library, {"LITEBNN_CASES": str(cases), **(variables or {})})


def run_all(environments: Iterable[Environment], library: Path) -> dict[str, str]:
    """Runs the suite in each environment, and returns the outcome of each."""
    cases = write_cases()
    outcome = {}
    for environment in environments:
        print(f"== {environment.name}", flush=True)
        try:
            prepare(environment)
            code = run_suite(environment.python, environment.package or c_library(), cases, library)
            outcome[environment.name] = "failed" if code else "passed"
        except ToolkitError as error:
            outcome[environment.name] = f"failed: {error}"
    return outcome


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="tests.runtimes.environments", description="Run the suite in each runtime.")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(e.name for e in ENVIRONMENTS)}; by default all")
    parser.add_argument("--library", type=Path, default=BUILD / "host" / "liblitebnn.so", help="our library")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - {environment.name for environment in ENVIRONMENTS}
    if unknown:
        parser.error(f"no such runtime: {', '.join(sorted(unknown))}")
    if not options.library.is_file():
        parser.error(f"no library {options.library}: invoke build --target=host")
    chosen = [e for e in ENVIRONMENTS if not options.names or e.name in options.names]
    outcome = run_all(chosen, options.library.resolve())
    for name, result in outcome.items():
        print(f"{name:22} {result}")
    return 0 if set(outcome.values()) == {"passed"} else 1


if __name__ == "__main__":
    sys.exit(main())
