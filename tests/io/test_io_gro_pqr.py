"""GRO and PQR files, read and written."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from helpers import slow
from messages import naming
from structure_files import MDA, universe

from vmdpotential import io
from vmdpotential.errors import InputError


@pytest.mark.parametrize(
    "name",
    ["adk_oplsaa.gro", "dppc_vesicle_hg.gro", "grovels.gro", "make_whole.gro", "martini_dppc_chol_bilayer.gro",
     "plength.gro", "sameresid_diffresname.gro", "sample_velocity_file.gro", "two_water_gro_widebox.gro",
     "argon_npt_compressed.gro.gz"],
)  # fmt: skip
def test_gro_agrees_with_mdanalysis(name):
    structure, other = io.read_structure(MDA / name), universe(MDA / name)
    assert structure.atom_names.tolist() == other.atoms.names.tolist()
    assert structure.residue_names.tolist() == other.atoms.resnames.tolist()
    assert structure.residue_ids.tolist() == other.atoms.resids.tolist()
    assert structure.residue_count == len(other.residues)
    np.testing.assert_allclose(structure.positions, other.atoms.positions, atol=2e-5 * 200)
    np.testing.assert_allclose(structure.cell.parameters, other.dimensions, rtol=1e-5)


def test_gro_compressed_large_and_wrapped():
    big = io.read_structure(MDA / "bigbox.gro.bz2")
    assert (len(big), big.residue_count) == (132303, 44101)
    stated = [int(line[:5]) for line in (MDA / "residwrap.gro").read_text().splitlines()[2:-1]]
    assert io.read_structure(MDA / "residwrap.gro").residue_ids.tolist() == stated
    assert max(stated) == 99999
    assert stated[-1] == 1
    assert io.read_structure(MDA / "residwrap.gro").residue_count == 7
    assert io.read_structure(MDA / "huge_box.gro").cell.parameters[:3] == (400000,) * 3


def test_gro_precision(tmp_path):
    path = tmp_path / "a.gro"
    path.write_text(
        "title\n2\n    1SOL     OW    1  1.2345678 -0.1234567  0.0000001\n    1SOL    HW1    2  0.5000000  0.5000000"
        "  0.5000000\n   2.00000   2.00000   2.00000\n"
    )
    positions = io.read_structure(path).positions
    np.testing.assert_allclose(positions[0], [12.345678, -1.234567, 0.000001], atol=1e-12)


@pytest.mark.parametrize("name", ["adk_open.pqr", "1A2C.pqr"])
def test_pqr_agrees_with_mdanalysis(name):
    structure, other = io.read_structure(MDA / name), universe(MDA / name)
    assert structure.atom_names.tolist() == other.atoms.names.tolist()
    assert structure.residue_ids.tolist() == other.atoms.resids.tolist()
    np.testing.assert_allclose(structure.charges, other.atoms.charges, atol=1e-7)
    np.testing.assert_allclose(structure.positions, other.atoms.positions, atol=1e-4)


def test_pqr_without_chain_with_chain_and_with_fields_that_touch(tmp_path):
    path = tmp_path / "a.pqr"
    path.write_text(
        "REMARK by hand\n"
        "ATOM      1  N   ASP H  49      16.704  14.108  12.210 -0.3000 1.8500\n"
        "ATOM      2  CA  ASP H  49A     16.704-114.108-112.210  0.2000 1.8500\n"
        "HETATM10003  O   HOH W1000      16.704  14.108  12.210 -0.834 1.7\n"
        "ATOM 4 HO5' DC5 1 1 2 3 0.4 1.2\n"
        "TER\nEND\n"
    )
    structure = io.read_structure(path)
    assert structure.chain_ids.tolist() == ["H", "H", "W", ""]
    assert structure.residue_ids.tolist() == [49, 49, 1000, 1]
    assert structure.insertion_codes.tolist() == ["", "A", "", ""]
    assert structure.positions[1].tolist() == [16.704, -114.108, -112.210]
    assert structure.charges.tolist() == [-0.3, 0.2, -0.834, 0.4]
    assert structure.hetero.tolist() == [False, False, True, False]


@pytest.mark.parametrize("name", ["adk_open.pqr", "1A2C.pqr"])
def test_a_pqr_is_not_read_as_a_pdb(tmp_path, name):
    """gemmi.read_pdb takes a PQR without complaint and returns other coordinates."""
    shutil.copy(MDA / name, tmp_path / "a.pdb")
    with naming(InputError, "line ", "31-54 ", ".pqr"):
        io.read_structure(tmp_path / "a.pdb")
    shutil.copy(MDA / name, tmp_path / "a")
    assert io.read_structure(tmp_path / "a").charges is not None


@pytest.mark.parametrize("name", slow(["adk_open.pqr", "1A2C.pqr", "adk_oplsaa.tpr"], ["adk_oplsaa.tpr"]))
def test_written_pqr_is_read_back(tmp_path, request, name):
    structure = request.getfixturevalue("tpr") if name.endswith(".tpr") else io.read_structure(MDA / name)
    io.write_structure(structure, tmp_path / "out.pqr")
    again = io.read_structure(tmp_path / "out.pqr")
    np.testing.assert_allclose(again.charges, structure.charges, rtol=0, atol=6e-9)
    assert again.net_charge == pytest.approx(structure.net_charge, abs=1e-4)
    for name in ("atom_names", "residue_names", "residue_ids", "residue_index"):
        np.testing.assert_array_equal(getattr(again, name), getattr(structure, name))
    other = universe(tmp_path / "out.pqr")
    np.testing.assert_allclose(other.atoms.charges, structure.charges, atol=1e-6)
    np.testing.assert_allclose(other.atoms.positions, structure.positions, atol=1e-3)
    assert (other.atoms.radii[structure.elements == "C"] > 1).all()


def test_pqr_with_some_chains(tmp_path):
    """MDAnalysis wants a chain in every line or in none."""
    structure = io.read_structure(MDA / "align.pdb").with_charges([0.123456, -1, 0, 1])
    io.write_structure(structure, tmp_path / "out.pqr")
    again = io.read_structure(tmp_path / "out.pqr")
    assert again.segment_ids.tolist() == structure.segment_ids.tolist() == ["RNAA", "", "", "RNAA"]
    assert universe(tmp_path / "out.pqr").atoms.charges[0] == pytest.approx(0.123456)
