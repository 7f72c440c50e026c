"""Runs commands in a user namespace, in which programs for another CPU run under an emulator.

Linux 6.7 and newer have a list of emulators for each user namespace, so the emulator has no effect outside of the
namespace. The module imports only the standard library, because toolchains/needs.py imports it.
"""

import ctypes
import os
import subprocess
from collections.abc import Sequence

# Flags of unshare(2): a user namespace and a mount namespace.
NEW_NAMESPACES = 0x1000_0000 | 0x0002_0000
# The users and groups 0 to 65535 have the same numbers inside the namespace as outside.
SAME_IDS = "0 0 65536"
LIST = "/proc/sys/fs/binfmt_misc"
REGISTER = f'mount -t binfmt_misc binfmt_misc {LIST} && printf %s "$1" > {LIST}/register && shift && exec "$@"'

# The first 20 bytes of an ELF file say for which CPU the file is. The mask ignores the system's ABI (byte 7) and the
# difference between programs and shared libraries (byte 16).
HEADER = 20
MASK = bytes([0xFF] * 7 + [0] + [0xFF] * 8 + [0xFE] + [0xFF] * 3)


def registration(name: str, emulator: str, program: bytes) -> str:
    r"""The line that makes the kernel run programs for another CPU by an emulator.

    Args:
        name: the name of the entry in the kernel's list.
        emulator: path of the emulator. The kernel opens it at once, so it runs in other root folders too.
        program: the content of any ELF file for that CPU, of which the header is read.

    Example:
        >>> registration("qemu-arm", "/usr/bin/qemu-arm", b"\x7fELF\1\1\1" + bytes(9) + b"\3\0\x28\0")[:36]
        ':qemu-arm:M::\\x7f\\x45\\x4c\\x46\\x01\\'
    """
    header = bytes(byte & bits for byte, bits in zip(program[:HEADER], MASK, strict=True))
    magic, mask = ("".join(f"\\x{byte:02x}" for byte in each) for each in (header, MASK))
    return f":{name}:M::{magic}:{mask}:{emulator}:F"


def run(command: Sequence[str], line: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Runs a command as root of a new user namespace, with the kernel's line for an emulator.

    Args:
        command: the command and its arguments.
        line: what `registration` returns; "" for a program of this machine's CPU.
        options: further arguments of subprocess.run.
    """
    words = ["sh", "-c", REGISTER, "sh", line, *command] if line else [*command]
    return subprocess.run(words, preexec_fn=_enter, text=True, **options)  # type: ignore[call-overload,no-any-return]


def registers_emulators() -> bool:
    """True if this process may make such a namespace, and the kernel has a list of emulators for it."""
    command = ["mount", "-t", "binfmt_misc", "binfmt_misc", LIST]
    try:
        return run(command, "", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _enter() -> None:
    """Moves this process into a new user namespace.

    A process outside the namespace must write the map of users. A child that was forked before the move does this.
    """
    process = os.getpid()
    waiting, ready = os.pipe()
    if os.fork() == 0:
        os.read(waiting, 1)
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{process}/{name}", "w") as file:  # noqa: PTH123
                file.write(SAME_IDS)
        os._exit(0)
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_NAMESPACES):
        raise OSError(ctypes.get_errno(), "unshare")
    os.write(ready, b".")
    os.wait()
