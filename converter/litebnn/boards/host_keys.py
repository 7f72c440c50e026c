"""Acceptance of unknown host keys: the user confirms the fingerprint, or the connection is refused."""

import base64
import hashlib
import sys
import threading
from pathlib import Path
from typing import Any


class BoardError(OSError):
    """A failure of a board or of the connection to it, in one line."""


# The lock ensures that the user is asked one question at a time, although several boards may be connected at the same
# time.
_asking = threading.Lock()


def fingerprint(key: Any) -> str:
    """The fingerprint of a paramiko key as `ssh-keygen -l` shows it, such as SHA256:Rl..."""
    digest = hashlib.sha256(key.asbytes()).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


class VouchedFor:
    """A policy of the package paramiko for unknown hosts: accepted keys are stored in known_hosts, all others are
    refused."""

    def __init__(self, accepted: str) -> None:
        """`accepted` has the fingerprints of keys to accept, separated by commas. If it is empty, the user is asked
        at the terminal.
        """
        self._accepted = [each for each in accepted.split(",") if each]

    def missing_host_key(self, client: Any, name: str, key: Any) -> None:
        """Checks the key of an unknown host. Returns if the connection may continue.

        Raises:
            BoardError: the key is not accepted.
        """
        found = fingerprint(key)
        if not (found in self._accepted or (not self._accepted and _is_wanted(name, key, found))):
            expected = f", not {' or '.join(self._accepted)}" if self._accepted else ""
            raise BoardError(
                f"{name} is not known: its {key.get_name()} key is {found}{expected}; compare it with what "
                f"`ssh-keygen -lf` shows on the board, then give --accept-host-key={found}"
            )
        _write_down(name, key)


def _is_wanted(name: str, key: Any, found: str) -> bool:
    """True if the user accepts the key at the terminal; False if there is no terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    with _asking:
        answer = input(f"{name} is not known. Its {key.get_name()} key is {found}. Connect, and remember it? [y/N] ")
    return answer.strip().lower() in ("y", "yes")


def _write_down(name: str, key: Any) -> None:
    known = Path.home() / ".ssh" / "known_hosts"
    known.parent.mkdir(mode=0o700, exist_ok=True)
    known.touch(mode=0o600)
    # The last line of known_hosts may lack its newline, for example after a manual edit.
    text = known.read_bytes()
    start = b"" if text.endswith(b"\n") or not text else b"\n"
    with known.open("ab") as file:
        file.write(start + f"{name} {key.get_name()} {key.get_base64()}\n".encode())
