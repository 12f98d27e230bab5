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

#: Files that take long: first, so that two processes end at the same time; the last is that of the longest test.
LONG = ["test_round_trips", "test_fuzz", "test_tolerance", "test_readme", "test_nbody", "test_engine_cuda",
        "test_pairs_cpu", "test_foreign", "test_plain", "test_engines", "test_vmd"]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else -1, reverse=True)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def engine(request):
    """Every engine in turn; ``pytest -m gpu`` selects the runs on a GPU."""
    from helpers import working

    return working(request.param)
