import zipfile
from pathlib import Path

import pytest

from toolchains.release import installing
from toolchains.release.products import Failed, Product, Skipped
from toolchains.targets import VERSION, find_target

ARM = Product("wheel", find_target("armv7"))


def write_wheel(folder: Path, tag: str) -> Path:
    """Makes an empty wheel, whose file name pip can select."""
    info, wheel = f"litebnn-{VERSION}.dist-info", folder / f"litebnn-{VERSION}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: litebnn\nVersion: {VERSION}\n")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def test_the_pythons_are_those_of_the_project() -> None:
    assert installing.pythons()[0] == "3.10"
    assert len(installing.pythons()) == 5


def test_each_python_of_the_machine_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"python3.10": "/usr/bin/python3.10", "python3.9": "/usr/bin/python3.9"}
    monkeypatch.setattr(installing.shutil, "which", names.get)
    monkeypatch.setattr(installing.sys, "version_info", (3, 12, 1))
    monkeypatch.setattr(installing.sys, "executable", "/environment/python")
    assert installing.interpreters() == {"3.10": "/usr/bin/python3.10", "3.12": "/environment/python"}
    differences = {"/usr/bin/python3.10": 2e-7, "/environment/python": 1e-7}
    monkeypatch.setattr(installing, "_difference", lambda product, file, interpreter: differences[interpreter])
    assert installing.three_lines(ARM, Path("any.whl")) == "Python 3.10, 3.12, output within 2e-07"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ("py3-none-manylinux_2_28_armv7l", ""),
        ("cp311-none-manylinux_2_28_armv7l", "does not take it for Python 3.10$"),
        ("py3-none-any", "expected the tag manylinux_2_28_armv7l, found any"),
    ],
)
def test_pip_is_asked_for_each_python(tag: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing, "pythons", lambda: ["3.10", "3.14"] if not message else ["3.10"])
    wheel = write_wheel(tmp_path, tag)
    if message:
        with pytest.raises(Failed, match=message):
            installing.tags(ARM, wheel)
    else:
        assert installing.tags(ARM, wheel) == "Python 3.10, 3.14 on manylinux_2_28_armv7l"


@pytest.mark.parametrize("check", [installing.three_lines, installing.readme])
def test_a_wheel_for_another_machine_is_skipped(check, tmp_path: Path) -> None:
    product = Product("wheel", find_target("windows-x86_64"))
    with pytest.raises(Skipped, match="^this machine is not windows-x86_64$"):
        check(product, write_wheel(tmp_path, "py3-none-no_such_platform"))
