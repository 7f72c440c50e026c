"""Fixtures that the tests of training frameworks share."""

import pytest


@pytest.fixture(scope="session")
def networks(pytestconfig: pytest.Config) -> int:
    """The number of random networks that each training framework makes."""
    return 10 if pytestconfig.getoption("--long") else 3
