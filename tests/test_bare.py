"""Tests that the quick tier does not fail on a machine that lacks any one of the optional tools.

CI also tries a machine that lacks all of these tools. On that machine, a test that needs two tools is skipped, even if
it does not check for one of them. Therefore the tests of this file hide only one tool at a time. CI has
just run the tests of the quick tier without any tool. Those that passed do not look for a tool, so it tries here only
those that were skipped.
"""

import functools
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.needs import need
from toolchains.needs import needs
from toolchains.targets import ROOT

pytestmark = [pytest.mark.deep, pytest.mark.needs("mounts")]
BARE = ROOT / ".ci" / "bare"
TOOLS = [name for name, row in needs().items() if row.install.startswith("apt install") and (row.programs or row.files)]
# The modules of test helpers that need tools, and the names of these tools in toolchains/needs.py. A test that uses
# such a helper needs its tools.
HELPERS = {"cpp_builds": ("googletest", "clang"), "sshd": ("sshd",), "browser": ("chromium",)}
# The patterns of a test's calls of `need` that compute the tool's name, and parts of the names that they may compute.
# Only compilers and emulators are required in this way.
COMPUTED = {r'need\((?:f"[^"]*g\+\+"|compiler)': ("g++", "clang"), r"need\(.*target\.emulator": ("qemu",)}


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True)


def files_that_need(name: str) -> list[Path]:
    """The test files to run for a tool. They name the tool, compute its name, or take the name from a helper."""
    words = [f'"{re.escape(name)}"', *(each for each, tools in HELPERS.items() if name in tools)]
    words += [pattern for pattern, parts in COMPUTED.items() if any(part in name for part in parts)]
    files = [*(ROOT / "converter").rglob("*_test.py"), *(ROOT / "toolchains").glob("*_test.py")]
    files += [path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    return sorted(path for path in files if re.search("|".join(words), path.read_text(encoding="utf-8")))


@functools.cache
def quick_tests() -> dict[Path, list[str]]:
    """The tests of the quick tier, by file, in the files that need any of TOOLS. The other test files need not run, and
    for pytest, reading them takes longer than running the quick tests.
    """
    files = sorted({path for name in TOOLS for path in files_that_need(name)})
    options = ("--collect-only", "-q", "-p", "no:cacheprovider", "-m", "not deep and not long")
    found = run(sys.executable, "-m", "pytest", *options, *files)
    assert found.returncode == 0, found.stdout[-8000:]
    tests: dict[Path, list[str]] = defaultdict(list)
    for test in found.stdout.splitlines():
        if (path := ROOT / test.split("::")[0]) in files:
            tests[path].append(test)
    return tests


@functools.cache
def hidden_by_default() -> set[str]:
    listed = run(sys.executable, "-c", f"import runpy; print(*runpy.run_path({str(BARE)!r})['hidden']())")
    return set(listed.stdout.split())


@pytest.mark.parametrize("name", TOOLS)
def test_the_quick_tier_does_without(name: str, passed_bare: set[str]) -> None:
    need(name)
    if name not in hidden_by_default():
        pytest.skip("README asks for it, by another name, or pip brings it")
    look = f"import sys; from toolchains.needs import missing; sys.exit(not missing({name!r}))"
    assert run(BARE, f"--hide={name}", sys.executable, "-c", look).returncode == 0
    tests = [test for path in files_that_need(name) for test in quick_tests().get(path, ()) if test not in passed_bare]
    if tests:
        done = run(BARE, f"--hide={name}", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
        assert done.returncode == 0, done.stdout[-8000:]


def test_files_with_quick_tests_are_found() -> None:
    assert {ROOT / "toolchains" / "needs_test.py", ROOT / "tests" / "ops" / "test_abi.py"} <= quick_tests().keys()


def test_a_bare_machine_has_what_readme_asks_for_and_none_of_the_tools() -> None:
    look = "import sys; from toolchains.needs import missing; print(*filter(missing, sys.argv[1:]))"
    found = run(BARE, sys.executable, "-c", look, *sorted(hidden_by_default()))
    assert found.returncode == 0, found.stderr
    assert set(found.stdout.split()) == hidden_by_default()
    for program in ("c++ --version", "cmake --version", "python3 --version"):
        assert run(BARE, *program.split()).returncode == 0
