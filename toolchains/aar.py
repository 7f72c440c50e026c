"""Makes the archive for Android apps: dist/litebnn-VERSION.aar.

Usage:

    python -m toolchains.aar

The NDK compiles the library and the native methods of android/org/litebnn/LitebnnDelegate.java for each Android target.
javac compiles the class. The archive also has the headers and the library for programs in C++, in the form of Prefab.
"""

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

from toolchains.build import build, work_folder
from toolchains.choice import find_compiler
from toolchains.command_line import exit_code
from toolchains.needs import missing
from toolchains.parts import DATE
from toolchains.probes import find_program
from toolchains.targets import ROOT, VERSION, Target, ToolkitError, load_targets

ANDROID = ROOT / "android"
LIBRARY, NATIVE_METHODS = "liblitebnn.so", "liblitebnn_jni.so"
# The oldest version of Java. Android's tools read its class files without converting them.
JAVA_RELEASE = 8


def android_targets() -> list[Target]:
    """The targets whose libraries the archive has."""
    return [row for row in load_targets().values() if row.ndk_abi]


def aar() -> Path:
    """Builds the libraries and the class, and packs them; returns the archive's path.

    Raises:
        ToolkitError: the NDK or javac is missing, or a build failed.
    """
    if reason := missing("javac"):
        raise ToolkitError(reason)
    libraries: dict[Target, list[Path]] = {}
    for row in android_targets():
        library = build(row.name)
        libraries[row] = [library, work_folder(row, find_compiler(row, "auto")) / NATIVE_METHODS]
    (ROOT / "dist").mkdir(exist_ok=True)
    # The variable ANDROID_NDK_HOME names the NDK's folder. It is set, because the builds of the libraries have used the
    # compiler in that folder.
    ndk = ndk_version(Path(os.environ["ANDROID_NDK_HOME"]))
    return pack(libraries, ndk, compile_class(), ROOT / "dist")


def ndk_version(folder: Path) -> int:
    """The number of an NDK's release, such as 27.

    Raises:
        ToolkitError: the folder has no file with this number.
    """
    file = folder / "source.properties"
    found = re.search(r"^Pkg\.Revision *= *(\d+)", file.read_text() if file.is_file() else "", re.MULTILINE)
    if not found:
        raise ToolkitError(f"{file} does not say which NDK it is")
    return int(found[1])


def compile_class() -> dict[str, bytes]:
    """Compiles LitebnnDelegate.java; returns its class files by their paths in a JAR.

    Raises:
        ToolkitError: javac failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [find_program("javac"), "-Xlint:all,-options", "-Werror", f"--release={JAVA_RELEASE}", "-d", folder]
        sources = ["-implicit:none", "-sourcepath", ANDROID / "stubs", *ANDROID.glob("org/litebnn/*.java")]
        run = subprocess.run([*map(str, [*command, *sources])], capture_output=True, text=True)
        if run.returncode:
            raise ToolkitError(f"javac failed: {' '.join(run.stderr.split())}")
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in Path(folder).rglob("*.class")}


def pack(libraries: Mapping[Target, list[Path]], ndk: int, classes: Mapping[str, bytes], folder: Path) -> Path:
    """Packs an archive, FOLDER/litebnn-VERSION.aar; the same content gives the same file.

    Args:
        libraries: the files of each Android target.
        ndk: the number of the NDK's release that has built them.
        classes: class files by their paths.
        folder: an existing folder.
    """
    oldest = max(row.ndk_platform for row in libraries)
    manifest = (ANDROID / "AndroidManifest.xml.in").read_text(encoding="utf-8").replace("@MIN_SDK@", str(oldest))
    files: dict[str, bytes] = {
        "AndroidManifest.xml": manifest.encode(),
        "R.txt": b"",
        "proguard.txt": (ANDROID / "proguard.txt").read_bytes(),
        "META-INF/LICENSE": (ROOT / "LICENSE").read_bytes(),
        "classes.jar": _zip(classes),
        "prefab/prefab.json": _json(name="litebnn", schema_version=2, dependencies=[], version=VERSION),
        "prefab/modules/litebnn/module.json": _json(export_libraries=[], library_name="liblitebnn"),
    }
    for header in sorted((ROOT / "ops" / "include").rglob("*.h")):
        files[f"prefab/modules/litebnn/include/litebnn/{header.name}"] = header.read_bytes()
    for row, paths in libraries.items():
        abi = f"prefab/modules/litebnn/libs/android.{row.ndk_abi}"
        # The library's interface is C, so the library and the app's program may use different C++ libraries.
        files[f"{abi}/abi.json"] = _json(abi=row.ndk_abi, api=row.ndk_platform, ndk=ndk, stl="none", static=False)
        files |= {f"jni/{row.ndk_abi}/{path.name}": path.read_bytes() for path in paths}
        files[f"{abi}/{LIBRARY}"] = files[f"jni/{row.ndk_abi}/{LIBRARY}"]
    archive = folder / f"litebnn-{VERSION}.aar"
    whole = archive.with_suffix(".new")
    whole.write_bytes(_zip(files))
    return whole.replace(archive)


def _json(**content: object) -> bytes:
    return (json.dumps(content, indent=2, sort_keys=True) + "\n").encode()


def _zip(files: Mapping[str, bytes]) -> bytes:
    """A zip archive of files. All archives of litebnn give their files the same date."""
    day = datetime.fromtimestamp(DATE, timezone.utc).timetuple()[:6]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            member = zipfile.ZipInfo(name, day)
            member.external_attr = 0o644 << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, files[name])
    return content.getvalue()


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    argparse.ArgumentParser(prog="python -m toolchains.aar", description=(__doc__ or "").partition("\n")[0]).parse_args(
        arguments
    )
    return exit_code(lambda: print(aar().relative_to(ROOT)))


if __name__ == "__main__":
    sys.exit(main())
