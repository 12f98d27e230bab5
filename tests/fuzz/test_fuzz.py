"""A run of the harness of a fixed size."""

import subprocess
import sys
from pathlib import Path

import pytest


# the second takes ten seconds; more by hand, see the package
@pytest.mark.parametrize("count", [pytest.param(1000, marks=pytest.mark.slow),
                                   pytest.param(5000, marks=pytest.mark.nightly)])
def test_damaged_files_are_read_or_refused(count, tmp_path):
    done = subprocess.run([sys.executable, "-m", "fuzz", "--count", str(count), "--keep", tmp_path],
                          cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} files" in done.stdout
