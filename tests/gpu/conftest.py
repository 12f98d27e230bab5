"""The CUDA engine, for tests of what it alone has."""

import pytest
from helpers import working


@pytest.fixture
def engine():
    return working("cuda")
