"""Looks for the requirements that a machine may lack: programs, modules, libraries, registries and services.

The rows of needs.py call these functions, before anything is installed: only the standard library is imported.
"""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
from importlib.metadata import version
from pathlib import Path

from toolchains.fetch import pytorch

ROOT = Path(__file__).resolve().parents[1]
NDK_FILE = Path("build", "cmake", "android.toolchain.cmake")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
DEBIAN = "http://deb.debian.org/debian"
# The registry that is used if npm is not installed. If npm is installed, its own setting counts.
NPM = "https://registry.npmjs.org"
# The folder of servers such as sshd, which may be missing in a user's PATH.
SYSTEM_FOLDERS = "/usr/sbin"
SANITIZERS = ("libasan.so", "libubsan.so", "libstdc++.so")


def find_program(name: str) -> str:
    """The path of a program of this Python environment, the PATH or SYSTEM_FOLDERS; "" if none has this name."""
    folders = (sysconfig.get_path("scripts"), None, SYSTEM_FOLDERS)
    return next((found for folder in folders if (found := shutil.which(name, path=folder))), "")


def versions(program: str) -> tuple[str, ...]:
    """The possible names of a program that Debian installs as NAME-VERSION, newest first, and its plain name."""
    return (*(f"{program}-{version}" for version in range(30, 13, -1)), program)


def has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the module's own package
        return False


def runs(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def reaches(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=20):
            return True
    except (urllib.error.URLError, OSError):
        return False


def pip_finds(requirement: str) -> bool:
    options = ("--dry-run", "--quiet", "--no-deps", "--ignore-installed", "--retries=0")
    return runs(sys.executable, "-m", "pip", "install", *options, requirement)


def has_pypi() -> bool:
    return pip_finds("iniconfig")


def has_tflm() -> bool:
    # The import is inside this function, so that a Python without a TOML reader can import this module.
    from toolchains.fetch.lock import find

    return pip_finds(find("tflite-micro").requirement)


def listens() -> bool:
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return True
    except OSError:
        return False


def has_library() -> bool:
    if named := os.environ.get("LITEBNN_LIBRARY", ""):
        return Path(named).is_file()
    package = importlib.util.find_spec("litebnn")
    if package is None:
        return False
    from toolchains.targets import HERE

    folders = package.submodule_search_locations or ()
    built = (ROOT / "build" / "host", *(Path(folder) / "lib" for folder in folders))
    return any((folder / HERE.library).is_file() for folder in built)


def has_numpy_of_tflite_runtime() -> bool:
    """True if tflite-runtime runs with the installed NumPy. Most Pythons have only releases for NumPy 1."""
    newest = tuple(map(int, version("tflite-runtime").split(".")[:2]))
    return newest > (2, 14) or int(version("numpy").partition(".")[0]) < 2


def has_cpu_torch() -> bool:
    """True if tasks.py has made its environment for PyTorch, or can make it without CUDA."""
    made = ROOT / ".venv-torch" / "litebnn-torch.stamp"
    return made.is_file() or pytorch.without_cuda(Path(sys.executable)) is not None


def has_mingw() -> bool:
    """True if clang finds MinGW's headers and libraries. They are Debian's, or on Windows those that are installed
    together with clang.
    """
    clang = next(filter(None, map(find_program, versions("clang++"))), "")
    return bool(clang) and runs(
        clang, "--target=x86_64-w64-mingw32", "-fsyntax-only", "-x", "c++", "-include", "thread", os.devnull
    )


def has_macos_sdk() -> bool:
    return sys.platform == "darwin" and runs("xcrun", "--show-sdk-path")


def cxx_program() -> str:
    """The path of the compiler for this machine: CXX, or by default c++, g++ or clang++; "" if there is none."""
    named = os.environ.get("CXX", "").split()[:1]
    return next(filter(None, map(shutil.which, named or ("c++", "g++", "clang++"))), None) or ""


def has_ndk() -> bool:
    folder = os.environ.get("ANDROID_NDK_HOME", "")
    return bool(folder) and (Path(folder) / NDK_FILE).is_file()


def engine_answers() -> bool:
    if not has_module("docker.client"):
        return runs("docker", "version")
    from docker.client import DockerClient
    from docker.errors import DockerException

    try:
        return bool(DockerClient.from_env().ping())
    except (DockerException, OSError):
        return False


def debian_architecture() -> str:
    """Debian's name for this machine's architecture; "" without dpkg."""
    program = find_program("dpkg")
    if not program:
        return ""
    return subprocess.run([program, "--print-architecture"], capture_output=True, text=True).stdout.strip()


def unpacks_debian() -> bool:
    programs = ("apt-get", "dpkg-deb")
    return all(map(find_program, programs)) and KEYRING.exists() and reaches(f"{DEBIAN}/dists/bookworm/Release")


def npm_answers() -> bool:
    return runs("npm", "view", "llama.rn", "version") if shutil.which("npm") else reaches(f"{NPM}/llama.rn")


def mounts() -> bool:
    return runs("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt")


def preloads() -> bool:
    return all(map(gcc_library, SANITIZERS))


def gcc_library(name: str) -> str:
    """The path of a library of this machine's C++ compiler; "" if the compiler has no library of this name."""
    if not find_program("c++"):
        return ""
    run = subprocess.run(["c++", f"-print-file-name={name}"], capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 and Path(run.stdout.strip()).is_absolute() else ""
