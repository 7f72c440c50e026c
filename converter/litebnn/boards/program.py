"""A program that runs on a board, with its stdin and stdout at this end."""

from __future__ import annotations

from litebnn.boards.board import Board
from litebnn.boards.host_keys import BoardError

_CHUNK = 1 << 20


class Program:
    """Starts a command on a board.

    Args:
        board: where.
        command: what the board's shell is told.
        seconds: how long the board may be silent where something is expected of it.

    Raises:
        BoardError: here and from every method: the connection broke, the program ended, or the board was silent for too
            long; the message names the board.
    """

    def __init__(self, board: Board, command: str, seconds: float) -> None:
        self._board, self._seconds = board, seconds
        with board.failing("run a program"):
            self._channel = board.open_channel()
            self._channel.settimeout(seconds)
            self._channel.exec_command(command)

    def write(self, content: bytes) -> None:
        """Sends bytes to the program's stdin."""
        with self._board.failing("be sent a sample"):
            try:
                self._channel.sendall(content)
            except TimeoutError:
                raise self._silence() from None
            except OSError:
                raise self._ending() from None

    def read(self, size: int) -> bytes:
        """So many bytes of the program's stdout."""
        content = bytearray()
        with self._board.failing("be read from"):
            while len(content) < size:
                try:
                    part = self._channel.recv(min(_CHUNK, size - len(content)))
                except TimeoutError:
                    raise self._silence() from None
                if not part:
                    raise self._ending()
                content += part
        return bytes(content)

    def close(self) -> None:
        """Ends the program's stdin, and with it the program."""
        self._channel.close()

    def _silence(self) -> BoardError:
        return BoardError(f"{self._board.host} is silent for more than {self._seconds:g} s")

    def _ending(self) -> BoardError:
        """What the program said last."""
        try:
            lines = self._channel.makefile_stderr("r").read().decode(errors="replace").strip().splitlines()
        except (OSError, EOFError):
            lines = []
        errors = [line for line in lines if line.startswith("error: ")] or lines or ["the connection broke"]
        return BoardError(f"{self._board.host}: {errors[-1].removeprefix('error: ')}")
