from pathlib import Path

import pytest

from toolchains.deb import trial
from toolchains.targets import ToolkitError, find_target, load_targets

PRINTED = """\
version 1.2.3
input: image
0.93: 8 8
removed
"""


def test_what_the_programs_print_is_found() -> None:
    assert trial.found(PRINTED) == {"version": "1.2.3", "digit": "8"}
    assert trial.found("version 1.2.3\n") == {"version": "1.2.3"}


def test_each_architecture_is_tried_in_a_release_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial.platform, "freedesktop_os_release", lambda: {"VERSION_CODENAME": "bookworm"})
    found = {row.debian: trial.suite(row) for row in load_targets().values() if row.debian}
    assert found == {"amd64": "bookworm", "arm64": "bookworm", "armhf": "bookworm", "riscv64": "trixie"}


@pytest.mark.parametrize(("code", "printed"), [(1, PRINTED), (0, PRINTED.replace("removed", ""))])
def test_a_failed_trial_says_what_was_printed(
    code: int, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "_compile", lambda target, packages, folder: _file(folder / "program"))
    monkeypatch.setattr(trial, "_registration", lambda target, program: "")
    monkeypatch.setattr(trial.namespace, "run", lambda *_, **__: trial.subprocess.CompletedProcess([], code, printed))
    with pytest.raises(ToolkitError, match=r"^in Debian for armhf: version 1\.2\.3 input: image"):
        trial.try_packages(find_target("armv7"), [_file(tmp_path / "liblitebnn1.deb")])


def _file(path: Path) -> Path:
    path.write_bytes(b"")
    return path
