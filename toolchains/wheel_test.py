import hashlib
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from toolchains import wheel
from toolchains.targets import ToolkitError


@pytest.fixture
def set_required_glibc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Makes the built library require a given glibc version; returns the list of calls of `build`."""
    built: list[tuple[str, str]] = []
    library = tmp_path / "liblitebnn.so"
    library.write_bytes(b"a library")

    def build(target: str, toolchain: str, *, programs: bool) -> Path:
        assert not programs
        built.append((target, toolchain))
        return library

    def set_floor(*floor: int) -> list[tuple[str, str]]:
        monkeypatch.setattr(wheel, "floors", lambda library: {"GLIBC": ".".join(map(str, floor))})
        return built

    monkeypatch.setattr(wheel, "build", build)
    monkeypatch.setattr(wheel, "find_compiler", lambda target, toolchain: SimpleNamespace(name="zig"))
    return set_floor


@pytest.mark.parametrize(
    ("target", "generic", "tag"),
    [
        ("rpi4", "aarch64", "py3-none-manylinux_2_28_aarch64"),
        ("rpi5", "aarch64", "py3-none-manylinux_2_28_aarch64"),
        ("rpi3", "armv7", "py3-none-manylinux_2_28_armv7l"),
        ("x86_64", "x86_64", "py3-none-manylinux_2_28_x86_64"),
    ],
)
def test_a_wheel_holds_the_library_for_every_cpu_of_its_tag(
    set_required_glibc, tmp_path: Path, target: str, generic: str, tag: str
) -> None:
    built = set_required_glibc(2, 17)
    data = wheel.contents(target, "zig")
    assert built == [(generic, "zig")]
    assert data["tag"] == tag
    assert data["pure_python"] is False
    library = tmp_path / "liblitebnn.so"
    included = {inside: Path(file) for file, inside in data["force_include"].items()}
    assert included.keys() == {"litebnn/lib/liblitebnn.so", "litebnn/micro/sources.zip"}
    assert included["litebnn/lib/liblitebnn.so"] == library
    (bill,) = map(Path, data["sbom_files"])
    assert hashlib.sha256(library.read_bytes()).hexdigest() in bill.read_text()


def test_a_compressed_wheel_has_the_same_files(tmp_path: Path) -> None:
    files = {"litebnn/lib/liblitebnn.so": bytes(range(256)) * 9, "litebnn/__init__.py": b"one\n" * 99, "py.typed": b""}
    with zipfile.ZipFile(tmp_path / "wheel", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 2, 2, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
        before = archive.infolist()
    with zipfile.ZipFile(wheel._compressed(tmp_path / "wheel", tmp_path / "compressed")) as archive:
        assert archive.testzip() is None
        assert {info.filename: archive.read(info) for info in archive.infolist()} == files
        for old, new in zip(before, archive.infolist(), strict=True):
            assert (new.date_time, new.external_attr) == (old.date_time, old.external_attr)


def test_a_library_that_asks_for_more_than_the_tag_promises(set_required_glibc) -> None:
    set_required_glibc(2, 34)
    with pytest.raises(ToolkitError, match=r"manylinux_2_28_aarch64 wheel's library may not ask for glibc 2\.34"):
        wheel.contents("rpi4", "gcc")


def test_the_hosts_wheel_promises_this_machine_only(set_required_glibc) -> None:
    set_required_glibc(2, 36)
    assert wheel.contents("host", "auto")["tag"].startswith("py3-none-")
    assert "manylinux" not in wheel.contents("host", "auto")["tag"]


def test_no_wheels_for_android() -> None:
    with pytest.raises(ToolkitError, match="no wheels for android-arm64"):
        wheel.contents("android-arm64", "auto")
