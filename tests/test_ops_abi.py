"""Holds our declaration of the runtime's structures against the official headers, for every CPU with a compiler."""

import shutil
import subprocess
from pathlib import Path

import pytest

from toolchains.runtime_library import fetch
from toolchains.targets import ToolkitError

ROOT = Path(__file__).resolve().parents[1]
COMPILERS = ["g++", "aarch64-linux-gnu-g++", "arm-linux-gnueabihf-g++"]


@pytest.fixture(scope="module")
def headers() -> Path:
    """The official headers of TensorFlow Lite 2.9."""
    try:
        return fetch("x86_64") / "include"
    except ToolkitError as error:
        pytest.skip(f"the runtime's headers cannot be fetched: {error}")


def compile_against(headers: Path, compiler: str, *flags: str) -> subprocess.CompletedProcess[str]:
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}: install Debian's package of that name")
    command = [compiler, "-std=c++17", "-fsyntax-only", f"-I{ROOT / 'ops'}", f"-I{headers}", *flags]
    return subprocess.run([*command, str(ROOT / "ops/tests/abi_test.cc")], capture_output=True, text=True)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_offsets_are_those_of_the_official_headers(headers: Path, compiler: str) -> None:
    result = compile_against(headers, compiler)
    assert result.returncode == 0, result.stderr


def test_the_comparison_can_fail(headers: Path, tmp_path: Path) -> None:
    changed = tmp_path / "tensorflow/lite/c"
    changed.mkdir(parents=True)
    for header in (headers / "tensorflow/lite/c").glob("*.h"):
        text = header.read_text(encoding="utf-8")
        (changed / header.name).write_text(
            text.replace("int recommended_num_threads;", "void* impl2_; int recommended_num_threads;")
        )
    result = compile_against(tmp_path, "g++")
    assert result.returncode != 0
    assert "recommended_num_threads" in result.stderr
