import os
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import pytest

from litebnn import system
from litebnn.runtime.find import find_library
from litebnn.system import HERE, SYSTEMS, give_name, lock, open_to_append


def test_names_of_this_system() -> None:
    assert HERE in SYSTEMS.values()
    assert {one.accelerator for one in SYSTEMS.values()} == {
        "libLiteRtGpuAccelerator.so",
        "libLiteRtGpuAccelerator.dylib",
        "libLiteRtGpuAccelerator.dll",
    }


def test_a_file_has_one_lock(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    first, second = (open_to_append(tmp_path / "file") for _ in range(2))
    lock(first)
    with pytest.raises(BlockingIOError):
        lock(second)
    os.close(first)
    lock(second)
    os.close(second)


class Msvcrt(types.ModuleType):
    """A stand-in for the Windows module msvcrt. Its locks belong to a handle, and cover bytes from the handle's
    position on.
    """

    LK_NBLCK = 2

    def __init__(self) -> None:
        super().__init__("msvcrt")
        self.locked: dict[int, int] = {}

    def locking(self, handle: int, mode: int, count: int) -> None:
        position = os.lseek(handle, 0, os.SEEK_CUR)
        assert (mode, count) == (self.LK_NBLCK, 1)
        if position in self.locked.values():
            raise PermissionError(13, "Permission denied")
        self.locked[handle] = position


def test_a_lock_on_windows_leaves_the_content_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    msvcrt = Msvcrt()
    monkeypatch.setitem(sys.modules, "msvcrt", msvcrt)
    monkeypatch.setattr(sys, "platform", "win32")
    (tmp_path / "file").write_text("content")
    first, second = (open_to_append(tmp_path / "file") for _ in range(2))
    lock(first)
    assert msvcrt.locked[first] > 2**32
    assert os.read(first, 7) == b"content"
    with pytest.raises(BlockingIOError):
        lock(second)
    os.close(first)
    os.close(second)


def test_windows_gets_a_copy_where_others_get_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("content")
    give_name(tmp_path / "file", tmp_path / "link")
    monkeypatch.setattr(sys, "platform", "win32")
    give_name(tmp_path / "file", tmp_path / "copy")
    assert [(tmp_path / name).is_symlink() for name in ("link", "copy")] == [True, False]
    assert (tmp_path / "copy").read_text() == "content"


# Modules and names that Python for Windows lacks.
ABSENT_MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "posix")
ABSENT_NAMES = {
    "os": ("O_CLOEXEC", "O_NONBLOCK", "sched_getaffinity", "fork", "getuid", "uname", "killpg", "mkfifo", "sysconf"),
    "signal": ("SIGHUP", "SIGKILL", "SIGALRM", "alarm", "setitimer"),
}


def run_as(platform: str, code: str, tmp_path: Path) -> str:
    """Runs code in a Python that pretends to run on `platform`, and lacks the modules that Python lacks there."""
    start = f"""
        import sys, os, signal, subprocess, tempfile, ctypes, numpy, flatbuffers, rich.console, shtab, importlib.abc
        import ai_edge_litert.interpreter

        class Absent(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path=None, target=None):
                if name in {ABSENT_MODULES!r}:
                    raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

        if {platform!r} == "win32":
            sys.meta_path.insert(0, Absent())
            for name in {ABSENT_MODULES!r}:
                sys.modules.pop(name, None)
            for name in {ABSENT_NAMES["os"]!r}:
                delattr(os, name)
            for name in {ABSENT_NAMES["signal"]!r}:
                delattr(signal, name)
        sys.platform = {platform!r}
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(start) + textwrap.dedent(code))
    run = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


# Packages that are not tested. Each needs a framework, and the framework's own code would not work on the simulated
# platform.
FRAMEWORKS = (
    *("litebnn.evaluate.dask", "litebnn.frontends.torch_forward", "litebnn.keras", "litebnn.model_explorer"),
    "litebnn.torch",
)

# Programs, and what a wheel cannot import.
NOT_IMPORTED = ("_test", "__main__", "doctor.checkout")
IMPORT_ALL = f"""
import importlib, pkgutil
import litebnn
for module in pkgutil.walk_packages(litebnn.__path__, "litebnn.", onerror=lambda name: None):
    if not module.name.startswith({FRAMEWORKS!r}) and not module.name.endswith({NOT_IMPORTED!r}):
        importlib.import_module(module.name)
print(sum(name.startswith("litebnn.") for name in sys.modules) > 100)
"""


@pytest.mark.needs("ai-edge-litert")
def test_every_module_imports_on_windows(tmp_path: Path) -> None:
    assert run_as("win32", IMPORT_ALL, tmp_path) == "True\n"


@pytest.mark.needs("ai-edge-litert")
@pytest.mark.parametrize(("platform", "name"), [("win32", "litebnn.dll"), ("darwin", "liblitebnn.dylib")])
def test_the_library_is_looked_for_under_its_name(platform: str, name: str, tmp_path: Path) -> None:
    code = """
    import litebnn
    import os
    os.environ.pop("LITEBNN_LIBRARY", None)
    try:
        litebnn.find_library()
    except FileNotFoundError as error:
        print(error)
    """
    assert run_as(platform, code, tmp_path).startswith(f"{name} not found (looked for ")


@pytest.mark.needs("ai-edge-litert", "library")
def test_a_model_runs_on_a_simulated_windows(tmp_path: Path) -> None:
    golden = Path(__file__).parents[2] / "tests" / "golden" / "1x1"
    code = f"""
    import litebnn
    from litebnn.runtime.isolated import run_apart
    values = numpy.load({f"{golden}.npz"!r})["input"]
    os.environ["LITEBNN_LIBRARY"] = {str(find_library())!r}
    result = litebnn.Interpreter({f"{golden}.lce.tflite"!r}).predict(values)
    print(result.shape[0] == len(values), run_apart("a sum", sum, [1, 2], seconds=60, memory=1 << 30))
    """
    assert run_as("win32", code, tmp_path) == "True 3\n"


def test_memory_is_limited_on_linux_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "resource", None)
    system.limit_memory(0)  # would leave no byte
