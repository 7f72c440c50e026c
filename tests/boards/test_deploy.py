"""Tests deployment for the target `host`, to an SSH server on this machine's loopback interface."""

import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from bench import deploy as command
from bench.deploy import deploy, main
from litebnn import cli
from litebnn.boards.board import Board
from litebnn.boards.host_keys import BoardError, fingerprint
from tests.boards.sshd import new_key, ssh_server
from tests.needs import imported, need
from tests.support.programs import host_programs
from toolchains import deploy as deploying
from toolchains.bundle import bundle, pack
from toolchains.targets import ROOT, ToolkitError, find_target

paramiko = imported("paramiko", "deploy")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ssh_server(tmp_path_factory.mktemp("board")) as made:
        yield made


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    """Gives the tests an empty home folder, so that the user's own keys and known hosts are not used."""
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def known_hosts(tmp_path, _home):
    return tmp_path / "home" / ".ssh" / "known_hosts"


@pytest.fixture
def board(server, known_hosts):
    """The SSH server as a board, whose host key is in known_hosts."""
    known_hosts.write_text(f"{server.line}\n")
    return server


@pytest.fixture(scope="module")
def _bundle():
    """Builds the bundle once for all tests."""
    host_programs()
    bundle("host")


@pytest.mark.deep
@pytest.mark.usefixtures("_bundle")
def test_measures_on_the_board_and_brings_the_figures_back(board, tmp_path, capsys):
    folder = tmp_path / "a folder"
    arguments = [f"--host={board.host}", f"--identity={board.identity}", f"--folder={folder}", "--num-threads=2"]
    assert main(["--target=host", *arguments]) == 0
    results = find_target("host").folder / f"benchmark-127.0.0.1-{board.port}.json"
    figures = json.loads(results.read_text())
    results.unlink()
    assert figures["graph"] == "digits.tflite"
    assert figures["num_threads"] == 2
    assert figures["use_xnnpack"]
    assert {"LceBconv2d", "TfLiteXNNPackDelegate"} <= {op["op"] for op in figures["ops"]}
    assert not list(results.parent.glob(f"*{board.port}*"))
    assert [path.name for path in folder.iterdir()] == ["litebnn-host"]
    assert f"median latency {figures['latency_ms']['median']:.3f} ms; all figures: " in capsys.readouterr().out


@pytest.mark.deep
@pytest.mark.usefixtures("_bundle")
def test_measures_a_model_of_the_users(board, tmp_path):
    model = ROOT / "tests" / "golden" / "residual.lce.tflite"
    (found,) = deploy("host", [board.host], folder=str(tmp_path), identity=board.identity, model=model)
    figures = json.loads(found.results.read_text())
    found.results.unlink()
    assert figures["graph"] == model.name
    assert found.before["cores"] == str(os.cpu_count())
    assert figures["board"]["after"].keys() == found.after.keys() == found.before.keys()


@pytest.mark.deep
@pytest.mark.usefixtures("_bundle")
def test_what_fails_on_the_board_is_one_line(board, tmp_path):
    model = tmp_path / "broken.tflite"
    model.write_bytes(b"broken")
    (found,) = deploy("host", [board.host], folder=str(tmp_path / "board"), identity=board.identity, model=model)
    assert found.results is None
    reason = f"benchmark_model failed on {board.host}: error: broken.tflite is no .tflite model"
    assert str(found.error).startswith(reason)


@pytest.mark.deep
@pytest.mark.usefixtures("_bundle")
def test_all_boards_at_once_and_one_that_fails_is_named(known_hosts, tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        nowhere = f"pi@127.0.0.1:{unused.getsockname()[1]}"
    for name in "ab":
        (tmp_path / name).mkdir()
    with ssh_server(tmp_path / "a", is_at_home=True) as a, ssh_server(tmp_path / "b", is_at_home=True) as b:
        shutil.copy(a.identity.with_name("authorized_keys"), tmp_path / "b")
        known_hosts.write_text(f"{a.line}\n{b.line}\n")
        hosts = [a.host, nowhere, b.host]
        assert main(["--target=host", f"--host={','.join(hosts)}", f"--identity={a.identity}"]) == 1
    for name in "ab":
        assert (tmp_path / name / "litebnn-host" / "benchmark.json").is_file()
    out, err = capsys.readouterr()
    assert err.startswith(f"error: cannot connect to {hosts[1]}: ")
    assert len(err.splitlines()) == 1
    table = out[out.index("board ") :].splitlines()
    assert table[0].split("  ")[0] == "board"
    assert [line.split()[0] for line in table[1:3]] == [hosts[0], hosts[2]]
    lines = [line.partition(" median")[0] for line in table[3:]]
    assert lines == [f"{hosts[0]}:", f"{hosts[1]}: failed", f"{hosts[2]}:"]
    for host in (hosts[0], hosts[2]):
        results = find_target("host").folder / f"benchmark-{host.rpartition('@')[2].replace(':', '-')}.json"
        assert json.loads(results.read_text())["graph"] == "digits.tflite"
        results.unlink()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("kill -ILL $$", "{host} has another CPU than host: benchmark_model met an instruction that it lacks"),
        (
            "echo 'version GLIBC_2.99 not found' >&2; exit 1",
            "benchmark_model failed on {host}: version GLIBC_2.99 not found",
        ),
        ("exit 3", "benchmark_model failed on {host}: exit code 3"),
        ("exit 0", "cannot fetch {folder}/litebnn-host/benchmark.json from {host}: "),
    ],
)
def test_programs_that_the_board_cannot_run_are_one_line(board, tmp_path, monkeypatch, capsys, script, message):
    program, folder = tmp_path / "benchmark_model", tmp_path / "board"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    archive = pack(find_target("host"), [program], tmp_path)
    monkeypatch.setattr(command, "bundle", lambda target, toolchain: archive)
    arguments = [f"--host={board.host}", f"--identity={board.identity}", f"--folder={folder}"]
    assert error(capsys, "--target=host", *arguments).startswith(message.format(host=board.host, folder=folder))
    assert not list(find_target("host").folder.glob(f"*127.0.0.1-{board.port}.json*"))


def error(capsys, *arguments: str) -> str:
    """The error message of a deployment that fails, which must be one line."""
    assert main(list(arguments)) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return lines[0].removeprefix("error: ")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A folder with private keys: `other`, which no board accepts, `secret` with a passphrase, and `none` and `cut`."""
    folder = tmp_path_factory.mktemp("keys")
    new_key(folder / "other")
    paramiko.RSAKey.generate(2048).write_private_key_file(str(folder / "secret"), password="secret")
    (folder / "none").write_text("no key")
    (folder / "cut").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n")
    return folder


ELSEWHERE = "rpi4" if platform.machine() == "x86_64" else "x86_64"
NO_HOSTS = ("", "@", "pi@", "pi@board:ssh", ":22", "pi@:", "board:65536", "board:0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *((f"--host={host}", f"--host={host}: expected [USER@]HOST[:PORT]") for host in NO_HOSTS),
        *(
            (
                f"--host=pi@board --identity={{keys}}/{name}",
                f"--identity={{keys}}/{name} cannot be used as a private key: ",
            )
            for name in ("nowhere", "none", "cut", "secret")
        ),
        ("--host={closed}", "cannot connect to {closed}: "),
        ("--host=pi@board.invalid", "cannot connect to pi@board.invalid: "),
        ("--host={host} --identity={keys}/other", "cannot connect to {host}: Authentication failed"),
        (
            f"{{at}} --target={ELSEWHERE}",
            f"{{host}} has another CPU than {ELSEWHERE}: {platform.machine()} (64 bits), not ",
        ),
        ("{at} --folder=/proc/nowhere", "{host} cannot make the folder /proc/nowhere: mkdir: "),
        ("--host=pi@board --model=/nowhere.tflite", "--model=/nowhere.tflite is no file"),
    ],
)
def test_a_mistake_is_one_line(board, keys, capsys, arguments, message):
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"pi@127.0.0.1:{server.getsockname()[1]}"
    at = f"--host={board.host} --identity={board.identity}"
    words = {"keys": keys, "closed": closed, "host": board.host, "at": at}
    found = error(capsys, *f"--target=host {arguments}".format(**words).split())
    assert found.startswith(message.format(**words))


@pytest.mark.parametrize(("given", "there"), [("~", "."), ("~/bnn", "bnn"), ("/opt/~", "/opt/~"), ("a b", "a b")])
def test_a_tilde_is_the_home_on_the_board(given, there):
    assert deploying.on_board(given) == there


def test_what_a_login_script_prints_is_no_cpu():
    board = SimpleNamespace(host="pi@board", check=lambda command, what: "Welcome to\nthe board\naarch64\n64")
    deploying.check_processor(find_target("rpi4"), board)
    board.check = lambda command, what: "Welcome to\nthe board\narmv7l\n32"
    with pytest.raises(ToolkitError, match=r"another CPU than rpi4: armv7l \(32 bits\), not aarch64$"):
        deploying.check_processor(find_target("rpi4"), board)
    board.check = lambda command, what: "Welcome to the board"
    with pytest.raises(ToolkitError, match=r"^pi@board does not tell its CPU: Welcome to the board$"):
        deploying.check_processor(find_target("rpi4"), board)


def test_a_board_with_another_host_key_than_before_is_refused(board, known_hosts, capsys):
    other = paramiko.RSAKey.generate(2048)
    known_hosts.write_text(f"[127.0.0.1]:{board.port} {other.get_name()} {other.get_base64()}\n")
    for accepted in ("", fingerprint(board.key)):
        arguments = [f"--host={board.host}", f"--identity={board.identity}", f"--accept-host-key={accepted}"]
        message = error(capsys, "--target=host", *arguments)
        assert message.startswith(f"cannot connect to {board.host}: Host key for server")


def test_a_fingerprint_is_what_ssh_keygen_shows(server):
    shown = subprocess.run(
        ["ssh-keygen", "-lf", server.identity.parent / "host_key"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.split()[1] == fingerprint(server.key)


@pytest.mark.parametrize("accepted", ["", "SHA256:another"])
def test_a_board_that_nobody_vouches_for_is_refused(server, known_hosts, capsys, accepted):
    arguments = [f"--host={server.host}", f"--identity={server.identity}", f"--accept-host-key={accepted}"]
    message = error(capsys, "--target=host", *arguments)
    seen = f"[127.0.0.1]:{server.port} is not known: its {server.key.get_name()} key is {fingerprint(server.key)}"
    assert message.startswith(seen)
    assert message.endswith(f"then give --accept-host-key={fingerprint(server.key)}")
    assert not known_hosts.exists()


@pytest.mark.parametrize("before", [None, "other ssh-rsa AAAA", "other ssh-rsa AAAA\n"])
def test_a_key_that_is_accepted_is_known_from_then_on(server, known_hosts, before):
    if before is not None:
        known_hosts.write_text(before)
    else:
        known_hosts.parent.rmdir()
    Board(server.host, server.identity, fingerprint(server.key))
    Board(server.host, server.identity)
    assert known_hosts.read_text().splitlines() == [*(["other ssh-rsa AAAA"] if before else []), server.line]
    assert before or known_hosts.stat().st_mode & 0o777 == 0o600
    assert before or known_hosts.parent.stat().st_mode & 0o777 == 0o700


def test_at_a_terminal_the_user_is_asked(server, known_hosts, monkeypatch):
    asked = []
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or "no")
    with pytest.raises(BoardError, match="is not known"):
        Board(server.host, server.identity)
    assert fingerprint(server.key) in asked[0]
    monkeypatch.setattr("builtins.input", lambda text: "y")
    Board(server.host, server.identity)
    assert str(server.port) in known_hosts.read_text()


def test_known_hosts_that_cannot_be_read_are_one_line(board, known_hosts, capsys):
    known_hosts.write_text("board ssh-rsa A\n")
    message = error(capsys, "--target=host", f"--host={board.host}", f"--identity={board.identity}")
    assert message.startswith(f"cannot connect to {board.host}: ")


def test_braces_in_a_path_are_part_of_it(board, tmp_path):
    folder = tmp_path / "{a checkout}"
    folder.mkdir()
    (folder / "given").write_text("given")
    connected = Board(board.host, board.identity)
    connected.put(folder / "given", str(folder / "{there}"))
    connected.get(str(folder / "{there}"), folder / "{back}")
    assert (folder / "{back}").read_text() == "given"


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a mounted disk of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    need("mounts")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.deep
@pytest.mark.usefixtures("_bundle")
def test_a_full_disk_is_one_line(board, small_disk, monkeypatch, capsys):
    arguments = [f"--host={board.host}", f"--identity={board.identity}", f"--folder={small_disk}"]
    full = f"the disk of {board.host} is full: {small_disk} has 1.0 MB free, the bundle needs "
    assert error(capsys, "--target=host", *arguments).startswith(full)

    monkeypatch.setattr(deploying, "check_room", lambda *arguments: None)  # as if the disk filled up after the check
    message = error(capsys, "--target=host", *arguments)
    assert message.startswith(f"cannot copy litebnn-host.tar.gz to {board.host}: ")
    assert message.endswith("is its disk full?")


def test_without_fabric_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "fabric", None)
    assert "pip install 'fabric>=3.2'" in error(capsys, "--target=host", "--host=pi@board")


@pytest.mark.deep
@pytest.mark.usefixtures("_bundle")
def test_the_command_line_measures_there_too(board, tmp_path, capfd):
    """`litebnn benchmark --host` finds the target by the board's CPU, and prints nothing else on stdout."""
    model = ROOT / "tests" / "golden" / "residual.lce.tflite"
    options = [f"--host={board.host}", f"--identity={board.identity}", f"--folder={tmp_path / 'board'}", "--runs=7"]
    assert cli.main(["benchmark", str(model), "--threads=1,2", "--json", *options]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert printed["host"] == board.host
    found = printed["measurements"]
    assert [(one["model"], one["threads"], one["runs"]) for one in found] == [(str(model), 1, 7), (str(model), 2, 7)]
    for one in found:
        assert 0 < one["seconds"]["best"] <= one["seconds"]["p50"] <= one["seconds"]["p99"]
        # litebnn does not run the model's two additions, so XNNPACK runs each as a separate node.
        assert [op["ops"] for op in one["ops"]] == [[0], [1], [], [3], [4], []]
        assert one["peak_memory_bytes"] > 1 << 20

    refusals = {
        "another CPU than rpi4": ["--target=rpi4"],
        "no target is called": ["--target=toaster"],
        "--isa is for this machine": ["--isa=portable"],
        "is the name of two models": [str(shutil.copy(model, tmp_path))],
    }
    for message, more in refusals.items():
        assert cli.main(["benchmark", str(model), *more, *options]) == 1
        assert message in capfd.readouterr().err.splitlines()[-1]


def test_the_kind_of_the_cpu_is_the_target():
    for answer, name in {"x86_64\n64": "x86_64", "aarch64\n64": "aarch64", "aarch64\n32": "armv7"}.items():
        target = deploying.target_of(SimpleNamespace(host="pi@board", check=lambda command, what, told=answer: told))
        assert target.processor == find_target(name).processor or target.name == "host"
    with pytest.raises(ToolkitError, match=r"^pi@board has a CPU that no target is for: s390x \(64 bits\)$"):
        deploying.target_of(SimpleNamespace(host="pi@board", check=lambda command, what: "s390x\n64"))
