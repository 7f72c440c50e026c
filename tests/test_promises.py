"""Tests that every test that docs/promises.md names for a promise exists."""

import re

from tests.support.documents import code, read, table

PROMISES = {promise: code(test)[0] for promise, test in table("docs/promises.md", "promise")}


def is_there(test: str) -> bool:
    """True if a test exists: FILE.py::FUNCTION, FILE.cc::SUITE.NAME, or a FILE with any test."""
    file, _, name = test.partition("::")
    suite, _, case = name.partition(".")
    if file.endswith(".cc"):
        pattern = rf"^TEST\w*\({suite}, {case}\)" if case else r"^TEST\w*\("
    else:
        pattern = rf"^def {name or 'test_.*'}\("
    return re.search(pattern, read(file), re.MULTILINE) is not None


def test_every_promise_has_a_test() -> None:
    assert len(PROMISES) > 30
    assert [test for test in PROMISES.values() if not is_there(test)] == []


def test_a_test_that_is_not_there_is_seen() -> None:
    assert is_there("tests/test_promises.py::test_every_promise_has_a_test")
    assert not is_there("tests/test_promises.py::test_every_promise")
    assert not is_there("ops/tests/threads_test.cc::Fork.Nothing")
