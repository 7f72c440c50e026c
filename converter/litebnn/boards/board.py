"""A machine at the other end of an SSH connection."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from litebnn.boards.host_keys import BoardError, VouchedFor
from litebnn.errors import reason_of

# The forms in which Fabric accepts the address of a host: [USER@]HOST[:PORT], or [USER@] and an IPv6 address without a
# port. An address with at least two colons is an IPv6 address.
_HOST = re.compile(r"(.+@)?([^@:]+(:(?P<port>\d{1,5}))?|(?=.*:.*:)[0-9a-fA-F:]+)")

_CONNECT_SECONDS, _KEEPALIVE_SECONDS, _DEAD_SECONDS = 15, 15, 60


class Board:
    """The machine at the other end of an SSH connection.

    Attributes:
        host: the address that the user gave, in the form [USER@]HOST[:PORT].
        connection: the connection, an object of the package Fabric.
    """

    def __init__(self, host: str, identity: Path | None = None, accepted_key: str = "") -> None:
        """Connects to [USER@]HOST[:PORT], with the private key `identity` or as `ssh` would.

        Raises:
            BoardError: Fabric is not installed, `identity` is not a key, no connection can be made, or the host's key
                is not accepted.
        """
        named = _HOST.fullmatch(host)
        if named is None or int(named["port"] or 22) not in range(1, 1 << 16):
            raise BoardError(f"--host={host}: expected [USER@]HOST[:PORT]")
        try:
            from fabric import Connection
            from paramiko import PKey, SSHException
            from paramiko.hostkeys import InvalidHostKey
            from paramiko.pkey import UnknownKeyType
        except ImportError as error:
            raise BoardError("deploying needs Fabric: pip install 'fabric>=3.2' (litebnn's extra `deploy`)") from error
        self.host = host
        self._failures: tuple[type[Exception], ...] = (OSError, EOFError, ValueError, SSHException, InvalidHostKey)
        try:
            options: dict[str, Any] = {"pkey": PKey.from_path(identity)} if identity else {}
        except (*self._failures, TypeError, UnknownKeyType) as error:
            raise BoardError(f"--identity={identity} cannot be used as a private key: {one_line(error)}") from error
        try:
            options["channel_timeout"] = _CONNECT_SECONDS
            self.connection = Connection(host, connect_timeout=_CONNECT_SECONDS, connect_kwargs=options)
            # The connection may lead through gateways. The host keys of the gateways are checked too, because they
            # forward the data.
            hop = self.connection
            while hasattr(hop, "client"):
                # The known host keys are loaded, so that a host whose key has changed is refused.
                hop.client.load_system_host_keys()
                hop.client.set_missing_host_key_policy(VouchedFor(accepted_key))
                hop = hop.gateway
            self.connection.open()
            _end_when_dead(self.connection.transport)
        except BoardError:
            raise
        except self._failures as error:
            hint = "; ssh must reach it without a password" if isinstance(error, SSHException) else ""
            raise BoardError(f"cannot connect to {host}: {one_line(error)}{hint}") from error

    def run(self, command: str) -> Any:
        """Runs a command; the result has `stdout`, `stderr` and `exited`.

        Raises:
            BoardError: the connection broke.
        """
        try:
            return self.connection.run(command, hide=True, warn=True, in_stream=False)
        except self._failures as error:
            raise BoardError(f"the connection to {self.host} broke: {one_line(error)}") from error

    def check(self, command: str, what: str) -> str:
        """Runs a command and returns its stdout; `what` names the purpose in messages.

        Raises:
            BoardError: the command failed; the message has its last line of output.
        """
        result = self.run(command)
        if result.exited:
            lines = (result.stderr or result.stdout).strip().splitlines()
            raise BoardError(f"{self.host} cannot {what}: {lines[-1] if lines else f'exit code {result.exited}'}")
        return str(result.stdout).strip()

    def put(self, file: Path, path: str) -> None:
        """Copies a file to the board."""
        with file.open("rb") as content:
            self.put_content(content, path, file.name)

    def put_content(self, content: BinaryIO, path: str, name: str) -> None:
        """Copies the content of a stream to the board; `name` is for messages."""
        try:
            # Fabric's own functions would replace braces in a path, so this method calls SFTP directly.
            self.connection.sftp().putfo(content, path)
        except self._failures as error:
            raise BoardError(f"cannot copy {name} to {self.host}: {one_line(error)}; is its disk full?") from error

    def get(self, path: str, file: Path) -> None:
        """Copies a file from the board, whole or not at all."""
        part = file.with_name(f".{file.name}.part")
        try:
            self.connection.sftp().get(path, str(part))
            part.replace(file)
        except self._failures as error:
            raise BoardError(f"cannot fetch {path} from {self.host}: {one_line(error)}") from error
        finally:
            part.unlink(missing_ok=True)

    @contextmanager
    def failing(self, what: str) -> Iterator[None]:
        """Adds the name of the board and the purpose `what` to errors that the code in the `with` block raises.

        Raises:
            BoardError: the connection or the board failed inside the block.
        """
        try:
            yield
        except BoardError:
            raise
        except self._failures as error:
            raise BoardError(f"{self.host} cannot {what}: {one_line(error)}") from error

    def open_channel(self) -> Any:
        """Opens a channel of the package paramiko, in which a program can run."""
        return self.connection.create_session()

    def close(self) -> None:
        """Closes the connection to the board."""
        self.connection.close()


def _end_when_dead(transport: Any) -> None:
    """Enables TCP keepalive, so that a connection to a board without power or network breaks instead of hanging."""
    transport.set_keepalive(_KEEPALIVE_SECONDS)
    # A connection through a gateway is not a socket; only the connection to the gateway is one.
    if isinstance(transport.sock, socket.socket):
        transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _DEAD_SECONDS)


def one_line(error: Exception) -> str:
    """The message of an exception without line breaks and errno, or its class name if the message is empty."""
    return " ".join(reason_of(error).split()) or type(error).__name__
