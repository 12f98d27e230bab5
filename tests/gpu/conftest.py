"""The CUDA engine, for tests on a GPU."""

import os

import pytest

from vmdpotential import engines
from vmdpotential.errors import BackendError


@pytest.fixture
def engine():
    try:
        return engines.get_engine("cuda")
    except BackendError as error:
        if os.environ.get("VMDPOTENTIAL_REQUIRE_GPU"):
            raise
        pytest.skip(str(error))
