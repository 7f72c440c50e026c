import subprocess
import sys
from pathlib import Path

import pytest

from litebnn.runtime import find


def test_the_named_library_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "mine.so"
    library.write_bytes(b"")
    monkeypatch.setenv("LITEBNN_LIBRARY", str(library))
    assert find.find_library() == library.resolve()


def test_a_named_library_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITEBNN_LIBRARY", "/nowhere/liblitebnn.so")
    with pytest.raises(FileNotFoundError, match="LITEBNN_LIBRARY names /nowhere/liblitebnn.so"):
        find.find_library()


def test_a_missing_library_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LITEBNN_LIBRARY", raising=False)
    monkeypatch.setattr(find, "LIBRARY_NAME", "libnowhere.so")
    with pytest.raises(FileNotFoundError, match="invoke build --target=host"):
        find.find_library()


def test_runtimes_are_tried_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "RUNTIMES", {"absent": "no_such_package.interpreter", "present": "json.decoder"})
    assert find.find_runtime().__name__ == "json.decoder"


def test_an_unknown_runtime_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected one of ai-edge-litert, tflite-runtime, tensorflow"):
        find.find_runtime("pytorch")


def test_an_absent_runtime_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "RUNTIMES", {"absent": "no_such_package.interpreter"})
    with pytest.raises(ImportError, match="pip install absent"):
        find.find_runtime()


def test_importing_the_package_imports_no_runtime() -> None:
    heavy = "{'tensorflow', 'ai_edge_litert', 'tflite_runtime', 'keras'}"
    code = f"import sys, litebnn; dir(litebnn); sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("numpy", "runtime", "works"), [("2.0.1", "2.14.0", False), ("1.26.4", "2.14.0", True), ("2.1", "2.17.0", True)]
)
def test_the_last_tflite_runtime_needs_numpy_1(
    monkeypatch: pytest.MonkeyPatch, numpy: str, runtime: str, works: bool
) -> None:
    monkeypatch.setattr(find, "RUNTIMES", {"tflite-runtime": "json.decoder"})
    monkeypatch.setattr(find, "version", {"numpy": numpy, "tflite-runtime": runtime}.__getitem__)
    if works:
        assert find.find_runtime("tflite-runtime").__name__ == "json.decoder"
    else:
        with pytest.raises(
            ImportError, match=r"^tflite-runtime 2\.14\.0 works with NumPy 1 only: pip install 'numpy<2'$"
        ):
            find.find_runtime("tflite-runtime")
