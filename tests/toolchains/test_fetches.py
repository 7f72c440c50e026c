"""Tests that what the tools download is pinned, and checked by a hash."""

import re
from collections.abc import Iterator

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from packaging.requirements import Requirement

import bootstrap
from tests.support.documents import read, sources
from toolchains.fetch.lock import TABLE, find
from toolchains.targets import ROOT, ToolkitError, read_toml


def locked_for_a_release() -> Iterator[tuple[Requirement, list[str]]]:
    """Yields the packages that a release is built by, with their hashes."""
    lines = re.sub(r"\\\n *", "", read(bootstrap.RELEASE_LOCK)).splitlines()
    for line in lines:
        if not line.startswith("#"):
            requirement, *hashes = line.split("--hash=sha256:")
            yield Requirement(requirement), [digest.strip() for digest in hashes]


def test_every_package_that_a_release_is_built_by_has_one_version_and_hashes() -> None:
    rows = [*locked_for_a_release()]
    assert len(rows) > 50
    for requirement, hashes in rows:
        assert re.fullmatch(r"==[\w.]+", str(requirement.specifier))
        assert hashes
        assert [digest for digest in hashes if not re.fullmatch(r"[0-9a-f]{64}", digest)] == []


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize("system", [("linux", "x86_64"), ("linux", "armv7l"), ("darwin", "arm64"), ("win32", "AMD64")])
def test_a_release_is_built_by_what_the_project_asks_for(python: str, system: tuple[str, str]) -> None:
    project = ProjectMetadata(str(ROOT), PluginManager()).core
    extras = project.optional_dependencies
    asked = map(Requirement, [*project.dependencies, *extras["dev"], *extras["release"]])
    here = dict(zip(("sys_platform", "platform_machine"), system, strict=True))
    here |= {"python_version": python, "python_full_version": f"{python}.1"}
    rows = [row for row, _ in locked_for_a_release() if row.marker is None or row.marker.evaluate(here)]
    for requirement in asked:
        if requirement.marker is None or requirement.marker.evaluate(here):
            (version,) = (str(row.specifier).removeprefix("==") for row in rows if row.name == requirement.name)
            assert requirement.specifier.contains(version), requirement


@pytest.mark.parametrize("name", read_toml(TABLE))
def test_a_locked_package_has_a_version_and_hashes(name: str) -> None:
    locked = find(name)
    assert locked.registry in ("pypi", "npm", "debian")
    assert re.fullmatch(r"[\w.:+~-]+", locked.version)
    assert locked.sha256
    assert [digest for digest in locked.sha256 if not re.fullmatch(r"[0-9a-f]{64}", digest)] == []


def test_every_locked_package_is_used() -> None:
    texts = [read(path) for path in sources() if path.suffix == ".py"]
    used = {name for text in texts for name in re.findall(r'\bfind\("([\w-]+)"\)', text)}
    used |= set(re.findall(r'"(tflite-micro[\w-]*)"', read("tests/micro/test_tflm.py")))
    assert set(read_toml(TABLE)) == used - {"no-such-package"}


def test_a_base_image_is_pinned_by_its_digest() -> None:
    recipes = [read(path) for path in (ROOT / "docker").iterdir() if path.name.endswith("Dockerfile")]
    bases = dict(re.findall(r"^ARG (\w+)=(.+)$", "\n".join(recipes), re.MULTILINE))
    taken = [base for text in recipes for base in re.findall(r"^FROM (\S+)", text, re.MULTILINE)]
    assert taken
    for base in taken:
        assert re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", bases.get(base.strip("${}"), base)), base


def test_another_name_lists_the_known() -> None:
    with pytest.raises(ToolkitError, match=r"^lock\.toml has no row no-such-package; the rows are ziglang, "):
        find("no-such-package")


def test_an_altered_zig_is_refused_by_pip(tmp_path) -> None:
    from dataclasses import replace

    from toolchains.fetch import pypi

    wheel = tmp_path / "litebnn_stand_in-1.0-py3-none-any.whl"
    wheel.write_bytes(b"another")
    zig = replace(find("ziglang"), package="litebnn-stand-in", version="1.0")
    with pytest.raises(
        ToolkitError, match=r"^cannot install litebnn-stand-in==1\.0: ERROR: THESE PACKAGES DO NOT MATCH"
    ):
        pypi.install(zig, "--no-index", f"--find-links={tmp_path}", f"--target={tmp_path / 'installed'}")
