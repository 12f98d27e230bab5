"""What all tests share: the engines, and one folder of compiled kernels."""

import gc
import os
from pathlib import Path

import pytest

# One folder for all processes, whatever home folder a test gives its own, and for the next runs; not the user's.
CACHE = Path(__file__).resolve().parent.parent / ".pytest_cache" / "vmdpotential"
os.environ.setdefault("VMDPOTENTIAL_CACHE", str(CACHE))

# compiling kernels makes many objects, among those of all packages that tests import, and hardly a cycle
gc.set_threshold(50_000, 20, 20)

#: Files of few tests that take long: first, so that two processes end at the same time.
LONG = {"test_vmd", "test_round_trips", "test_plain", "test_foreign", "test_fuzz", "test_kills", "test_readme"}


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem not in LONG)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def engine(request):
    """Every engine in turn; ``pytest -m gpu`` selects the runs on a GPU."""
    from helpers import working

    return working(request.param)
