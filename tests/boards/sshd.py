"""Boards for tests: SSH servers on this machine's loopback interface, which accept one key."""

import getpass
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.needs import imported, need
from toolchains.probes import find_program

paramiko = imported("paramiko", "deploy")
SSHD = find_program("sshd")


def new_key(path: Path) -> "paramiko.RSAKey":
    key = paramiko.RSAKey.generate(2048)
    key.write_private_key_file(str(path))
    return key


class Server:
    """An SSH server: its address, the client key that it accepts, and its own key."""

    def __init__(self, listener: socket.socket, identity: Path, key: "paramiko.RSAKey") -> None:
        self.port = listener.getsockname()[1]
        self.host = f"{getpass.getuser()}@127.0.0.1:{self.port}"
        self.identity, self.key = identity, key
        self.line = f"[127.0.0.1]:{self.port} {key.get_name()} {key.get_base64()}"
        self._listener = listener
        self._sessions: list[subprocess.Popen[bytes]] = []

    def serve(self, config: Path) -> None:
        """Accepts connections until the listener is closed. Starts an sshd for each connection, as inetd would."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                command = [SSHD, "-i", "-f", str(config)]
                self._sessions.append(
                    subprocess.Popen(command, stdin=connection, stdout=connection, stderr=subprocess.DEVNULL)
                )

    def fall_away(self) -> None:
        """Kills all processes that the server has started, and accepts no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        for session in self._sessions:
            if session.poll() is None:
                for process in [*psutil.Process(session.pid).children(recursive=True), session]:
                    # A process may end by itself before it is killed.
                    with suppress(psutil.NoSuchProcess):
                        process.kill()


# A script that starts a board's commands in the board's own folder, as if that were the user's home there.
AT_HOME = """\
#!/bin/sh
cd "$(dirname "$0")"
case $SSH_ORIGINAL_COMMAND in
  internal-sftp) exec /usr/lib/openssh/sftp-server ;;
  *) exec sh -c "$SSH_ORIGINAL_COMMAND" ;;
esac
"""


@contextmanager
def ssh_server(home: Path, is_at_home: bool = False) -> Iterator[Server]:
    """Runs a server whose files lie in the folder `home`. Commands start in that folder if `is_at_home`, otherwise in
    the user's home."""
    need("sshd", "loopback")
    key, host_key = new_key(home / "key"), new_key(home / "host_key")
    (home / "authorized_keys").write_text(f"{key.get_name()} {key.get_base64()}\n")
    config = home / "sshd_config"
    config.write_text(
        f"HostKey {home}/host_key\nAuthorizedKeysFile {home}/authorized_keys\nStrictModes no\nUsePAM no\n"
        "PidFile none\nPermitRootLogin yes\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n"
        # HOME is replaced, because a command may be killed while it runs the user's .bashrc. It could then leave a lock
        # in the user's home.
        f'SetEnv HOME="{home}"\n' + f"ForceCommand {home}/at_home\n" * is_at_home
    )
    (home / "at_home").write_text(AT_HOME)
    (home / "at_home").chmod(0o755)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    run = subprocess.run([SSHD, "-t", "-f", config], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(listener, home / "key", host_key)
        threading.Thread(target=server.serve, args=(config,), daemon=True).start()
        yield server
        with suppress(OSError):
            server.fall_away()
