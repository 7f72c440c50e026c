"""Every fuzz target runs for a while from its seeds, and finds nothing."""

import pytest

from fuzz.__main__ import FOLDER, build, missing, run, targets

SECONDS = 20


@pytest.mark.parametrize("name", targets())
def test_finds_nothing(name: str) -> None:
    target = targets()[name]
    if reason := missing(target):
        pytest.skip(reason)
    if target.is_cpp:
        build([target])
    seeds = len(list((FOLDER / "corpus" / name).iterdir()))
    assert run(target, SECONDS) > seeds > 0


def test_the_seeds_are_small() -> None:
    files = [path for path in (FOLDER / "corpus").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 2**20
