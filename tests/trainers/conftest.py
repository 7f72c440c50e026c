"""What the tests of trainers share."""

import pytest


@pytest.fixture(scope="session")
def networks(pytestconfig: pytest.Config) -> int:
    """How many random networks each trainer makes."""
    return 10 if pytestconfig.getoption("--long") else 3
