"""Tests how findings of `litebnn doctor` are merged, and the commands that they name."""

import shlex
import sys
from pathlib import Path

import pytest

from litebnn.doctor import finding
from litebnn.doctor.finding import MISSING, OK, Finding, pip_install, together, with_pip


def test_what_differs_in_its_name_alone_is_one_line() -> None:
    three = [Finding("S", "a", OK), Finding("S", "b", MISSING, "why", "pip install b"), Finding("S", "c", OK)]
    assert together(three) == [Finding("S", "a, c", OK), three[1]]


def test_apt_installs_all_by_one_command() -> None:
    clang = Finding("S", "clang", MISSING, "why", "apt install clang-19 llvm-19")
    llvm = Finding("S", "llvm", MISSING, "why", "apt install llvm-19")
    docker = Finding("S", "docker", MISSING, "why", "apt install docker.io && systemctl start docker")
    both = Finding("S", "clang, llvm", MISSING, "why", "apt install clang-19 llvm-19")
    assert together([clang, llvm, docker]) == [both, docker]


@pytest.mark.parametrize(("in_checkout", "is_installed"), [(True, True), (False, True), (False, False)])
def test_packages_are_installed_by_this_python(
    monkeypatch: pytest.MonkeyPatch, in_checkout: bool, is_installed: bool
) -> None:
    monkeypatch.setattr(finding, "IN_CHECKOUT", in_checkout)
    monkeypatch.setattr(finding, "is_installed", lambda: is_installed)
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(Path(sys.executable).parents[1])
    python = shlex.quote(str(Path(Path(sys.executable).parent.name, Path(sys.executable).name)))
    assert pip_install("'litebnn[cross]'") == f"{python} -m pip install 'litebnn[cross]'"
    assert with_pip("pip install a && pip install b") == f"{python} -m pip install a && {python} -m pip install b"
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert pip_install("a") == "pip install a"


def test_a_checkout_without_litebnn_gets_its_environment_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "IN_CHECKOUT", True)
    monkeypatch.setattr(finding, "is_installed", lambda: False)
    python = ".venv/Scripts/python.exe" if sys.platform == "win32" else ".venv/bin/python"
    made = f"python3 bootstrap.py --list && {python} -m pip install a"
    assert with_pip("pip install a && pip install b") == f"{made} && {python} -m pip install b"
    assert with_pip("apt install a") == "apt install a"
    assert with_pip("build/venv/bin/pip install a") == "build/venv/bin/pip install a"
