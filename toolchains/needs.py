"""The table of what builds, tests and tasks need besides Python: how to find and to install each requirement.

Tests are skipped, tasks install and report, and `litebnn doctor` lists by this table. Only the standard library is
imported, so that it can be read before anything is installed.
"""

import functools
import re
import shlex
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolchains import probes
from toolchains.deb import namespace

if TYPE_CHECKING:
    from toolchains.targets import Target

ROOT = Path(__file__).resolve().parents[1]
GOOGLETEST = Path("/usr/src/googletest")
ARM64 = Path("/usr/aarch64-linux-gnu/lib/libstdc++.so.6")
RUNTIME = ROOT / "build" / "runtime" / "host" / "ORIGIN"
QUICKNET = ROOT / "build" / "zoo" / "QuickNet.float.tflite"
# The commands of bench/zoo/make_models.py, for one network.
MAKE_QUICKNET = (
    'python3.11 -m venv build/peer-venv && build/peer-venv/bin/pip install "larq-compute-engine==0.16.*" larq larq-zoo '
    '"tensorflow-cpu<2.16" "numpy<2" "setuptools<80" && build/peer-venv/bin/python -m bench.zoo.make_models QuickNet'
)
# larq-zoo must be installed without its dependencies: it asks for a protobuf that is older than TensorFlow's. The
# folder `tests` that larq-zoo installs is removed, because it would hide the project's folder `tests`.
_TESTS = Path(sysconfig.get_path("purelib"), "tests")
INSTALL_LARQ_ZOO = f"pip install --no-deps larq-zoo zookeeper && pip install typeguard click && rm -r {_TESTS}"

# The newest Python of an extra. Keras 2 (tf-keras) has no release for the TensorFlow of Python 3.14.
NEWEST_PYTHON = {"larq": (3, 13), "compare": (3, 13)}
# What pip must install without its dependencies, after the extra: larq's metadata requires numpy 1, which has no wheels
# for Python 3.13, but larq runs with numpy 2.
WITHOUT_DEPENDENCIES = {"larq": ["larq>=0.13.3"]} if sys.version_info >= (3, 13) else {}


@dataclass(frozen=True)
class Need:
    """A requirement of a build or test that a machine may lack.

    The requirement is found if one of `programs`, all of `modules` and all of `files` exist, and `answers` returns
    true. `kind` is "program", "package" (of Python), "file", "service", or "network" for something that is downloaded.
    """

    name: str
    kind: str
    purpose: str
    install: str
    programs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    answers: Callable[[], bool] | None = None
    # The newest Python for which the requirement's packages have wheels; None if there is no known limit.
    newest_python: tuple[int, int] | None = None

    @property
    def has_wheels(self) -> bool:
        """True if `install` can work with this Python."""
        return self.newest_python is None or sys.version_info[:2] <= self.newest_python

    @property
    def command(self) -> str:
        """`install` with the pip of this Python's environment, which need not be the pip of the user's shell."""
        return with_pip(self.install)

    def is_found(self) -> bool:
        """True if this machine has the requirement. A package must be in this Python's environment."""
        if self.programs and not any(map(probes.find_program, self.programs)):
            return False
        if not all(map(probes.has_module, self.modules)) or not all(path.exists() for path in self.files):
            return False
        return self.answers is None or self.answers()

    def missing(self) -> str:
        """A message that the requirement is missing, with the command that installs it; "" if it is found."""
        if self.is_found():
            return ""
        return f"{self.name} is missing: {self.command if self.has_wheels else self.no_wheels()}"

    def no_wheels(self) -> str:
        """A message which says that the requirement's packages have no wheels for this Python."""
        newest, this = (".".join(map(str, each)) for each in (self.newest_python or (), sys.version_info[:2]))
        return f"no wheels for Python {this}, only up to {newest}"


def with_pip(command: str) -> str:
    """The command, in which this Python runs each `pip install`.

    >>> with_pip("apt install git && pip install rich").endswith(" -m pip install rich")
    True
    """
    # A link is not followed: its target lies outside of the virtual environment.
    python, here = Path(sys.executable), Path.cwd()
    shown = shlex.quote(str(python.relative_to(here) if python.is_relative_to(here) else python))
    return re.sub(r"(?<!\S)pip install(?= )", lambda _: f"{shown} -m pip install", command)


def _program(name: str, package: str, purpose: str, *programs: str, answers: Callable[[], bool] | None = None) -> Need:
    return Need(name, "program", purpose, f"apt install {package}", programs or (name,), answers=answers)


def _extra(name: str, purpose: str, *modules: str) -> Need:
    install = f"pip install 'litebnn[{name}]'"
    if name in WITHOUT_DEPENDENCIES:
        install += f" && pip install --no-deps {shlex.join(WITHOUT_DEPENDENCIES[name])}"
    return Need(name, "package", purpose, install, modules=modules, newest_python=NEWEST_PYTHON.get(name))


def _package(name: str, purpose: str, module: str, extra: str = "") -> Need:
    install = f"pip install 'litebnn[{extra}]'" if extra else f"pip install {name}"
    return Need(name, "package", purpose, install, modules=(module,))


def _file(name: str, install: str, purpose: str, path: Path) -> Need:
    return Need(name, "file", purpose, install, files=(path,))


def _service(name: str, install: str, purpose: str, answers: Callable[[], bool], kind: str = "service") -> Need:
    return Need(name, kind, purpose, install, answers=answers)


_network = functools.partial(_service, kind="network")


CLANG = "clang-19 libclang-rt-19-dev llvm-19"
# Debian's two variants of the MinGW compiler differ in their threads. C++11's threads need the POSIX variant.
MINGW = "g++-mingw-w64-x86-64-posix lld-19"
# Debian's package wine64 installs its program in a folder that is not on the PATH.
WINE = ("wine64", "/usr/lib/wine/wine64", "wine")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


_ROWS = (
    # Requirements for builds and tests that are programs.
    Need("c++", "program", "building the op library", "apt install g++", answers=lambda: bool(probes.cxx_program())),
    _program("cmake", "cmake", "building the op library"),
    _program("g++", "g++", "the ABI's tests, programs of GNU's C++ library"),
    _program("gcc", "gcc", "the ABI's tests"),
    _program("gcc-sanitizers", "g++", "the op library in Python under sanitizers", "c++", answers=probes.preloads),
    _program("ninja", "ninja-build", "building one object alone, faster builds"),
    _program("git", "git", "copying the sources, and the site of releases"),
    _program("make", "make", "Makefiles, also those that CMake writes by default"),
    _program("binutils", "binutils", "reading libraries' symbols and versions", "readelf"),
    _program("clang", CLANG, "fuzzing, and sanitizers that see more", *probes.versions("clang++")),
    Need("mingw-w64", "program", "building for Windows by clang", f"apt install {MINGW}", answers=probes.has_mingw),
    _program("wine", "wine64", "the library and the programs for Windows", *WINE),
    _program("pkg-config", "pkg-config", "finding the development kit"),
    Need("conan", "program", "the recipe for Conan", "pip install conan", programs=("conan",)),
    _program("lld", "lld-19", "linking for macOS", *probes.versions("ld64.lld")),
    _program("llvm", CLANG, "what fuzzing has covered", *probes.versions("llvm-cov")),
    _program("valgrind", "valgrind", "reads of what was not written"),
    _program("chromium", "chromium", "the report's page and the site in a browser", *CHROMIUM),
    _program("debhelper", "debhelper dpkg-dev", "`invoke deb`", "dh"),
    _program("javac", "openjdk-17-jdk-headless", "`invoke aar`, and the Java class"),
    _program("lintian", "lintian", "checking Debian packages"),
    _program("mmdebstrap", "mmdebstrap", "installing Debian packages in a Debian of their architecture"),
    _program("debootstrap", "debootstrap", "the base image where no registry is reached"),
    _program("sshd", "openssh-server", "`invoke deploy` and boards, against this machine"),
    _program("bash", "bash", "completion of the command line"),
    _program("zsh", "zsh", "completion of the command line"),
    _program("fish", "fish", "completion of the command line"),
    # Requirements that are Python packages: first the extras of pyproject.toml, then single packages.
    _extra("cross", "building for other CPUs without their compilers", "ziglang"),
    _extra("docker", "`invoke build --toolchain=docker`", "docker.client"),
    _extra("deploy", "`invoke deploy`", "fabric", "paramiko"),
    _extra("report", "`litebnn convert --report`", "jinja2"),
    _extra("release", "`invoke release --check`", "cyclonedx", "jsonschema"),
    _extra("evaluate", "`litebnn evaluate`", "PIL", "pyarrow", "distributed"),
    _extra("larq", "training with larq", "tensorflow", "tf_keras", "larq"),
    _extra("keras", "training with Keras 3, and converting its models", "tensorflow", "keras"),
    _extra("torch", "training with PyTorch, and converting its modules", "torch", "litert_torch"),
    _extra("train", "examples/train", "PIL", "tensorboard"),
    _extra("model-explorer", "the adapter for Model Explorer", "model_explorer"),
    _extra("demo", "the demo's data", "sklearn", "PIL"),
    _extra("photo", "`invoke photo`", "PIL"),
    _extra("camera", "examples/camera", "cv2"),
    _extra("compare", "`invoke compare`", "matplotlib", "tensorflow_model_optimization", "tf_keras"),
    _extra("bench", "`invoke charts`, and fitting what ops cost", "matplotlib", "scipy"),
    _extra("docs", "`invoke docs`", "sphinx", "myst_parser", "furo", "hawkmoth", "clang"),
    _extra("notebook", "examples/quickstart.ipynb", "ipykernel", "nbclient", "nbformat"),
    Need(
        *("larq-zoo", "package", "the zoo's table and networks against larq-zoo's own", INSTALL_LARQ_ZOO),
        modules=("larq_zoo", "zookeeper", "typeguard", "click"),
    ),
    _package("tflite-support", "TFLite Metadata as Google's library reads it", "tensorflow_lite_support"),
    _package("jax", "training with Keras 3 on another backend", "jax"),
    _package("atheris", "fuzzing the converter", "atheris", "test"),
    _package("cosmic-ray", "`invoke mutants`", "cosmic_ray", "test"),
    _package("coverage", "what fuzzing and mutants have covered", "coverage", "test"),
    _package("auditwheel", "what a wheel asks of its platform", "auditwheel", "test"),
    _package("lief", "what a library exports, and asks for", "lief", "dev"),
    Need("zizmor", "package", "the files for CI", "pip install 'litebnn[test]'", programs=("zizmor",)),
    _package("playwright", "driving Chromium", "playwright", "test"),
    _package("ai-edge-litert", "a runtime", "ai_edge_litert"),
    Need(
        *("compiled-model", "package", "LiteRT's CompiledModel", "pip install --upgrade ai-edge-litert"),
        modules=("ai_edge_litert.compiled_model",),
    ),
    Need(
        *("tflite-runtime", "package", "a runtime", "pip install tflite-runtime 'numpy<2'"),
        modules=("tflite_runtime",),
        answers=probes.has_numpy_of_tflite_runtime,
        newest_python=(3, 11),
    ),
    _package("tensorflow", "a runtime", "tensorflow"),
    # Requirements for builds and tests that are files of the system.
    _file("googletest", "apt install libgtest-dev", "the C++ tests", GOOGLETEST / "CMakeLists.txt"),
    _file("aarch64-libraries", "apt install libstdc++6-arm64-cross", "emulated programs of the Raspberry Pi 4", ARM64),
    _file("quicknet", MAKE_QUICKNET, "a network of larq-zoo", QUICKNET),
    _file("runtime", "python3 bootstrap.py runtime", "programs, and fuzzing of images", RUNTIME),
    Need("library", "file", "running binary models", "python3 bootstrap.py build", answers=probes.has_library),
    # Requirements that a function tries, mostly services such as Docker's engine or a package index.
    _network("pytorch", "give pip an index with a PyTorch for CPUs, for this Python", "PyTorch", probes.has_cpu_torch),
    _service(
        *("macos-sdk", "run it on a Mac, after xcode-select --install", "building for macOS by its clang"),
        *(probes.has_macos_sdk, "file"),
    ),
    _service(
        *("ndk", "export ANDROID_NDK_HOME=FOLDER_OF_THE_ANDROID_NDK", "building for Android", probes.has_ndk, "file"),
    ),
    _service(
        *("docker-engine", "apt install docker.io && systemctl start docker", "`invoke build --toolchain=docker`"),
        probes.engine_answers,
    ),
    _service("loopback", "ip link set lo up", "boards and clusters on this machine", probes.listens),
    _service("mounts", "run it as root", "disks that are full", probes.mounts),
    _service(
        *("namespaces", "run it as root, on Linux 6.7 or newer", "installing Debian packages of other CPUs"),
        namespace.registers_emulators,
    ),
    _network("pypi", "give pip an index that it reaches", "runtimes and compilers by pip", probes.has_pypi),
    _network(
        *("tflite-micro", "give pip an index with tflite-micro, for its Pythons", "TensorFlow Lite Micro"),
        probes.has_tflm,
    ),
    _network(
        *("debian", f"connect to {probes.DEBIAN}, from a Debian", "other CPUs' packages, and emulators"),
        probes.unpacks_debian,
    ),
    _network("npm-registry", f"connect to {probes.NPM}", "TensorFlow Lite's C library, stb_image", probes.npm_answers),
)


def _targets() -> Iterator[Need]:
    """Yields the requirements that targets.toml names: compilers and emulators."""
    from toolchains.targets import load_targets

    for target in load_targets().values():
        if target.triple and "gcc" in target.toolchains:
            yield _program(f"{target.triple}-g++", target.gcc_package, f"building for {target.family}")
        if target.emulator:
            both = (target.emulator, f"{target.emulator}-static")
            yield _program(target.emulator, target.emulator_package, f"running programs of {target.family}", *both)


@functools.cache
def needs() -> dict[str, Need]:
    """All requirements by name. Compilers and emulators of other targets are included only if this Python can read TOML
    (3.11, or tomli)."""
    readable = probes.has_module("tomllib") or probes.has_module("tomli")
    return {need.name: need for need in (*_ROWS, *(_targets() if readable else ()))}


def toolchain_needs(target: "Target", toolchain: str) -> tuple[str, ...]:
    """The names of the requirements for building a target with one of its toolchains."""
    compiler = f"{target.triple}-g++" if target.triple else "c++"
    systems = {"Windows": ("clang", "mingw-w64"), "Darwin": ("clang", "macos-sdk")}
    clang = systems.get(target.system, ("clang",))
    compilers = {
        "gcc": (compiler,),
        "clang": clang,
        "zig": ("cross",),
        "docker": ("docker", "docker-engine"),
        "ndk": ("ndk",),
    }
    return (*compilers[toolchain], "cmake")


@functools.cache
def missing(name: str) -> str:
    """A message that the requirement is missing; "" if it is found. A process checks each requirement only once."""
    return needs()[name].missing()


def installation(names: list[str]) -> list[str]:
    """The commands that install those of `names` that are missing and have wheels, one command per installer. They do
    not say whose pip it is."""
    lacking = [needs()[name].install for name in names if missing(name) and needs()[name].has_wheels]
    packages: dict[str, list[str]] = {}
    for line in lacking:
        starts = [start for start in ("apt install ", "pip install ") if line.startswith(start) and "&&" not in line]
        installer = starts[0] if starts else line
        packages.setdefault(installer, []).extend(line.removeprefix(installer).split() if installer != line else [])
    return [installer + " ".join(dict.fromkeys(words)) for installer, words in packages.items()]
