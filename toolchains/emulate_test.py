from pathlib import Path

import pytest

from toolchains import emulate
from toolchains.emulate import emulator, foreign_root, recent_emulator
from toolchains.targets import ToolkitError, find_target


def test_a_missing_emulator_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolkitError, match="qemu-aarch64 is missing: apt install qemu-user"):
        emulator(find_target("rpi4"))


def test_android_is_not_emulated() -> None:
    with pytest.raises(ToolkitError, match="android-arm64 is not emulated"):
        emulator(find_target("android-arm64"))


def test_no_apt_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolkitError, match=r"apt-get \(Debian package apt\), dpkg-deb \(Debian package dpkg\)"):
        foreign_root(find_target("rpi4"))


def qemu(folder: Path, version: str) -> Path:
    """Makes a fake emulator for the Raspberry Pi 4, which only prints its version."""
    program = folder / "qemu-aarch64"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\necho 'qemu-aarch64 version {version} (Debian)'\n")
    program.chmod(0o755)
    return program


def test_an_installed_emulator_that_is_recent_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = qemu(tmp_path, "11.1.3")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert recent_emulator(find_target("rpi4")) == str(program)


@pytest.mark.parametrize("version", ["7.2.22", "10.0.8", "11.0.0"])
def test_an_old_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    qemu(tmp_path, version)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolkitError, match="fetched with what is missing here: apt-get"):
        recent_emulator(find_target("rpi4"))


def test_a_fetched_one_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulate, "BUILD", tmp_path)
    monkeypatch.setattr(emulate, "_require_debian", lambda: None)
    fetched = qemu(tmp_path / "emulated" / "qemu" / emulate.QEMU.version.replace(":", "_"), "11.1.3")
    monkeypatch.setenv("PATH", "")
    assert recent_emulator(find_target("rpi4")) == str(fetched)


def test_an_altered_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def apt(folder: Path, architecture: str, suite: str, command: list[str]) -> None:
        (folder / f"qemu-user_1_{architecture}.deb").write_bytes(b"another")

    monkeypatch.setattr(emulate, "apt", apt)
    dpkg = tmp_path / "bin" / "dpkg"
    dpkg.parent.mkdir()
    dpkg.write_text("#!/bin/sh\necho amd64\n")
    dpkg.chmod(0o755)
    monkeypatch.setenv("PATH", str(dpkg.parent))
    with pytest.raises(ToolkitError, match=r"^qemu-user 1:11\..* is not as published: sha256 "):
        emulate._fetch_qemu(tmp_path)


def test_a_machine_without_a_published_emulator_is_told_which_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dpkg = tmp_path / "dpkg"
    dpkg.write_text("#!/bin/sh\necho riscv64\n")
    dpkg.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolkitError, match=r"for this machine \(riscv64\): install QEMU 11\.1 or newer"):
        emulate._fetch_qemu(tmp_path)
