"""Compares litebnn's declaration of the runtime's structures with the official headers, for every CPU with a
compiler."""

import subprocess
from pathlib import Path

import pytest

from tests.needs import need
from toolchains.runtime_library import fetch_c_library

ROOT = Path(__file__).resolve().parents[2]
COMPILERS = ["g++", "aarch64-linux-gnu-g++", "arm-linux-gnueabihf-g++"]


@pytest.fixture(scope="module")
def headers() -> Path:
    """The official headers of TensorFlow Lite 2.9."""
    need("npm-registry")
    return fetch_c_library("x86_64") / "include"


def compile_against(headers: Path, compiler: str, *flags: str) -> subprocess.CompletedProcess[str]:
    need(compiler)
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


OFFICIAL, OURS = '#include "tensorflow/lite/c/c_api.h"', '#include "litebnn/litebnn.h"'
# The program declares TfLiteInterpreterOptionsAddCustomOp itself, because its header c_api_experimental.h is not among
# the fetched headers.
PROGRAM = """
#ifdef __cplusplus
extern "C"
#endif
void TfLiteInterpreterOptionsAddCustomOp(TfLiteInterpreterOptions* options, const char* name,
                                         const struct TfLiteRegistration* registration, int min_version,
                                         int max_version);
TfLiteStatus add_all(TfLiteInterpreterOptions* options);
TfLiteStatus add_all(TfLiteInterpreterOptions* options) {
  size_t count;
  const LitebnnOp* ops = litebnn_ops(&count);
  for (size_t i = 0; i < count; ++i) {
    TfLiteInterpreterOptionsAddCustomOp(options, ops[i].name, ops[i].registration, 1, 1);
  }
  TfLiteInterpreterOptionsAddDelegate(options, tflite_plugin_create_delegate(0, 0, 0, 0));
  return litebnn_registration("LceBconv2d") && litebnn_version() ? kTfLiteOk : kTfLiteError;
}
"""


@pytest.mark.parametrize("includes", [(OFFICIAL, OURS), (OURS, OFFICIAL)])
@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_public_header_goes_with_the_official_ones(
    headers: Path, tmp_path: Path, includes: tuple[str, str], language: str
) -> None:
    need("gcc")
    source = tmp_path / "program.c"
    source.write_text("\n".join([*includes, PROGRAM]), encoding="utf-8")
    command = ["gcc", "-x", language, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'ops/include'}"]
    result = subprocess.run([*command, "-isystem", str(headers), str(source)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_the_public_header_stands_alone_in_c99(tmp_path: Path) -> None:
    need("gcc")
    source = tmp_path / "program.c"
    source.write_text(f"{OURS}\nconst char* version(void) {{ return litebnn_version(); }}\n", encoding="utf-8")
    flags = ["-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    result = subprocess.run(["gcc", *flags, f"-I{ROOT / 'ops/include'}", str(source)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
