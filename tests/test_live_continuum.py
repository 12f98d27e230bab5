"""Live maps in water of a real protein: moved atoms, other states of protonation, and mutations, without a viewer."""

from dataclasses import replace

import numpy as np
import pytest
from structure_files import MDA

from vmdpotential import potential_map, read_structure
from vmdpotential.commands.live import command as live
from vmdpotential.commands.map import command as map_
from vmdpotential.frontend.adapters import same_molecules
from vmdpotential.molecule.selection import is_protein

OPTIONS = {"method": "pb", "radii": "auto+mbondi2", "spacing": 2.0, "padding": 6.0}


@pytest.fixture(scope="module")
def bpti():
    """BPTI as X rays show it: heavy atoms alone."""
    entry = read_structure(MDA / "mmcif" / "5PTI.cif.gz")
    return dry(entry, is_protein(entry) & ~np.isin(entry.elements, ["H", "D"]))


def dry(structure, rows):
    return replace(structure.part(rows), whole=None, whole_rows=None, cell=None)


def residue(structure, name, number):
    return (structure.residue_names == name) & (structure.residue_ids == number)


def mutated(structure, before, number, after, renamed):
    """Return a structure with a residue of another name, atoms of other names, and as many of them."""
    rows, names, elements = residue(structure, before, number), structure.residue_names.copy(), structure.elements
    assert rows.any()
    atoms, elements = structure.atom_names.copy(), elements.copy()
    names[rows] = after
    for old, new in renamed.items():
        atoms[rows & (structure.atom_names == old)] = new
        elements[rows & (structure.atom_names == old)] = new[0]
    return replace(structure, residue_names=names, atom_names=atoms, elements=elements)


def net(report):
    return float(report.objects["structure"].charges.sum())


def at_once(structure, shift, lattice):
    """Return the map of a completed structure that is moved."""
    return potential_map(replace(structure, positions=structure.positions + shift), lattice=lattice, method="pb",
                         radii="auto+mbondi2")


def alike(grid, other, limit):
    assert grid.lattice.shape == other.lattice.shape
    difference = grid.values - other.values
    return np.sqrt(np.mean(difference**2)) < limit * np.sqrt(np.mean(other.values**2))


@pytest.mark.slow
def test_states_of_protonation(bpti):
    charges = []
    for ph in (2.0, 7.0):
        report, made = live(structure=bpti, ph=ph, **OPTIONS), map_(structure=bpti, ph=ph, **OPTIONS)
        charges.append(net(report))
        assert "continuum" in report.objects["grid"].provenance.medium
        assert alike(report.objects["grid"], made.objects["grid"], 1e-5)
        shift = [0.7, -0.4, 0.2]  # hydrogens move with their atoms
        result = report.objects["live"].update(bpti.positions + shift)
        assert alike(result, at_once(report.objects["structure"], shift, result.lattice), 1e-4)
    assert charges[1] == pytest.approx(6, abs=0.01)
    assert charges[0] > 10  # its acids are neutral


@pytest.mark.slow
def test_mutations(bpti):
    wild = live(structure=bpti, **OPTIONS)
    lysine = residue(bpti, "LYS", 15)
    shorter = dry(bpti, ~(lysine & ~np.isin(bpti.atom_names, ["N", "CA", "C", "O", "CB"])))
    alanine = replace(shorter, residue_names=np.where(residue(shorter, "LYS", 15), "ALA", shorter.residue_names))
    asparagine = mutated(bpti, "ASP", 50, "ASN", {"OD2": "ND2"})
    for variant, change in ((alanine, -1.0), (asparagine, 1.0)):
        report = live(structure=variant, **OPTIONS)
        assert net(report) - net(wild) == pytest.approx(change, abs=1e-3)
        assert alike(report.objects["grid"], map_(structure=variant, **OPTIONS).objects["grid"], 1e-5)
        grid = report.objects["live"].update(variant.positions)
        assert alike(grid, report.objects["grid"], 1e-4)
        assert not same_molecules(variant, bpti)
    assert np.mean(live(structure=asparagine, **OPTIONS).objects["grid"].values) > np.mean(
        wild.objects["grid"].values)
    assert same_molecules(bpti, replace(bpti, positions=bpti.positions + 1))
