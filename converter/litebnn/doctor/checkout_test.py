"""Tests the part of `litebnn doctor` for a source checkout, with each requirement hidden in turn."""

import sys

import pytest

import litebnn
from litebnn import system
from litebnn.doctor import BROKEN, MISSING, OK, checkout, packages
from litebnn.doctor.finding import pip_install
from toolchains import needs as needs_module
from toolchains import targets
from toolchains.needs import NEWEST_PYTHON, WITHOUT_DEPENDENCIES, Need, needs
from toolchains.targets import load_targets

SHOWN = [name for name, need in needs().items() if need.kind not in ("package", "network") and name != "library"]


def hide(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Makes the requirements in `names` appear missing, and all others installed."""

    def missing(name: str) -> str:
        return "hidden" if name in names else ""

    monkeypatch.setattr(checkout, "missing", missing)
    monkeypatch.setattr("toolchains.needs.missing", missing)


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_hidden_is_missing_with_its_command(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    hide(monkeypatch, name)
    found = {finding.name: finding for finding in checkout.look_at_checkout() if finding.state == MISSING}
    if name.endswith("-g++"):  # zig builds the same targets, except microcontrollers
        rows = load_targets().values()
        assert set(found) == {row.name for row in rows if row.is_bare_metal and f"{row.triple}-g++" == name}
    elif name == "ndk":
        assert found["android-arm64"].install == needs()["ndk"].install
    elif name == "conan":  # installed by this Python's pip, as extras are
        assert found[name].install == pip_install("conan")
    else:
        assert found[name].install == needs()[name].install


def test_what_has_no_wheels_for_this_python_names_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {
        name: Need(name, "package", "", f"pip install 'litebnn[{name}]'", newest_python=newest)
        for name, newest in (("old", (3, 9)), ("new", None))
    }
    for module in (checkout, needs_module):
        monkeypatch.setattr(module, "needs", lambda: rows)
    hide(monkeypatch, "old", "new")
    old, new = checkout.look_at_extras()
    assert old.detail.startswith("no wheels for Python 3.")
    assert (old.state, old.install) == (MISSING, "")
    assert (new.state, new.install) == (MISSING, pip_install("'litebnn[new]'"))


def test_a_target_is_built_by_any_of_its_toolchains(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "docker-engine", "arm-none-eabi-g++")
    found = {finding.name: finding for finding in checkout.look_at_checkout()}
    assert (found["rpi4"].state, found["rpi4"].detail) == (OK, "built by zig, gcc")
    cortex = [target for target in load_targets() if target.startswith("cortex-")]
    assert {target for target in load_targets() if found[target].state == MISSING} == set(cortex)
    assert {found[target].detail for target in cortex} == {"needs arm-none-eabi-g++"}


def test_builds_fetch_zig(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "cross", "docker-engine", "arm-linux-gnueabihf-g++")
    found = {finding.name: finding for finding in checkout.look_at_checkout()}
    assert (found["rpi4"].state, found["rpi4"].detail) == (OK, "built by zig (which the build fetches), gcc")
    assert (found["rpi3"].state, found["rpi3"].detail) == (OK, "built by zig (which the build fetches)")


def test_without_cmake_nothing_but_docker_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "cmake", "docker-engine")
    found = {finding.name: finding for finding in checkout.look_at_checkout()}
    assert all(found[target].install == "apt install cmake" for target in load_targets())


def test_a_python_that_reads_no_toml_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "toolchains.targets", None)
    found = {finding.name: finding for finding in checkout.look_at_checkout()}
    assert (found["targets"].state, found["targets"].install) == (MISSING, "python3 bootstrap.py targets")
    assert {"clang", "valgrind", "googletest"} <= found.keys()


@pytest.mark.parametrize("named", ["/bin/false", "/no/such/compiler", "false -O2"])
def test_a_compiler_that_does_not_run_is_broken(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("CXX", named)
    found = next(finding for finding in checkout.look_at_checkout() if finding.name == "c++")
    assert (found.state, found.install) == (BROKEN, "unset CXX")
    assert named.split()[0] in found.detail


def test_a_compiler_of_the_system_that_does_not_run_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(checkout, "cxx_program", lambda: "/bin/false")
    hide(monkeypatch)
    found = next(finding for finding in checkout.look_at_checkout() if finding.name == "c++")
    assert (found.state, found.install) == (BROKEN, "apt install --reinstall g++")


def test_pythons_of_extras_are_those_of_the_installed_doctor() -> None:
    assert packages.NEWEST_PYTHON == NEWEST_PYTHON
    here = {extra for extra, (_, oldest) in packages.APART.items() if sys.version_info >= oldest}
    assert here == set(WITHOUT_DEPENDENCIES)


def test_system_names_are_those_of_the_package() -> None:
    ours, theirs = targets.SYSTEMS, system.SYSTEMS
    assert ours.keys() == theirs.keys()
    for name, each in theirs.items():
        assert ours[name] == targets.System(each.library, each.litert, each.program_suffix)
    assert litebnn.__version__ == targets.VERSION
