import struct
import subprocess
import sys

import pytest

from toolchains.deb import namespace

# The first bytes of files for 32-bit Arm: a program, and a shared library of another ABI.
PROGRAM = b"\x7fELF\1\1\1\0" + bytes(8) + struct.pack("<HH", 2, 40) + b"more"
LIBRARY = b"\x7fELF\1\1\1\3" + bytes(8) + struct.pack("<HH", 3, 40)


def matches(line: str, header: bytes) -> bool:
    """True if Linux, with this line of binfmt_misc, would run a file with this header by an emulator."""
    _, _, kind, _, magic, mask, _, flags = line.split(":")
    assert (kind, flags) == ("M", "F")
    wanted, bits = (bytes.fromhex(text.replace("\\x", "")) for text in (magic, mask))
    return all(byte & bit == want for byte, bit, want in zip(header, bits, wanted, strict=False))


@pytest.mark.parametrize("file", [PROGRAM, LIBRARY])
def test_a_line_is_for_programs_and_libraries_of_one_cpu(file: bytes) -> None:
    line = namespace.registration("qemu-arm", "/bin/qemu-arm", file)
    assert line.startswith(":qemu-arm:M::")
    assert line.endswith(":/bin/qemu-arm:F")
    assert matches(line, PROGRAM)
    assert matches(line, LIBRARY)
    assert not matches(line, PROGRAM[:18] + struct.pack("<H", 183))
    assert not matches(line, b"\x7fELF\2" + PROGRAM[5:])
    assert not matches(line, b"#!/bin/sh and more than twenty bytes")


def test_a_file_without_a_header_is_refused() -> None:
    with pytest.raises(ValueError, match="longer"):
        namespace.registration("qemu-arm", "/bin/qemu-arm", b"short")


@pytest.mark.needs("namespaces")
def test_an_emulator_is_registered_for_the_command_alone() -> None:
    """The stand-in for an emulator prints the path of the program that it is to run."""
    line = namespace.registration("litebnn-test", "/bin/echo", PROGRAM)
    code = f"""
import pathlib, subprocess, tempfile
with tempfile.TemporaryDirectory() as folder:
    program = pathlib.Path(folder, "program")
    program.write_bytes({PROGRAM + bytes(64)!r})
    program.chmod(0o755)
    try:
        print(subprocess.run([program], capture_output=True, text=True).stdout.strip().rpartition("/")[2])
    except OSError as error:
        print(error.strerror)
"""
    command = [sys.executable, "-c", code]
    found = [namespace.run(command, each, stdout=subprocess.PIPE).stdout.strip() for each in (line, "")]
    assert found == ["program", "Exec format error"]
