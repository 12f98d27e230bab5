"""A run of the harness of a fixed size."""

import subprocess
import sys
from pathlib import Path

import pytest

COUNT = 5_000  # ten seconds; more by hand, see the package


@pytest.mark.slow
def test_damaged_files_are_read_or_refused(tmp_path):
    done = subprocess.run([sys.executable, "-m", "fuzz", "--count", str(COUNT), "--keep", tmp_path],
                          cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{COUNT} files" in done.stdout
