"""Coordinates with the topology, frames or charges of another file."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from messages import naming
from structure_files import MDA, TOOLS, assert_same, atom_lines, structure_of, universe

from vmdpotential import io
from vmdpotential.errors import InputError


def test_charges_of_a_tpr_land_on_the_atoms_they_belong_to(tpr):
    structure = io.merge_topology(io.read_structure(MDA / "adk_oplsaa.pdb"), tpr)
    assert abs(structure.net_charge) < 1e-3
    waters = structure.residue_names == "SOL"
    per_name = {name: set(np.round(structure.charges[waters & (structure.atom_names == name)], 3).tolist())
                for name in ("OW", "HW1", "HW2", "MW")}  # fmt: skip
    assert per_name == {"OW": {0.0}, "HW1": {0.52}, "HW2": {0.52}, "MW": {-1.04}}
    assert np.allclose(np.diff(structure.residue_starts)[-4:], 1)  # the four sodium ions
    assert structure.cell.parameters == pytest.approx((80.017, 80.017, 80.017, 60, 60, 90), abs=1e-3)


def test_psf_with_pdb_and_prmtop_with_inpcrd(tmp_path):
    structure = io.read_structure(MDA / "adk_closed.pdb", MDA / "adk.psf")
    assert structure.net_charge == pytest.approx(float(universe(MDA / "adk.psf").atoms.charges.sum()), abs=1e-4)
    assert structure.net_charge == pytest.approx(-4, abs=1e-3)
    assert set(structure.segment_ids) == {"4AKE"}
    assert set(structure.elements) == {"H", "C", "N", "O", "S"}  # which neither file states
    assert len(structure.topology.bonds) == len(universe(MDA / "adk.psf").bonds)
    np.testing.assert_array_equal(structure.positions, io.read_structure(MDA / "adk_closed.pdb").positions)
    dhfr = io.read_structure(TOOLS / "dhfr" / "JAC.inpcrd", TOOLS / "dhfr" / "JAC.prmtop")
    assert (len(dhfr), round(dhfr.net_charge, 3)) == (23558, -11)
    assert dhfr.cell is not None
    # the same files under names that tell nothing
    shutil.copy(TOOLS / "dhfr" / "JAC.prmtop", tmp_path / "prmtop")
    shutil.copy(TOOLS / "dhfr" / "JAC.inpcrd", tmp_path / "inpcrd")
    again = io.read_structure(tmp_path / "inpcrd", tmp_path / "prmtop")
    assert_same(dhfr, again)
    np.testing.assert_array_equal(dhfr.charges, again.charges)


@pytest.mark.parametrize(
    ("coordinates", "topology", "message"),
    [
        ("1hvr.pdb", "adk.psf", r"1hvr.pdb has 1890 atoms, but .*adk.psf has 3341"),
        ("adk_closed_shifted.pdb", "adk.psf", r"do not list the same atoms: atom 1 is .* \(\d+ atoms are of another"),
        ("adk_closed_renamed.pdb", "adk.psf", r"do not list the same atoms: atom \d+ is .* names differ"),
        ("SiN_tric_namd.dcd", "adk.psf", "5545 atoms and the structure 3341"),
        ("adk.psf", None, "a topology has no coordinates; give the coordinate file, and this one as topology"),
        ("adk.psf", "adk_closed.pdb", "a topology has no coordinates"),
        ("SiN_tric_namd.dcd", None, "coordinates only.*as topology"),
        ("Amber/ace_tip3p.nc", None, "coordinates only.*as topology"),
        ("Amber/ache.prmtop", None, "a topology has no coordinates"),
        ("adk_closed.pdb", "SiN_tric_namd.dcd", "is not a topology"),
    ],
)
def test_files_that_do_not_fit(tmp_path, coordinates, topology, message):
    path = MDA / coordinates
    atoms = [line + "\n" for line in atom_lines(MDA / "adk_closed.pdb")]
    if coordinates == "adk_closed_shifted.pdb":
        path = tmp_path / coordinates
        path.write_text("".join(atoms[1:] + atoms[:1]))
    elif coordinates == "adk_closed_renamed.pdb":  # heavy atoms under other names of the same elements
        path = tmp_path / coordinates
        path.write_text("".join(line[:13] + "9" + line[14:] if line[12] in "CON" else line for line in atoms))
    with pytest.raises(InputError, match=message) as caught:
        io.read_structure(path, topology and MDA / topology)
    assert "\n" not in str(caught.value)


def test_harmless_names_are_accepted():
    atoms = {"residue_ids": [1] * 7, "residue_index": [0, 0, 0, 0, 1, 1, 1]}
    pdb = structure_of(np.random.default_rng(0).random((7, 3)), **atoms, sources=("a.pdb",), chain_ids=["A"] * 7,
                       atom_names=["N", "1HB", "HB2", "C1", "OW", "HW1", "HW2"],
                       residue_names=["HIS"] * 4 + ["SOL"] * 3)
    psf = structure_of(np.zeros((7, 3)), **atoms, sources=("a.psf",), segment_ids=["P"] * 7, charges=np.arange(7.0),
                       atom_names=["N", "HB1", "HB3", "C1", "OH2", "H1", "H2"],
                       residue_names=["HSD"] * 4 + ["TIP3"] * 3)  # fmt: skip
    both = io.merge_topology(pdb, psf)
    assert both.atom_names.tolist() == psf.atom_names.tolist()
    assert both.charges.tolist() == psf.charges.tolist()
    assert (set(both.chain_ids), set(both.segment_ids)) == ({"A"}, {"P"})
    np.testing.assert_array_equal(both.positions, pdb.positions)
    assert both.sources == ("a.pdb", "a.psf")
    with naming(InputError, "atom 5 is SOL1:OW ", " TIP31:H1 "):
        io.merge_topology(pdb, replace(psf, atom_names=np.array(["N", "HB1", "HB3", "C1", "H1", "OH2", "H2"])))
