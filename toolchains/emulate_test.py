import pytest

from toolchains.emulate import emulator, foreign_root
from toolchains.targets import ToolkitError, find_target


def test_a_missing_emulator_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolkitError, match="qemu-aarch64 is missing: install the Debian package qemu-user"):
        emulator(find_target("rpi4"))


def test_android_is_not_emulated() -> None:
    with pytest.raises(ToolkitError, match="android-arm64 is not emulated"):
        emulator(find_target("android-arm64"))


def test_no_apt_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolkitError, match=r"apt-get \(Debian package apt\), dpkg-deb \(Debian package dpkg\)"):
        foreign_root(find_target("rpi4"))
