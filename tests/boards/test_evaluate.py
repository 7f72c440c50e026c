"""Tests evaluation on boards, which are two SSH servers on the loopback interface, each with the bundle."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import litebnn
from litebnn import cli
from litebnn.boards.host_keys import BoardError
from tests.boards.sshd import Server, ssh_server
from tests.evaluate.data_sets import MODEL, counted, expected_counts, noise, npz
from tests.support.programs import host_programs

pytestmark = [pytest.mark.deep, pytest.mark.usefixtures("library")]


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Server]]:
    """Two boards with known host keys; the user's own keys and known hosts are not used."""
    for name in ("a", "b", "home/.ssh"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with ssh_server(tmp_path / "a") as a, ssh_server(tmp_path / "b") as b:
        b.identity = a.identity
        shutil.copy(tmp_path / "a" / "authorized_keys", tmp_path / "b")
        (tmp_path / "home" / ".ssh" / "known_hosts").write_text(f"{a.line}\n{b.line}\n")
        yield [a, b]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """The folder into which a board's bundle was unpacked."""
    programs = host_programs()
    place = tmp_path / "a folder" / "litebnn-host"
    place.mkdir(parents=True)
    for name in ("run_model", "libLiteRt.so"):
        shutil.copy2(programs / name, place)
    return place.parent


def boards(servers: list[Server], folder: Path, **options) -> litebnn.Boards:
    return litebnn.Boards([server.host for server in servers], servers[0].identity, folder=str(folder), **options)


def test_two_boards_share_a_data_set(servers, bundle, tmp_path, capfd) -> None:
    hosts = ",".join(server.host for server in servers)
    places = [f"--boards={hosts}", f"--identity={servers[0].identity}", f"--board-folder={bundle}"]
    data = npz(tmp_path / "a.npz", 40)
    assert cli.main(["evaluate", str(MODEL), str(MODEL), f"--data={data}", *places, "--batch-size=7"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert f" {100 * expected_counts(*noise(40))['top_1']:.2f} %" in out
    assert "100.00 %   100.00 %" in out


def test_a_board_that_falls_away_is_named_and_its_share_goes_to_the_others(servers, bundle, tmp_path) -> None:
    told, gone = [], []

    def fall_away(done: int, total: int | None) -> None:
        if done >= 12 and not gone:
            gone.append(servers[0])
            servers[0].fall_away()

    data = npz(tmp_path / "a.npz", 200)
    found = litebnn.evaluate_models(
        MODEL, data, boards=boards(servers, bundle), batch_size=4, progress=fall_away, on_warning=told.append
    )
    assert counted(found) == expected_counts(*noise(200))
    assert [servers[0].host in line for line in told] == [True]
    assert told[0].endswith(f"the share of {servers[0].host} goes to the others")


def test_a_board_that_freezes_is_given_up(servers, bundle) -> None:
    """The fake run_model also stops the server process that started it. The server then neither answers nor refuses
    requests, like a board without power."""
    program = bundle / "litebnn-host" / "run_model"
    program.write_text("#!/bin/sh\nkill -STOP $PPID\ncat > /dev/null\n")
    with pytest.raises(BoardError, match=r"^no board is left; .* is silent for more than 0\.5 s$"):
        litebnn.evaluate_models(MODEL, lambda: [noise(2)], boards=boards(servers[:1], bundle, seconds=0.5))


def test_a_board_that_cannot_be_reached_or_has_no_bundle_is_named(servers, bundle, tmp_path) -> None:
    data, told = npz(tmp_path / "a.npz", 20), []
    servers[0].fall_away()
    found = litebnn.evaluate_models(MODEL, data, boards=boards(servers, bundle), on_warning=told.append)
    assert counted(found) == expected_counts(*noise(20))
    assert [line.partition(": ")[0] for line in told] == [f"cannot connect to {servers[0].host}"]
    with pytest.raises(BoardError, match=r"^no board is left; .* has no litebnn-\*/run_model in "):
        litebnn.evaluate_models(MODEL, data, boards=boards(servers[1:2], tmp_path))


def test_a_board_that_is_silent_is_given_up(servers, bundle, tmp_path) -> None:
    program = bundle / "litebnn-host" / "run_model"
    program.write_text("#!/bin/sh\ncat > /dev/null\n")
    with pytest.raises(BoardError, match=r"^no board is left; .* is silent for more than 0\.5 s$"):
        litebnn.evaluate_models(MODEL, lambda: [noise(2)], boards=boards(servers[:1], bundle, seconds=0.5))


def test_what_fails_on_a_board_is_one_line(servers, bundle, tmp_path) -> None:
    program = bundle / "litebnn-host" / "run_model"
    program.write_text("#!/bin/sh\necho 'INFO: a log' >&2\necho 'error: no memory' >&2\necho more >&2\nexit 1\n")
    with pytest.raises(BoardError, match=f"^no board is left; {servers[0].host}: no memory$"):
        litebnn.evaluate_models(MODEL, lambda: [noise(2)], boards=boards(servers[:1], bundle))


def test_mistakes_of_the_users_are_not_those_of_a_board(servers, bundle) -> None:
    images, labels = noise(2)
    with pytest.raises(ValueError, match="^the data set has the label 1"):
        litebnn.evaluate_models(MODEL, lambda: [(images, labels + 10)], boards=boards(servers, bundle))
