"""Names of residues and atoms that have several meanings, and residues that names do not separate."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vmdpotential.errors import TaskError
from vmdpotential.io import read_structure
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.radii import atomic_radii
from vmdpotential.molecule.structure import Structure
from vmdpotential.preparation.prepare import prepare_structure

DATA = Path(__file__).parent / "data"


def prepared(name, **options):
    return prepare_structure(read_structure(DATA / name), **options)


def added(result):
    return [atom for row in result.rows for atom in row.added_atoms]


def test_dna_in_names_of_before_2007_is_dna_with_the_charges_of_dna():
    old, new = prepared("dna_old_names.pdb"), prepared("dna.pdb")
    assert not added(old)
    assert len(old.structure) == len(new.structure) == 160
    np.testing.assert_array_equal(old.structure.elements, new.structure.elements)
    np.testing.assert_allclose(old.structure.charges, new.structure.charges, atol=1e-9)
    assert [row.residue for row in old.rows if row.note] == ["G", "A", "A"]  # which is said
    # a sugar that lacks more than O2' may be of either
    structure = read_structure(DATA / "dna_old_names.pdb")
    part = structure.take(~((structure.residue_ids == 5) & (structure.atom_names == "C2*")))
    assert {"O2'", "C2'"} <= set(added(prepare_structure(part)))


@pytest.mark.parametrize(("ph", "net"), [(5.0, -2), (7.0, -3), (9.0, -3)])
def test_a_terminal_phosphate_has_two_charges_above_its_pka(ph, net):
    result = prepared("dna_phosphate_first.pdb", ph=ph)
    assert result.structure.net_charge == pytest.approx(net, abs=1e-3)
    assert result.rows[0].pka == pytest.approx(6.3, abs=0.2)


def test_a_hydrogen_of_the_file_on_a_terminal_phosphate_stays():
    structure = prepared("dna_phosphate_first.pdb", ph=5.0).structure
    again = prepare_structure(replace(structure, charges=None, radii=None), ph=7.0)
    assert again.structure.net_charge == pytest.approx(-2, abs=1e-3)
    assert len(again.structure) == len(structure)


def test_a_modified_nucleotide_begins_a_chain_without_phosphate():
    result = prepared("rna_modified_first.pdb")
    assert result.structure.net_charge == pytest.approx(-2, abs=1e-3)
    assert not added(result)
    assert (result.structure.residue_names[result.structure.elements == "P"] == ["GF2", "AF2"]).all()


def cluster(name):
    """Return the atoms of a component of the dictionary."""
    from vmdpotential.preparation.components import component

    found = component(name)
    atoms = len(found.atoms)
    return Structure(found.positions, np.array(found.atoms), np.full(atoms, name), np.ones(atoms, int),
                     np.zeros(atoms, int), elements=np.array(found.elements))


def test_a_cubane_has_the_charge_of_its_oxidized_state():
    result = prepared("cluster_sf4.pdb")
    assert result.structure.net_charge == pytest.approx(2)
    for element in ("Fe", "S"):  # the cluster is symmetric
        assert np.ptp(result.structure.charges[result.structure.elements == element]) < 1e-9
    assert "[4Fe-4S]2+" in result.rows[0].note


@pytest.mark.parametrize(("name", "net"), [("FES", 2), ("F3S", 1), ("CUA", 3)])
def test_clusters_of_metals_have_the_charge_of_a_stated_state(name, net):
    result = prepare_structure(cluster(name))
    assert result.structure.net_charge == pytest.approx(net)
    assert result.rows[0].note
    metal = np.isin(result.structure.elements, ["Fe", "Cu"])
    assert result.structure.charges[metal].min() > 1


@pytest.mark.parametrize("name", ["OEX", "ICS", "CUZ"])
def test_clusters_of_unknown_oxidation_state_are_refused_by_name(name):
    with pytest.raises(TaskError, match=f"{name}1 .*oxidation state") as caught:
        prepare_structure(cluster(name))
    assert "{charges}" in caught.value.hint


def split_peptide():
    """Return a peptide without hydrogens, and the same with its atoms wrapped into a cell that splits it."""
    peptide = read_structure(DATA / "models.pdb")
    peptide = replace(peptide.take((peptide.elements != "H") & (peptide.residue_names != "HOH")),
                      cell=Cell.from_parameters(40, 41, 42, 80, 95, 100))
    centre = peptide.positions.mean(0)
    return peptide, replace(peptide, positions=peptide.cell.wrap(peptide.positions - centre))


def test_a_periodic_cell_does_not_change_what_is_added():
    peptide, split = split_peptide()
    assert np.ptp(split.positions, axis=0).max() > 30
    exact, result = prepare_structure(peptide), prepare_structure(split)
    assert not result.gaps
    assert result.structure.atom_names.tolist() == exact.structure.atom_names.tolist()
    np.testing.assert_allclose(result.structure.charges, exact.structure.charges)
    kept = np.flatnonzero(np.isin(result.structure.elements, ["H"], invert=True))
    np.testing.assert_allclose(result.structure.positions[kept][: len(split) - 1], split.positions[: len(split) - 1])


@pytest.mark.parametrize("name", ["mbondi2", "parse"])
def test_radii_do_not_depend_on_the_image(name):
    peptide, _ = split_peptide()
    whole = prepare_structure(peptide).structure
    everything = np.ones(len(whole), bool)
    expected = atomic_radii(whole, everything, name)[0]
    hydrogens = whole.elements == "H"
    assert (expected[hydrogens] == {"mbondi2": 1.3, "parse": 0.0}[name]).sum() > 5
    for seed in range(3):
        moved = whole.positions + np.random.default_rng(seed).uniform(0, 40, 3)
        wrapped = replace(whole, positions=whole.cell.wrap(moved))
        np.testing.assert_array_equal(atomic_radii(wrapped, everything, name)[0], expected)
