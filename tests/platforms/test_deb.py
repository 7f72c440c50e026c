"""Debian's packages for a Raspberry Pi 4: made, checked by lintian, installed, and used under qemu-user."""

from collections.abc import Callable
from pathlib import Path

import pytest

import litebnn
from litebnn.contract import CUSTOM_OPS
from tests.emulated.test_emulated import GOLDEN
from tests.needs import need
from tests.platforms.test_sdk import CONSUMER, KINDS, check_run, done
from toolchains.binaries import floors
from toolchains.compilers import find_gcc
from toolchains.deb.packages import deb
from toolchains.emulate import SUITE, Emulation, apt
from toolchains.release.debian import control, fields, lintian
from toolchains.release.debian import installed as installed_by_apt
from toolchains.release.products import Failed, Product
from toolchains.runtime_library import C_LIBRARY, fetch_c_library
from toolchains.targets import BUILD, Target, find_target

pytestmark = [pytest.mark.deep, pytest.mark.needs("debhelper", "make", "pypi", "aarch64-linux-gnu-g++")]

MULTIARCH = "aarch64-linux-gnu"
LIBRARY = f"usr/lib/{MULTIARCH}/liblitebnn.so"
EXAMPLES = "usr/share/doc/litebnn-tools/examples"
PRODUCT = Product("deb", find_target("aarch64"))


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Makes the packages, and returns them by their names. The library is built without optimization, which is
    faster.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEB_BUILD_OPTIONS", "noopt")
        return {path.name.partition("_")[0]: path for path in deb("rpi4", tmp_path_factory.mktemp("deb"))}


@pytest.fixture(scope="module")
def installed(packages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is the root of a system in which dpkg has installed the packages. The packages on which they
    depend are elsewhere.
    """
    root = tmp_path_factory.mktemp("root")
    for name in ("info", "updates"):
        (root / "var/lib/dpkg" / name).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    done("dpkg", f"--root={root}", "--force-architecture,depends", "--install", *packages.values())
    return root


@pytest.fixture(scope="module")
def target() -> Target:
    return find_target("rpi4")


@pytest.fixture(scope="module")
def emulation(target: Target) -> Emulation:
    need("debian")
    return Emulation(target)


def test_there_are_three_packages_of_one_version(packages: dict[str, Path]) -> None:
    assert {*packages} == {"liblitebnn1", "liblitebnn-dev", "litebnn-tools"}
    for path in packages.values():
        assert control(PRODUCT, path)
    assert fields(packages["liblitebnn-dev"])["Depends"] == f"liblitebnn1 (= {litebnn.__version__})"
    assert {name: fields(path).get("Multi-Arch") for name, path in packages.items()} == {
        "liblitebnn1": "same",
        "liblitebnn-dev": "same",
        "litebnn-tools": None,
    }


@pytest.mark.needs("lintian")
def test_lintian_finds_no_error_and_no_warning(packages: dict[str, Path]) -> None:
    for path in packages.values():
        assert lintian(PRODUCT, path)


@pytest.mark.needs("debian")
def test_debian_has_everything_that_they_depend_on(packages: dict[str, Path], target: Target) -> None:
    # If one of the packages cannot be installed, apt-get fails.
    apt(BUILD / "deb-apt", target.debian, SUITE, ["install", "--simulate", *map(str, packages.values())])


def test_files_are_where_debian_has_them(installed: Path) -> None:
    wanted = [LIBRARY, f"{LIBRARY}.1", f"{LIBRARY}.1.{litebnn.__version__}", "usr/include/litebnn/litebnn.h"]
    wanted += [
        f"usr/lib/{MULTIARCH}/{name}" for name in ("liblitebnn.a", "pkgconfig/litebnn.pc", "litebnn/libLiteRt.so")
    ]
    for program in ("label_image", "benchmark_model", "run_model"):
        wanted += [f"usr/bin/{program}", f"usr/share/man/man1/{program}.1.gz"]
    wanted += [f"usr/share/doc/{name}/copyright" for name in ("liblitebnn1", "liblitebnn-dev", "litebnn-tools")]
    assert [name for name in wanted if not (installed / name).exists()] == []


def test_the_library_has_a_versioned_name_and_asks_for_no_more_than_its_package(
    installed: Path, packages: dict[str, Path]
) -> None:
    run = done("readelf", "--dynamic", installed / LIBRARY)
    assert "Library soname: [liblitebnn.so.1]" in run
    promised = fields(packages["liblitebnn1"])["Depends"].partition("libc6 (>= ")[2].partition(")")[0]
    asked = floors(installed / LIBRARY)["GLIBC"]
    assert tuple(map(int, asked.split("."))) <= tuple(map(int, promised.split(".")))


def test_programs_run_models(installed: Path, emulation: Emulation) -> None:
    examples = installed / EXAMPLES
    # The library of LiteRT needs dot product instructions, which older cores lack.
    cpu = "cortex-a76"
    flags = ["--labels", examples / "labels.txt", "--image", examples / "digit.bmp", "--lcompute", "1"]
    run = emulation.run(
        [installed / "usr/bin/label_image", "--tflite_model", examples / "digits.tflite", *flags], cpu=cpu
    )
    assert run.returncode == 0, run.stdout
    assert run.stdout.splitlines()[-1]
    model = GOLDEN / "conv_pool_bn_conv.lce.tflite"
    for flag in ("--lcompute=1", f"--external_delegate_path={installed / LIBRARY}.1"):
        run = emulation.run([installed / "usr/bin/benchmark_model", f"--graph={model}", "--num_runs=2", flag], cpu=cpu)
        assert run.returncode == 0, run.stdout


@pytest.fixture(scope="module")
def runtime(target: Target) -> Path:
    """TensorFlow Lite's C library for the target."""
    need("npm-registry")
    return fetch_c_library(target.name) / C_LIBRARY


@pytest.fixture(scope="module")
def emulated(installed: Path, runtime: Path, emulation: Emulation) -> Callable[..., str]:
    """A function that runs a program with the installed library and TensorFlow Lite, and returns what it printed."""

    def run(*command: str | Path) -> str:
        done = emulation.run(command, LD_LIBRARY_PATH=f"{(installed / LIBRARY).parent}:{runtime.parent}")
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


def test_programs_are_built_by_cmake(
    installed: Path, runtime: Path, emulated: Callable[..., str], target: Target, tmp_path: Path
) -> None:
    compiler = find_gcc(target)
    options = {
        **compiler.cmake_arguments,
        "CMAKE_PREFIX_PATH": str(installed / "usr"),
        "CMAKE_LIBRARY_ARCHITECTURE": MULTIARCH,
        "RUNTIME": str(runtime),
    }
    definitions = [f"-D{name}={value}" for name, value in options.items()]
    done(compiler.cmake, "-S", CONSUMER, "-B", tmp_path, *definitions)
    done(compiler.cmake, "--build", tmp_path)
    for kind in KINDS:
        check_run(tmp_path / f"run_with_{kind}", tmp_path, emulated)
        assert sorted(emulated(tmp_path / f"list_with_{kind}").split()) == sorted(CUSTOM_OPS)


@pytest.mark.needs("pkg-config")
@pytest.mark.parametrize("package", ["litebnn", "litebnn-static"])
def test_programs_are_built_by_pkg_config(
    installed: Path, runtime: Path, emulated: Callable[..., str], tmp_path: Path, package: str
) -> None:
    folder = f"{(installed / LIBRARY).parent}/pkgconfig"
    found = done("pkg-config", "--cflags", "--libs", package, PKG_CONFIG_LIBDIR=folder)
    program = tmp_path / "program"
    done(f"{MULTIARCH}-gcc", "-o", program, CONSUMER / "run_model.c", *found.split(), runtime)

    check_run(program, tmp_path, emulated)


@pytest.mark.long
@pytest.mark.needs("mmdebstrap", "namespaces", "debian", "lintian")
@pytest.mark.parametrize("name", ["x86_64", "aarch64", "armv7", "riscv64"])
def test_apt_installs_and_removes_the_packages_of_each_architecture(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = Product("deb", find_target(name))
    need(f"{product.target.triple}-g++")
    monkeypatch.setenv("DEB_BUILD_OPTIONS", "noopt")
    for path in deb(name, tmp_path):
        assert control(product, path)
        assert lintian(product, path)
        assert product.target.debian in installed_by_apt(product, path)


@pytest.mark.needs("lintian")
def test_lintians_findings_fail_the_check(packages: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "package"
    done("dpkg-deb", "--raw-extract", packages["litebnn-tools"], folder)
    (folder / "usr/share/man/man1/run_model.1.gz").unlink()
    spoilt = tmp_path / packages["litebnn-tools"].name
    done("dpkg-deb", "--root-owner-group", "--build", folder, spoilt)
    with pytest.raises(Failed, match="no-manual-page"):
        lintian(PRODUCT, spoilt)
