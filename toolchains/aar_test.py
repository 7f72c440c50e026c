import io
import json
import re
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.needs import need
from toolchains import aar
from toolchains.aar import ANDROID, LIBRARY, NATIVE_METHODS, android_targets, compile_class, ndk_version, pack
from toolchains.probes import find_program
from toolchains.targets import ROOT, VERSION, ToolkitError

CLASS = "org/litebnn/LitebnnDelegate.class"
NAMESPACE = "{http://schemas.android.com/apk/res/android}"


def stand_ins(folder: Path) -> dict:
    """Writes files that stand for the libraries of each Android target."""
    for name in (LIBRARY, NATIVE_METHODS):
        (folder / name).write_bytes(name.encode())
    return {row: [folder / LIBRARY, folder / NATIVE_METHODS] for row in android_targets()}


@pytest.fixture
def archive(tmp_path: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(pack(stand_ins(tmp_path), 27, {CLASS: b"class"}, tmp_path))


def test_its_name_has_the_version(tmp_path: Path) -> None:
    assert pack(stand_ins(tmp_path), 27, {}, tmp_path).name == f"litebnn-{VERSION}.aar"
    assert not list(tmp_path.glob("*.new"))


def test_an_app_finds_what_the_format_asks_for(archive: zipfile.ZipFile) -> None:
    files = {name: archive.read(name) for name in archive.namelist()}
    manifest = ElementTree.fromstring(files["AndroidManifest.xml"])
    assert manifest.get("package") == "org.litebnn"
    assert manifest[0].get(f"{NAMESPACE}minSdkVersion") == "24"
    assert zipfile.ZipFile(io.BytesIO(files["classes.jar"])).namelist() == [CLASS]
    assert {name for name in files if name.startswith("jni/")} == {
        "jni/arm64-v8a/liblitebnn.so",
        "jni/arm64-v8a/liblitebnn_jni.so",
    }
    assert files["META-INF/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert b"org.litebnn.LitebnnDelegate" in files["proguard.txt"]


def test_prefab_has_the_headers_and_the_library(archive: zipfile.ZipFile) -> None:
    assert json.loads(archive.read("prefab/prefab.json"))["version"] == VERSION
    module = "prefab/modules/litebnn"
    assert json.loads(archive.read(f"{module}/module.json"))["library_name"] == "liblitebnn"
    library = f"{module}/libs/android.arm64-v8a"
    written = json.loads(archive.read(f"{library}/abi.json"))
    assert written == {"abi": "arm64-v8a", "api": 24, "ndk": 27, "static": False, "stl": "none"}
    assert archive.read(f"{library}/liblitebnn.so") == b"liblitebnn.so"
    headers = {path.name for path in (ROOT / "ops" / "include" / "litebnn").glob("*.h")}
    inside = {name.rpartition("/")[2] for name in archive.namelist() if name.startswith(f"{module}/include/litebnn/")}
    assert inside == headers


def test_the_same_content_gives_the_same_file(tmp_path: Path) -> None:
    first = pack(stand_ins(tmp_path), 27, {CLASS: b"class", "other.class": b""}, tmp_path).read_bytes()
    assert pack(stand_ins(tmp_path), 27, {"other.class": b"", CLASS: b"class"}, tmp_path).read_bytes() == first


@pytest.mark.deep
@pytest.mark.needs("javac")
def test_javac_takes_the_class() -> None:
    (content,) = compile_class().items()
    assert content[0] == CLASS
    # The version of the class file's format: that of Java 8.
    assert int.from_bytes(content[1][6:8], "big") == 52


@pytest.mark.deep
@pytest.mark.needs("javac")
def test_the_native_methods_have_the_names_that_java_looks_for(tmp_path: Path) -> None:
    sources = ["-sourcepath", ANDROID / "stubs", *ANDROID.glob("org/litebnn/*.java")]
    subprocess.run([find_program("javac"), "-h", tmp_path, "-d", tmp_path, *sources], check=True)
    (header,) = tmp_path.glob("*.h")
    declared = re.findall(r"JNIEXPORT (\w+) JNICALL (\w+)\s*\(([^)]*)\)", header.read_text())
    source = (ANDROID / "litebnn_jni.cc").read_text()
    defined = re.findall(r"JNIEXPORT (\w+) JNICALL (\w+)\(([^)]*)\)", source)
    without_names = [(kind, name, [words.split()[0] for words in args.split(",")]) for kind, name, args in defined]
    spelled = [
        (kind, name, [words.replace(" *", "*").strip() for words in args.split(",")]) for kind, name, args in declared
    ]
    assert len(declared) == 3
    assert sorted(without_names) == sorted(spelled)


@pytest.mark.deep
@pytest.mark.needs("javac")
def test_javacs_error_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "org" / "litebnn").mkdir(parents=True)
    (tmp_path / "stubs").mkdir()
    (tmp_path / "org" / "litebnn" / "Wrong.java").write_text("class Wrong {")
    monkeypatch.setattr(aar, "ANDROID", tmp_path)
    with pytest.raises(ToolkitError, match=r"^javac failed: .*reached end of file"):
        compile_class()


def test_without_an_ndk_it_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    need("javac", "cmake")
    monkeypatch.delenv("ANDROID_NDK_HOME", raising=False)
    assert aar.main([]) == 1
    assert "android-arm64 is built with the Android NDK: set ANDROID_NDK_HOME to its folder" in capsys.readouterr().err


def test_the_ndk_says_its_version(tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match="does not say which NDK it is"):
        ndk_version(tmp_path)
    (tmp_path / "source.properties").write_text("Pkg.Desc = Android NDK\nPkg.Revision = 27.2.12479018\n")
    assert ndk_version(tmp_path) == 27
