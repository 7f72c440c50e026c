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


def test_limits_are_those_of_the_code() -> None:
    text = read("SECURITY.md")
    verify, files = read("converter/litebnn/verify/verification.py"), read("converter/litebnn/files.py")
    assert re.findall(r"_SECONDS, _SECONDS_PER_SAMPLE = (\d+), (\d+)", verify) == [("60", "15")]
    assert "60 s and 15 s for each sample" in text
    assert re.findall(r"_MEMORY, _MEMORY_PER_BYTE = (\d+) << 30, (\d+)", verify) == [("4", "8")]
    assert "4 GiB and 8 bytes for each byte of models and inputs" in text
    assert "MOST_BYTES = 4 << 30" in files
    assert "_WORK, _WORK_PER_BYTE = 1 << 24, 64" in read("converter/litebnn/graph/graph.py")
    assert "2²⁴ elements, and 64 more for each byte" in text
