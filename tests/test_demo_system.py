"""The demonstration system: what its script makes, and what other programs read."""

from __future__ import annotations

import gzip
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from structure_files import charmm_of, universe

ROOT = Path(__file__).parent.parent


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


@pytest.mark.slow
def test_demo_system_in_other_programs(tmp_path: Path) -> None:
    for name in ("dhfr.pdb", "dhfr.psf"):
        (tmp_path / name).write_bytes(gzip.decompress((ROOT / "data" / f"{name}.gz").read_bytes()))
    theirs = charmm_of(tmp_path / "dhfr.psf")
    assert len(theirs.atoms) == 23558
    assert sum(atom.charge for atom in theirs.atoms) == pytest.approx(-11, abs=1e-9)
    other = universe(tmp_path / "dhfr.psf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.load_new(str(tmp_path / "dhfr.pdb"))
    assert other.atoms.charges.sum(dtype=float) == pytest.approx(-11, abs=1e-6)
    cell = other.dimensions
    assert_allclose(cell, [61.645, 61.645, 61.645, 90, 90, 90], atol=1e-3)
    assert len(other.select_atoms("protein")) == 2489
    assert len(other.select_atoms("resname HOH").residues) == 7023
    # whole molecules, the protein inside the cell and in its middle
    bonds = other.atoms.positions[other.bonds.indices]
    assert np.linalg.norm(bonds[:, 0] - bonds[:, 1], axis=1).max() < 2.2
    protein = other.select_atoms("protein").positions
    assert (protein > 0).all()
    assert (protein < cell[:3]).all()
    assert_allclose((protein.min(0) + protein.max(0)) / 2, cell[:3] / 2, atol=0.01)
    oxygens = other.select_atoms("resname HOH and name O").positions
    assert (oxygens > -0.001).all()
    assert (oxygens < cell[:3] + 0.001).all()
