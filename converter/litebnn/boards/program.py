"""A program that runs on a board, with its stdin and stdout connected to this process."""

from __future__ import annotations

from litebnn.boards.board import Board
from litebnn.boards.host_keys import BoardError

_CHUNK = 1 << 20


class Program:
    """A command that is started on a board.

    `command` is the command line for the board's shell. `seconds` is the time in seconds for which the board may be
    silent while an answer is expected.

    Raises:
        BoardError: the connection broke, the program ended, or the board was silent for too long. Every method can
            raise this error; its message names the board.
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
        """Reads `size` bytes from the program's stdout."""
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
        """Closes the program's stdin, after which the program ends."""
        self._channel.close()

    def _silence(self) -> BoardError:
        return BoardError(f"{self._board.host} is silent for more than {self._seconds:g} s")

    def _ending(self) -> BoardError:
        """An error with the last line of the program's stderr."""
        try:
            lines = self._channel.makefile_stderr("r").read().decode(errors="replace").strip().splitlines()
        except (OSError, EOFError):
            lines = []
        errors = [line for line in lines if line.startswith("error: ")] or lines or ["the connection broke"]
        return BoardError(f"{self._board.host}: {errors[-1].removeprefix('error: ')}")
