"""Tests the Java class of Android's archive, and its native methods, in this machine's Java."""

import subprocess
from pathlib import Path

import pytest

import litebnn
from tests.support.cpp_builds import sharing_compiler
from toolchains.aar import compile_class
from toolchains.build import locked
from toolchains.probes import find_program
from toolchains.targets import BUILD, ROOT

pytestmark = [pytest.mark.deep, pytest.mark.needs("javac")]

# The folder of a build that test_sdk.py shares, because both tests compile the same library.
FOLDER = BUILD / "sdk"
PROGRAM = """\
import java.util.HashMap;
import java.util.Map;
import org.litebnn.LitebnnDelegate;
import org.tensorflow.lite.Delegate;

class Program {
  static void print(String what, Runnable action) {
    try {
      action.run();
      System.out.println(what + ": nothing is thrown");
    } catch (RuntimeException exception) {
      System.out.println(what + ": " + exception.getClass().getSimpleName() + ": " + exception.getMessage());
    }
  }

  public static void main(String[] arguments) {
    System.out.println("version: " + LitebnnDelegate.version());
    for (int i = 0; i + 1 < arguments.length; i += 2) {
      Map<String, String> options = new HashMap<>();
      options.put(arguments[i], arguments[i + 1].equals("null") ? null : arguments[i + 1]);
      print(arguments[i] + "=" + arguments[i + 1], () -> new LitebnnDelegate(options).close());
    }
    LitebnnDelegate first = new LitebnnDelegate();
    Delegate second = new LitebnnDelegate();
    long handle = first.getNativeHandle();
    boolean same = handle != 0 && handle == first.getNativeHandle();
    System.out.println("handles: " + (same && handle != second.getNativeHandle()));
    first.close();
    first.close();
    print("closed", first::getNativeHandle);
    print("open", second::getNativeHandle);
    second.close();
  }
}
"""


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the class, of TensorFlow Lite's interface and of PROGRAM."""
    folder = tmp_path_factory.mktemp("classes")
    for name, content in compile_class().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "Program.java").write_text(PROGRAM)
    path = f"{folder}:{ROOT / 'android' / 'stubs'}"
    subprocess.run([find_program("javac"), "-cp", path, "-d", folder, folder / "Program.java"], check=True)
    return folder


@pytest.fixture(scope="module")
def natives() -> Path:
    """The folder that contains the native library."""
    compiler = sharing_compiler()
    with locked(FOLDER):
        for command in (
            compiler.configure(FOLDER, LITEBNN_BUILD_JNI="ON"),
            compiler.compile(FOLDER, "litebnn_jni"),
        ):
            run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            assert run.returncode == 0, run.stdout[-4000:]
    return FOLDER


def test_java_makes_and_frees_delegates(classes: Path, natives: Path) -> None:
    options = ["num_threads", "2", "isa", "portable", "num_threads", "no", "colour", "red", "isa", "null"]
    # The option -Xcheck:jni makes the virtual machine check the arguments of all JNI calls.
    java = [find_program("java"), "-Xcheck:jni", f"-Djava.library.path={natives}", "-cp", classes, "Program", *options]
    run = subprocess.run(java, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    lines = dict(line.split(": ", 1) for line in run.stdout.splitlines())
    assert lines["version"] == litebnn.__version__
    assert lines["handles"] == "true"
    assert lines["num_threads=2"] == lines["isa=portable"] == lines["open"] == "nothing is thrown"
    assert lines["closed"] == "IllegalStateException: the litebnn delegate is closed"
    assert lines["num_threads=no"].startswith("IllegalArgumentException: ")
    assert "num_threads" in lines["num_threads=no"]
    assert lines["colour=red"].startswith("IllegalArgumentException: ")
    assert "colour" in lines["colour=red"]
    assert lines["isa=null"] == "IllegalArgumentException: an option's key or value is null"
