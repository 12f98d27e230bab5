"""The demonstration system: what its script makes, and what other programs read."""

from __future__ import annotations

import gzip
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_demo_system_is_what_its_script_makes(tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "make_demo_system"), run_name="script")
    (tmp_path / "data").mkdir()
    script["main"].__globals__["ROOT"] = tmp_path
    script["main"]()
    for name in ("dhfr.pdb.gz", "dhfr.psf.gz"):
        made, kept = ((root / "data" / name).read_bytes() for root in (tmp_path, ROOT))
        assert gzip.decompress(made) == gzip.decompress(kept)
        assert kept[4:8] == b"\0\0\0\0"  # no time, so equal content gives equal bytes
        assert len(kept) < 1_500_000
