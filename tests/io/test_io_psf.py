"""Reading PSF files, whole and broken ones, against MDAnalysis and ParmEd."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers import slow
from numpy.testing import assert_allclose, assert_array_equal
from structure_files import MDA, PSF, charmm_of, ordered, universe

from vmdpotential.io.topologies import psf
from vmdpotential.molecule.structure import Topology
from vmdpotential.plugins.forcefields.psfwrite import write_psf


@pytest.mark.parametrize("name", slow(PSF, ["analysis/1k5i_c36.psf.gz"]))
def test_psf_agrees_with_mdanalysis(name: str) -> None:
    flags, *counts = PSF[name]
    structure = psf.read_psf(MDA / name)
    topology = structure.topology
    assert topology is not None
    assert topology.source == "psf"
    assert " ".join(topology.flags) == flags
    assert [len(structure), *(len(getattr(topology, term)) for term in Topology.TERMS)] == counts
    other = universe(MDA / name)
    assert_allclose(structure.charges, other.atoms.charges, rtol=1e-6, atol=1e-8)  # MDAnalysis: float32
    if "EXT" not in flags:  # it reads these masses from the wrong columns
        assert_allclose(topology.masses, other.atoms.masses)
    assert_array_equal(structure.atom_names, other.atoms.names)
    assert_array_equal(structure.residue_names, other.atoms.resnames)
    assert_array_equal(structure.residue_ids, other.atoms.resids)
    assert_array_equal(structure.segment_ids, np.where(other.atoms.segids == "SYSTEM", "", other.atoms.segids))
    if name != "namd_cgenff.psf":  # it cuts types of five letters
        assert_array_equal(topology.types, other.atoms.types.astype(str))
    for term in ("bonds", "angles", "dihedrals", "impropers"):
        mine = getattr(topology, term)
        theirs = np.array(getattr(other, term).indices).reshape(-1, mine.shape[1])
        # it keeps each term once
        assert_array_equal(np.unique(ordered(mine), axis=0), np.unique(ordered(theirs), axis=0), err_msg=term)


def test_psf_masses_of_extended_file() -> None:
    structure = psf.read_psf(MDA / "1a2c_ins_code.psf")
    other = charmm_of(MDA / "1a2c_ins_code.psf")
    assert_allclose(structure.topology.masses, [atom.mass for atom in other.atoms])
    assert structure.insertion_codes[0] == "H"
    assert structure.residue_ids[0] == 1


def test_psf_without_segments_does_not_shift() -> None:
    structure = psf.read_psf(MDA / "nosegid.psf")
    # words counted from the left would give masses (14.01, 1.008 ...) as charges
    assert_allclose(structure.charges[:4], [-0.4157, 0.2719, -0.0252, 0.0698])
    assert set(structure.segment_ids) == {""}
    assert structure.net_charge == pytest.approx(1, abs=1e-6)


def test_psf_residues_of_waters() -> None:
    structure = psf.read_psf(MDA / "SiN_tric_namd.psf")
    water = structure.residue_names == "TIP3"
    sizes = np.diff(structure.residue_starts)
    assert_array_equal(sizes[structure.residue_names[structure.residue_starts[:-1]] == "TIP3"], 3)
    ions = np.isin(structure.residue_names, ("POT", "CLA"))
    assert ions.sum() == 100
    assert structure.residue_count == water.sum() // 3 + 100 + len(
        np.unique(structure.residue_ids[~water & ~ions])
    )


def test_psf_separated_by_blanks(tmp_path: Path) -> None:
    path = tmp_path / "namd.psf"
    path.write_text(
        "PSF NAMD\n\n1 !NTITLE\nREMARKS 12 !NATOM is not meant here!\n\n2 !NATOM\n"
        "1 LONGSEGMENT 1000000A RESIDUE NAMEOFATOM LONGTYPE_1 -0.25 12.011 0\n2 S 2 R B T 0.25 1.008 0\n\n"
        "1 !NBOND\n1 2\n"
    )
    structure = psf.read_psf(path)
    assert structure.atom_names.tolist() == ["NAMEOFATOM", "B"]
    assert structure.residue_ids.tolist() == [1000000, 2]
    assert structure.insertion_codes.tolist() == ["A", ""]
    assert structure.charges.tolist() == [-0.25, 0.25]
    assert structure.topology.types.tolist() == ["LONGTYPE_1", "T"]
    out = tmp_path / "out.psf"
    write_psf(structure, out)
    again = psf.read_psf(out)
    assert again.topology.flags == ("NAMD",)
    assert again.segment_ids.tolist() == ["LONGSEGMENT", "S"]
    assert_array_equal(again.topology.types, structure.topology.types)
