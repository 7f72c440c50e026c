import re
import shutil
import subprocess

import pytest

from toolchains.targets import ROOT, ToolkitError, find_target, load_targets

LINUX = [target for target in load_targets().values() if target.glibc]


def test_the_targets_of_the_documentation() -> None:
    documentation = (ROOT / "docs" / "cross-compile.md").read_text(encoding="utf-8")
    section = documentation.split("\n## Targets\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(.+?)` \|", section, re.MULTILINE) == list(load_targets())


def test_unknown_target_lists_the_known_ones() -> None:
    with pytest.raises(
        ToolkitError, match=r"no target is called 'rpi9'; the targets are host, x86_64, .*android-arm64"
    ):
        find_target("rpi9")


@pytest.mark.parametrize("target", LINUX, ids=lambda target: target.name)
def test_a_linux_target_says_all_that_is_asked_of_it(target) -> None:
    fields = (
        "triple",
        "processor",
        "gcc_flags",
        "zig_cpu",
        "gcc_package",
        "emulator",
        "emulator_cpu",
        "debian",
        "wheel",
    )
    assert [field for field in fields if not getattr(target, field)] == []
    assert tuple(map(int, target.glibc.split("."))) <= (2, 28)


@pytest.mark.parametrize("target", LINUX, ids=lambda target: target.name)
def test_the_generic_target_is_of_the_same_kind_and_its_own(target) -> None:
    generic = find_target(target.generic)
    kind = ("triple", "processor", "glibc", "debian", "wheel", "generic")
    assert [getattr(generic, field) for field in kind] == [getattr(target, field) for field in kind]


@pytest.mark.parametrize("target", LINUX, ids=lambda target: target.name)
def test_the_emulator_knows_the_cpu(target) -> None:
    program = shutil.which(target.emulator)
    if not program:
        pytest.skip(f"{target.emulator} is missing: install the Debian package qemu-user")
    known = subprocess.run([program, "-cpu", "help"], capture_output=True, text=True).stdout.split()
    assert target.emulator_cpu in known
