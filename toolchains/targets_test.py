import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.needs import need
from toolchains import targets
from toolchains.emulate import emulator
from toolchains.targets import Target, ToolkitError, find_target, load_targets

LINUX = [target for target in load_targets().values() if target.glibc]


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
    )
    assert [field for field in fields if not getattr(target, field)] == []
    assert tuple(map(int, target.glibc.split("."))) <= (2, 28)


@pytest.mark.parametrize("target", load_targets().values(), ids=lambda target: target.name)
def test_a_family_is_of_one_kind(target) -> None:
    family = find_target(target.family)
    kind = ("triple", "system", "processor", "glibc", "debian", "wheel", "family", "toolchains")
    assert [getattr(family, field) for field in kind] == [getattr(target, field) for field in kind]


def table_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> dict[str, Target]:
    path = tmp_path / "targets.toml"
    path.write_text(text)
    monkeypatch.setattr(targets, "TABLE", path)
    return load_targets()


HEAD = '[arm]\ndescription = "any"\ntriple = "arm-linux"\ngcc_flags = ["-a"]\nzig_cpu = "generic"\n'


def test_a_row_says_what_sets_it_apart_from_its_family(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    board = '[board]\ndescription = "a board"\nfamily = "arm"\nzig_cpu = "a53"\n'
    rows = table_of(monkeypatch, tmp_path, board + HEAD)
    assert list(rows) == ["board", "arm"]
    assert rows["arm"].family == "arm"
    assert rows["board"] == replace(rows["arm"], name="board", description="a board", zig_cpu="a53")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[arm", "targets.toml: "),
        ("arm = 3", "targets.toml, arm: expected a row, as [arm], found 3"),
        (HEAD + 'cpu = "a53"', "targets.toml, row arm: unknown key 'cpu'; the keys are description, family, triple, "),
        (HEAD + "glibc = 2.28", "targets.toml, row arm, key glibc: expected a string, found 2.28"),
        (HEAD + 'ndk_platform = "24"', "targets.toml, row arm, key ndk_platform: expected an integer, found '24'"),
        (HEAD + "ndk_platform = true", "targets.toml, row arm, key ndk_platform: expected an integer, found True"),
        (HEAD + "toolchains = [1]", "targets.toml, row arm, key toolchains: expected a list of strings, found [1]"),
        (
            HEAD + 'toolchains = ["gcc", "msvc"]',
            "targets.toml, row arm, key toolchains: expected some of gcc, clang, zig, docker, ndk, found 'msvc'",
        ),
        (
            HEAD + 'system = "Plan9"',
            "targets.toml, row arm, key system: expected one of Linux, Android, Darwin, Windows, found 'Plan9'",
        ),
        (
            HEAD + '[board]\ndescription = ""\nfamily = "x86"',
            "targets.toml, row board, key family: expected one of arm, found 'x86'",
        ),
        (
            HEAD + '[a]\ndescription = ""\nfamily = "arm"\n[b]\ndescription = ""\nfamily = "a"',
            "targets.toml, row b, key family: expected one of arm, found 'a'",
        ),
        (HEAD + '[board]\nfamily = "arm"', "targets.toml, row board: the key description is missing"),
        ('[board]\ndescription = ""', "targets.toml, row board: the key triple is missing"),
    ],
)
def test_a_wrong_row_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ToolkitError, match=f"^{re.escape(message)}"):
        table_of(monkeypatch, tmp_path, text)


@pytest.mark.parametrize("target", LINUX, ids=lambda target: target.name)
def test_the_emulator_knows_the_cpu(target) -> None:
    need(target.emulator)
    known = subprocess.run([emulator(target), "-cpu", "help"], capture_output=True, text=True).stdout.split()
    assert target.emulator_cpu in known
