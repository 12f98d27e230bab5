"""The demonstration system: what its script makes, and what other programs read."""

from __future__ import annotations

import gzip
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KEPT = [ROOT / "data" / name for name in ("dhfr.pdb.gz", "dhfr.psf.gz")]


def test_files_of_the_demo_system_are_small_and_without_a_time() -> None:
    """So equal content gives equal bytes."""
    assert all(path.read_bytes()[4:8] == b"\0\0\0\0" and path.stat().st_size < 1_500_000 for path in KEPT)


@pytest.mark.nightly
def test_demo_system_is_what_its_script_makes(tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "make_demo_system"), run_name="script")
    (tmp_path / "data").mkdir()
    script["main"].__globals__["ROOT"] = tmp_path
    script["main"]()
    for kept in KEPT:
        made = tmp_path / "data" / kept.name
        assert gzip.decompress(made.read_bytes()) == gzip.decompress(kept.read_bytes())
