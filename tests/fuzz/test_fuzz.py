"""Runs of the harness of a fixed size."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import systems


# more by hand, see the package
@pytest.mark.parametrize("count", [pytest.param(500, marks=pytest.mark.slow),
                                   pytest.param(5000, marks=pytest.mark.nightly)])
def test_damaged_files_are_read_or_refused(count, tmp_path):
    done = subprocess.run([sys.executable, "-m", "fuzz", "--count", str(count), "--keep", tmp_path],
                          cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} files" in done.stdout


@pytest.mark.parametrize("index", [0, 1, *(pytest.param(
    index, marks=pytest.mark.slow if index < 8 else pytest.mark.nightly) for index in range(2, 30))])
def test_random_systems_are_right_within_stated_errors_or_refused(index):
    assert systems.check(1, index)[1] == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which Windows lacks")
def test_killed_commands_leave_nothing_half_written():
    done = subprocess.run([sys.executable, "-m", "fuzz", "--kills", "1", "--seed", "2"],
                          cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 kills" in done.stdout
