"""Installs packages by apt in a fresh Debian of their architecture, and runs their programs there.

mmdebstrap makes the Debian in a temporary folder, which it removes at the end. Programs of other CPUs run under
qemu-user.
"""

import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from toolchains.compilers import find_gcc
from toolchains.deb import namespace
from toolchains.emulate import recent_emulator
from toolchains.probes import DEBIAN, KEYRING, debian_architecture
from toolchains.targets import Target, ToolkitError

# For an architecture that this machine's release of Debian may lack, the first release that has it.
FIRST_SUITE = {"riscv64": "trixie"}
# A program that uses the installed library. It is compiled here, against the headers of liblitebnn-dev.
PROGRAM = """\
#include <litebnn/litebnn.h>
#include <stdio.h>
int main(void) {
  struct TfLiteDelegate* delegate = tflite_plugin_create_delegate(NULL, NULL, 0, NULL);
  if (delegate == NULL) return 1;
  tflite_plugin_destroy_delegate(delegate);
  printf("version %s\\n", litebnn_version());
}
"""
# The commands that a user would run, with the packages in /trial. Only some architectures have the example's programs.
SCRIPT = """\
set -e
apt-get install --yes --no-install-recommends /trial/*.deb
/trial/program
if [ -e /usr/bin/label_image ]; then
  cd /usr/share/doc/litebnn-tools/examples
  label_image --tflite_model digits.tflite --labels labels.txt --image digit.bmp --lcompute 1 --num_results 1
  benchmark_model --graph=digits.tflite --num_runs=2 --external_delegate_path=$(ls /usr/lib/*/liblitebnn.so.1)
fi
apt-get remove --yes liblitebnn1
if ls /usr/lib/*/liblitebnn.so*; then exit 1; fi
echo removed
"""


def suite(target: Target) -> str:
    """The release of Debian in which the packages are tried: this machine's, or the first with the architecture."""
    if target.debian in FIRST_SUITE:
        return FIRST_SUITE[target.debian]
    return platform.freedesktop_os_release().get("VERSION_CODENAME", "stable")


def try_packages(target: Target, packages: Sequence[Path]) -> str:
    """Installs packages, runs their programs, and removes the packages; returns what was printed.

    Args:
        target: the target for which the packages were made (`debian_target`).
        packages: paths of liblitebnn1 and liblitebnn-dev, and of litebnn-tools if it exists.

    Raises:
        ToolkitError: Debian or an emulator cannot be fetched, or a command failed; the message has its last lines.
    """
    with tempfile.TemporaryDirectory(prefix="litebnn-debian") as temporary:
        folder = Path(temporary, "trial")
        folder.mkdir()
        for package in packages:
            shutil.copy2(package, folder)
        (folder / "script").write_text(SCRIPT, encoding="utf-8")
        program = _compile(target, packages, Path(temporary))
        shutil.copy2(program, folder)
        hook = f'cp -r {shlex.quote(str(folder))} "$1/trial" && chroot "$1" sh /trial/script'
        command = [
            *("mmdebstrap", "--mode=root", "--variant=apt", "--format=null", f"--keyring={KEYRING}"),
            *(f"--architectures={target.debian}", f"--customize-hook={hook}", suite(target), "-", DEBIAN),
        ]
        run = namespace.run(
            command, _registration(target, program), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace"
        )
    if run.returncode or "\nremoved\n" not in run.stdout:
        raise ToolkitError(f"in Debian for {target.debian}: {' '.join(run.stdout.splitlines()[-20:])}")
    return str(run.stdout)


def _compile(target: Target, packages: Sequence[Path], folder: Path) -> Path:
    """Compiles PROGRAM against the packages' files, without installing the packages on this machine."""
    for package in packages:
        subprocess.run(["dpkg-deb", "--extract", package, folder / "files"], check=True)
    source, program = folder / "program.c", folder / "program"
    source.write_text(PROGRAM, encoding="utf-8")
    library = next((folder / "files" / "usr" / "lib").glob("*/liblitebnn.so"))
    compiler = find_gcc(target).cmake_arguments["LITEBNN_TRIPLE"] + "-gcc"
    options = [f"-I{folder / 'files' / 'usr' / 'include'}", f"-L{library.parent}", "-llitebnn"]
    # The program is linked although liblitebnn.so needs symbols of libraries that this machine may lack. On the Debian
    # system where the program runs, apt installs these libraries.
    command = [compiler, "-o", program, source, *options, "-Wl,--unresolved-symbols=ignore-in-shared-libs"]
    run = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if run.returncode:
        raise ToolkitError(f"a program cannot be built with liblitebnn-dev: {' '.join(run.stderr.split())}")
    return program


def _registration(target: Target, program: Path) -> str:
    if debian_architecture() == target.debian:
        return ""
    return namespace.registration(target.emulator, recent_emulator(target), program.read_bytes())


def found(printed: str) -> dict[str, str]:
    """The programs' results by the keys `version` and `digit` for the first line of label_image."""
    patterns = {"version": r"^version (.+)$", "digit": r"^[\d.e+-]+: (\d+)"}
    matches = {name: re.search(pattern, printed, re.MULTILINE) for name, pattern in patterns.items()}
    return {name: match[1] for name, match in matches.items() if match}
