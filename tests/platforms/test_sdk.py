"""Tests the development kit for C and C++: it is installed, moved, and used by other projects with CMake and
pkg-config."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.contract import CUSTOM_OPS
from litebnn.system import HERE
from tests.needs import need
from tests.support.cpp_builds import sharing_compiler
from toolchains.build import locked
from toolchains.compilers import find_gcc
from toolchains.probes import find_program
from toolchains.runtime_library import C_LIBRARY, fetch_c_library
from toolchains.targets import BUILD, ROOT, find_target

pytestmark = pytest.mark.deep

CONSUMER = Path(__file__).with_name("consumer")
GOLDEN = ROOT / "tests" / "golden" / "1x1"
KINDS = ("litebnn", "litebnn_static")


def done(*command: str | Path, **variables: str) -> str:
    """Runs a command, which must succeed, and returns what it printed."""
    run = subprocess.run([*command], capture_output=True, text=True, env=os.environ | variables)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The development kit, installed and then moved to another folder."""
    compiler, folder = sharing_compiler(), BUILD / "sdk"
    with locked(folder):
        done(*compiler.configure(folder))
        done(*compiler.compile(folder, "litebnn", "litebnn_static", "litebnn_ops", "litebnn_kernels"))
        first = tmp_path_factory.mktemp("first") / "kit"
        done(compiler.cmake, "--install", folder, "--prefix", first)
    return Path(shutil.move(first, tmp_path_factory.mktemp("moved") / "kit"))


@pytest.fixture(scope="module")
def runtime() -> Path:
    """The path of TensorFlow Lite's C library, whose functions LiteRT for Linux does not export."""
    need("npm-registry")
    return fetch_c_library("host") / C_LIBRARY


def check_run(program: Path, folder: Path, run: Callable[..., str] = done, **variables: str) -> None:
    """Runs a golden model in the example program of a user. Compares the output with the recorded output. `run`
    starts the program.
    """
    golden = np.load(f"{GOLDEN}.npz")
    (folder / "input").write_bytes(golden["input"].tobytes())
    version = run(program, f"{GOLDEN}.lce.tflite", folder / "input", folder / "output", **variables)
    assert version.split()[-1] == litebnn.__version__
    expected = golden["lce"]
    found = np.frombuffer((folder / "output").read_bytes(), expected.dtype).reshape(-1, *expected.shape[1:])
    expected = expected[: len(found)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * float(np.abs(expected).max()))


@pytest.mark.needs("make")
def test_it_is_found_by_cmake(kit: Path, runtime: Path, tmp_path: Path) -> None:
    compiler = find_gcc(find_target("host"))
    options = [f"-DCMAKE_PREFIX_PATH={kit}", f"-DRUNTIME={runtime}"]
    done(compiler.cmake, "-S", CONSUMER, "-B", tmp_path, *options)
    done(compiler.cmake, "--build", tmp_path)
    for kind in KINDS:
        check_run(tmp_path / f"run_with_{kind}", tmp_path)
        assert sorted(done(tmp_path / f"list_with_{kind}").split()) == sorted(CUSTOM_OPS)


@pytest.mark.needs("make")
def test_another_minor_version_is_refused(kit: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(CONSUMER, project)
    lists = project / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("litebnn 0.1", "litebnn 0.2"))
    cmake = find_gcc(find_target("host")).cmake
    options = [f"-DCMAKE_PREFIX_PATH={kit}"]
    run = subprocess.run([cmake, "-S", project, "-B", tmp_path / "build", *options], capture_output=True, text=True)
    assert run.returncode != 0
    assert f"version: {litebnn.__version__}" in run.stderr


@pytest.mark.needs("pkg-config", "gcc")
@pytest.mark.parametrize("package", ["litebnn", "litebnn-static"])
def test_it_is_found_by_pkg_config(kit: Path, runtime: Path, tmp_path: Path, package: str) -> None:
    (configuration,) = kit.rglob("litebnn.pc")
    # pkg-config finds a moved development kit too, because Debian's pkg-config adapts the prefix.
    found = done("pkg-config", "--cflags", "--libs", package, PKG_CONFIG_PATH=str(configuration.parent))
    assert str(kit) in str(Path(found.split("-I")[1].split()[0]).resolve())
    program = tmp_path / "program"
    done(str(find_program("gcc")), "-o", program, CONSUMER / "run_model.c", *found.split(), runtime)
    folders = f"{configuration.parent.parent}:{runtime.parent}"
    check_run(program, tmp_path, LD_LIBRARY_PATH=folders)
    if package == "litebnn-static":
        assert "liblitebnn" not in done("ldd", program, LD_LIBRARY_PATH=folders)


def test_the_library_has_a_version_in_its_name(kit: Path) -> None:
    library = next(kit.rglob(HERE.library))
    assert library.is_symlink()
    assert library.resolve().name == f"{HERE.library}.1.{litebnn.__version__}"
    assert (library.parent / f"{HERE.library}.1").exists()


@pytest.mark.long
@pytest.mark.needs("conan", "make")
@pytest.mark.parametrize("shared", [True, False])
def test_conan_builds_a_package_that_a_project_uses(tmp_path: Path, shared: bool) -> None:
    variables = {"CONAN_HOME": str(tmp_path), "PATH": f"{Path(find_program('cmake')).parent}:{os.environ['PATH']}"}
    conan = find_program("conan")
    # Conan builds inside the folder of the test package, so the test copies the package.
    project = shutil.copytree(CONSUMER, tmp_path / "consumer")
    done(conan, "profile", "detect", **variables)
    options = ["--settings=build_type=Debug", f"--options=litebnn/*:shared={shared}", "--build=missing", "--no-remote"]
    command = [conan, "create", ROOT, f"--test-folder={project}", *options]
    # The program's output is on stdout, and Conan's own lines are on stderr.
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    run = subprocess.run(command, text=True, env=os.environ | variables, **streams)
    printed = run.stdout
    assert run.returncode == 0, printed
    assert f"litebnn/{litebnn.__version__}" in printed
    assert sorted({line for line in printed.splitlines() if line in CUSTOM_OPS}) == sorted(CUSTOM_OPS)
