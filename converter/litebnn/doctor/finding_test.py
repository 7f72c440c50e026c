"""Tests how findings of `litebnn doctor` are merged."""

from litebnn.doctor.finding import MISSING, OK, Finding, together


def test_what_differs_in_its_name_alone_is_one_line() -> None:
    three = [Finding("S", "a", OK), Finding("S", "b", MISSING, "why", "pip install b"), Finding("S", "c", OK)]
    assert together(three) == [Finding("S", "a, c", OK), three[1]]


def test_apt_installs_all_by_one_command() -> None:
    clang = Finding("S", "clang", MISSING, "why", "apt install clang-19 llvm-19")
    llvm = Finding("S", "llvm", MISSING, "why", "apt install llvm-19")
    docker = Finding("S", "docker", MISSING, "why", "apt install docker.io && systemctl start docker")
    both = Finding("S", "clang, llvm", MISSING, "why", "apt install clang-19 llvm-19")
    assert together([clang, llvm, docker]) == [both, docker]
