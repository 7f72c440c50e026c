import functools
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolchains.release import __main__ as command
from toolchains.release import checks
from toolchains.release import products as products_module
from toolchains.release.checks import CHECKS, Check
from toolchains.release.products import KINDS, Failed, Product, Skipped, expect, files_of, products
from toolchains.targets import VERSION, ToolkitError, find_target, load_targets


def test_every_wheel_bundle_and_debian_package_is_a_product() -> None:
    names = list(map(str, products()))
    assert {f"wheel {row.name}" for row in load_targets().values() if row.wheel and row.family == row.name} <= {*names}
    assert {"bundle rpi4", "bundle rpi5", "bundle windows-x86_64", "bundle macos-arm64"} <= {*names}
    assert {name for name in names if name.startswith("deb ")} == {
        *("deb x86_64", "deb aarch64", "deb armv7", "deb riscv64")
    }
    assert not {"bundle host", "bundle android-arm64", "bundle riscv64", "wheel rpi4"} & {*names}


def test_every_check_has_a_name_and_a_promise() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert all(check.run.__doc__ for check in CHECKS)
    assert {kind for check in CHECKS for kind in check.kinds} == set(KINDS)


def test_an_entry_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.changelog().startswith(f"{VERSION}, 20")
    monkeypatch.setattr(checks, "VERSION", "9.9")
    with pytest.raises(Failed, match=f"expected an entry of 9.9 first, found {VERSION}"):
        checks.changelog()


def passes() -> str:
    return "seen"


def fails() -> str:
    expect(False, "expected\nsomething else")
    return ""


def skips() -> str:
    raise Skipped("no such machine")


def breaks() -> str:
    raise ToolkitError("cmake is missing")


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Check(run.__name__, run) for run in (passes, fails, skips, breaks)]
    monkeypatch.setattr(command, "CHECKS", (*rows, Check("ofawheel", lambda product, file: file.name, ("wheel",))))


@pytest.mark.usefixtures("table")
def test_each_check_is_a_line_and_a_failure_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--check", "--only=passes,fails,skips,breaks"]) == 1
    out, err = capsys.readouterr()
    assert [(line.split()[0], line.split()[1], line.split("  ")[-1]) for line in out.splitlines()] == [
        ("passed", "passes", "seen"),
        ("failed", "fails", "expected something else"),
        ("skipped", "skips", "no such machine"),
        ("failed", "breaks", "cmake is missing"),
    ]
    assert err == "error: the release is not as promised: 1 passed, 1 skipped, 2 failed\n"
    assert command.main(["--check", "--only=passes,skips"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 skipped, 0 failed"


@pytest.mark.usefixtures("table")
def test_a_product_that_cannot_be_built_fails_its_checks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, "wheel", checks.KINDS["wheel"].__class__("toolchains.no_such_module", ".whl", bool))
    files_of.cache_clear()
    assert command.main(["--check", "--only=ofawheel", "--target=armv7"]) == 1
    assert "No module named toolchains.no_such_module" in capsys.readouterr().out


@pytest.mark.usefixtures("table")
def test_a_product_that_this_machine_cannot_make_is_skipped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products_module, "missing", lambda name: f"{name} is not here")
    files_of.cache_clear()
    monkeypatch.setattr(command, "CHECKS", (Check("ofadeb", lambda product, file: file.name, ("deb",)),))
    assert command.main(["--check", "--only=ofadeb", "--target=riscv64"]) == 0
    assert "debhelper is not here" in capsys.readouterr().out


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder that replaces the copy of the sources, in which the check `reproducible` builds again."""
    monkeypatch.setattr(checks, "_second_checkout", lambda: tmp_path / "elsewhere")
    monkeypatch.setattr(checks, "runtime_folder", lambda target: tmp_path / "none")
    (tmp_path / "elsewhere").mkdir()
    checks._built_again.cache_clear()
    yield tmp_path / "elsewhere"
    checks._built_again.cache_clear()


def test_a_second_build_is_compared(tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    product = Product("deb", find_target("armv7"))
    names = ("library.whl", "headers.whl")
    built: list[Path] = []

    def write(folder: Path, name: str, content: str) -> Path:
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr(zipfile.ZipInfo("same"), "same")
            archive.writestr(zipfile.ZipInfo("library"), content)
        return folder / name

    def build_in(folder: Path, _: Product) -> tuple[Path, ...]:
        built.append(folder)
        return tuple(write(folder, name, "from the sources") for name in names)

    monkeypatch.setattr(checks, "build_in", build_in)
    for name in names:
        assert checks.reproducible(product, write(tmp_path, name, "from the sources")).startswith("sha256 ")
    with pytest.raises(Failed, match=r"^sha256 \w{12} here, \w{12} in another folder: library$"):
        checks.reproducible(product, write(tmp_path, names[0], "from the folder's name"))
    with pytest.raises(Failed, match=r"^it was made as library\.whl, headers\.whl$"):
        checks.reproducible(product, write(tmp_path, "another.whl", "from the sources"))
    # All files of a product come from one build.
    assert built == [elsewhere]


@pytest.mark.needs("git")
def test_the_second_checkout_has_the_sources_and_no_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "checkout"
    for name, text in ((".gitignore", "build/\n"), ("source.txt", "a source"), ("build/library", "a product")):
        file = checkout / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=checkout, check=True)
    monkeypatch.setattr(products_module, "ROOT", checkout)
    # The copy that other tests use stays that of the project.
    monkeypatch.setattr(checks, "_second_checkout", functools.cache(checks._second_checkout.__wrapped__))
    folder = checks._second_checkout()
    assert {file.name for file in folder.rglob("*")} == {".gitignore", "source.txt"}
    assert checks._second_checkout() == folder != checkout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--check", "--only=colour"], "no check is called 'colour'; they are tag, changelog, "),
        (["--check", "--target=rpi3"], "no target of a release is called 'rpi3'; they are x86_64, "),
        (["--only=size"], "--only chooses checks: add --check"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(arguments) == 1
    assert capsys.readouterr().err.startswith(f"error: {message}")
