"""Who vouches for the key of a host that is not in known_hosts yet: the user, who sees its fingerprint, or nobody."""

import base64
import hashlib
import sys
import threading
from pathlib import Path
from typing import Any


class BoardError(OSError):
    """A board cannot be reached or cannot do something, in one line."""


# Boards may be connected to at once; the user is asked for one after the other.
_asking = threading.Lock()


def fingerprint(key: Any) -> str:
    """The fingerprint of a key as `ssh-keygen -l` shows it, such as SHA256:Rl...; `key` is one of paramiko's."""
    digest = hashlib.sha256(key.asbytes()).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


class VouchedFor:
    """paramiko's policy for hosts that are not known: a key that is accepted is written down, any other is refused."""

    def __init__(self, accepted: str) -> None:
        """`accepted` are fingerprints, with commas; without one, the user is asked at the terminal."""
        self._accepted = [each for each in accepted.split(",") if each]

    def missing_host_key(self, client: Any, name: str, key: Any) -> None:
        """Returns where the connection may go on.

        Raises:
            BoardError: nobody vouches for the key.
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
    """What the user answers, where there is a terminal to ask at."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    with _asking:
        answer = input(f"{name} is not known. Its {key.get_name()} key is {found}. Connect, and remember it? [y/N] ")
    return answer.strip().lower() in ("y", "yes")


def _write_down(name: str, key: Any) -> None:
    known = Path.home() / ".ssh" / "known_hosts"
    known.parent.mkdir(mode=0o700, exist_ok=True)
    known.touch(mode=0o600)
    # The last line of a file that an editor wrote may not end.
    text = known.read_bytes()
    start = b"" if text.endswith(b"\n") or not text else b"\n"
    with known.open("ab") as file:
        file.write(start + f"{name} {key.get_name()} {key.get_base64()}\n".encode())
