"""The molecule of a continuum: whole where a periodic cell splits it, and without the salt of the box."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import TOOLS

from vmdpotential import potential_at, read_structure, solvation_energy
from vmdpotential.commands.map import command as map_
from vmdpotential.commands.surface import command as surface_
from vmdpotential.io.trajectories.frames import LoadedFrames
from vmdpotential.maps import MapOptions, Medium
from vmdpotential.maps.solute import as_mapped, in_continuum
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.selection import is_ion, is_nucleic, is_protein, is_water
from vmdpotential.molecule.whole import WholeComplex
from vmdpotential.plugins.fields.field import field_at
from vmdpotential.plugins.fields.sites import FieldSites
from vmdpotential.plugins.live.command import command as live
from vmdpotential.plugins.live.live_map import LiveMap

DATA = Path(__file__).parents[1] / "data"
#: A, of grids that two images of a molecule are on in different ways.
SPACING, ALIKE = 1.0, 0.01


@pytest.fixture(scope="module")
def dna():
    """Two strands in a box of water, with Amber's charges and radii."""
    folder = TOOLS / "dna_dodecamer_explicit"
    return read_structure(folder / "minimized_dna_dodecamer.pdb", topology=folder / "prmtop")


def wrapped(structure, shift):
    """Return a structure whose atoms are moved, and each wrapped into the cell."""
    return replace(structure, positions=structure.cell.wrap(structure.positions + shift))


def distances(structure):
    """Return the distances of some atoms of the nucleic acid from each other."""
    bases = structure.positions[np.flatnonzero(is_nucleic(structure))[::40]]
    return np.linalg.norm(bases[:, None] - bases, axis=2)


@pytest.mark.parametrize("shift", [(20.0, 3.0, 30.0), (1.0, 30.0, 3.0), (-7.0, -20.0, 12.0)])
def test_strands_that_the_cell_splits_are_one_molecule(dna, shift):
    split = wrapped(dna, shift)
    assert not np.allclose(distances(split), distances(dna), atol=1e-3)
    whole, chosen, together = in_continuum(split, "solute", Medium.continuum())
    assert np.array_equal(chosen, is_nucleic(dna))
    assert distances(whole) == pytest.approx(distances(dna), abs=1e-6)
    assert np.array_equal(whole.positions[~chosen], split.positions[~chosen])
    assert together(whole.positions, whole.cell) is whole.positions
    assert in_continuum(dna, "solute", Medium.continuum())[0] is dna
    assert in_continuum(split, "solute", Medium.vacuum())[0] is split


@pytest.mark.slow
def test_energies_and_values_do_not_see_the_cell(dna, caplog):
    split, options = wrapped(dna, (20.0, 3.0, 30.0)), {"spacing": SPACING, "atoms": "solute"}
    whole = in_continuum(split, "solute", Medium.continuum())[0]
    exact = solvation_energy(dna, **options)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        result = solvation_energy(split, **options)
    assert result.total == pytest.approx(exact.total, rel=ALIKE)
    assert len(caplog.records) == 1
    caplog.clear()
    assert solvation_energy(dna, **options).total == exact.total
    assert not caplog.records
    point = whole.positions[is_nucleic(dna)].mean(0)[None] + [0.0, 0.0, 25.0]
    values = [potential_at(each, point, method="pb", **options) for each in (whole, split)]
    assert values[1] == pytest.approx(values[0], rel=1e-6)
    atoms = FieldSites.atoms(np.arange(0, 300, 7), [str(n) for n in range(43)])
    fields = [field_at(each, atoms, None if frames is None else LoadedFrames("frames", frames), method="pb",
                       spacing=SPACING)
              for each, frames in ((dna, None), (split, None), (dna, [(split.positions, split.cell)]))]
    for each in fields[1:]:
        difference = each.potential - fields[0].potential
        assert np.sqrt(np.mean(difference**2) / np.mean(fields[0].potential**2)) < ALIKE
    followed = LiveMap(dna, MapOptions(method="pb", atoms="solute", spacing=2.0, padding=5.0))
    grid = followed.update(split.positions, split.cell)
    assert np.ptp(grid.values) == pytest.approx(np.ptp(followed.first.values), rel=0.3)
    assert abs(grid.lattice.size / followed.first.lattice.size - 1) < 0.2


@pytest.mark.slow
def test_salt_of_a_solvated_system_is_left_to_the_solution(tpr, caplog):
    """Adenylate kinase in a box with four sodium ions."""
    ions, options = is_ion(tpr), {"spacing": 2.0, "radii": "bondi"}
    assert ions.sum() == 4
    with caplog.at_level(logging.WARNING):
        result = solvation_energy(tpr, atoms="solute", **options)
    assert "4" in caplog.text
    assert not result.energies[ions].any()
    protein = solvation_energy(tpr, atoms=is_protein(tpr), **options)
    assert result.total == pytest.approx(protein.total, rel=1e-6)
    for kept in (~in_continuum(tpr, "water", Medium.vacuum())[1], "solute or ions"):
        with_ions = solvation_energy(tpr, atoms=kept, **options)
        assert (with_ions.energies[ions] < -10).all()
    rows = np.flatnonzero(is_protein(tpr) | ions)
    dry = tpr.part(rows)  # atoms without their water: what they are is not known
    assert in_continuum(replace(dry, whole=None, whole_rows=None), "solute", Medium.continuum())[1].all()
    assert not in_continuum(dry, "solute", Medium.continuum())[1].all()
    map_report = map_(structure=tpr, atoms="solute", method="pb", radii="bondi", spacing=3.0, padding=3.0)
    assert map_report.data["net_charge"] == pytest.approx(float(tpr.charges[is_protein(tpr)].sum()))


def test_salt_does_not_count_in_addition_to_screening(tpr, caplog):
    options = {"spacing": 5.0, "unit": "V"}
    protein = map_(structure=tpr, atoms="protein", screened=0.15, **options).objects["grid"]
    with caplog.at_level(logging.WARNING):
        report = map_(structure=tpr, atoms="solute", screened=0.15, **options)
    assert "4 free ions (NA+) are left out" in caplog.text
    assert any("without 4 free ions (NA+), which belong to the solution: 3341 atoms" in line for line in report.lines)
    assert np.array_equal(report.objects["grid"].values, protein.values)
    with_ions = map_(structure=tpr, atoms="not water", screened=0.15, **options)
    assert with_ions.data["net_charge"] == pytest.approx(report.data["net_charge"] + 4)
    vacuum = map_(structure=tpr, medium="vacuum", **options)
    assert vacuum.data["net_charge"] == pytest.approx(report.data["net_charge"])
    explicit = map_(structure=tpr, atoms="solute", medium="explicit", **options)
    assert explicit.data["net_charge"] == pytest.approx(with_ions.data["net_charge"])
    assert "without" not in "".join(explicit.lines[1:2])


def test_a_viewer_learns_where_the_atoms_of_a_map_are(dna):
    split = wrapped(dna, (20.0, 3.0, 30.0))
    options = {"atoms": "solute", "method": "pb", "spacing": 4.0, "padding": 3.0}
    report = map_(structure=split, **options)
    shown = split.positions + report.objects["moved"].shifts
    assert distances(replace(split, positions=shown)) == pytest.approx(distances(dna), abs=1e-6)
    assert np.array_equal(report.objects["structure"].positions, shown)
    assert not report.objects["moved"].shifts[~is_nucleic(dna)].any()
    moved = split.positions.copy()
    for first, count, *shift in report.data["moved"]:
        moved[first : first + count] += shift
    np.testing.assert_allclose(moved, shown, atol=1e-3)
    for whole in ({"structure": dna, **options}, {"structure": split, **options, "method": "auto", "medium": "vacuum"}):
        result = map_(**whole)
        assert "moved" not in result.objects | result.data


def test_a_viewer_learns_it_of_a_structure_that_was_completed():
    """A peptide that lacks hydrogens, split by its cell."""
    peptide = read_structure(DATA / "models.pdb")
    heavy = (peptide.elements != "H") & ~is_water(peptide)
    peptide = replace(peptide.take(heavy), cell=Cell.from_parameters(40, 41, 42))
    split = wrapped(peptide, -peptide.positions.mean(0) + [0.2, 0.3, 0.1])
    report = map_(structure=split, method="pb", spacing=4.0, padding=3.0)
    shown = split.positions + report.objects["moved"].shifts
    distance = [np.linalg.norm(p[:, None] - p, axis=2) for p in (shown, peptide.positions)]
    np.testing.assert_allclose(*distance, atol=1e-6)
    atoms = report.objects["structure"]
    assert len(atoms) > len(shown)  # the hydrogens are with their atoms
    heavy = atoms.positions[atoms.elements != "H"]
    nearest = np.linalg.norm(atoms.positions[:, None] - heavy, axis=2).min(1)
    assert nearest.max() < 1.2


@pytest.mark.slow
def test_surface_is_where_the_map_is(dna):
    split = wrapped(dna, (20.0, 3.0, 30.0))
    grid = map_(structure=split, atoms="solute", method="pb", spacing=2.0, padding=5.0).objects["grid"]
    report = surface_(structure=split, map=grid, mesh_spacing=1.0)
    exact = surface_(structure=dna, map=map_(structure=dna, atoms="solute", method="pb", spacing=2.0,
                                             padding=5.0).objects["grid"], mesh_spacing=1.0)
    assert report.data["area"] == pytest.approx(exact.data["area"], rel=0.03)
    assert report.data["mean"] == pytest.approx(exact.data["mean"], rel=0.1)
    vacuum = replace(grid, provenance=replace(grid.provenance, medium="vacuum", medium_kind="vacuum"))
    assert as_mapped(split, vacuum) is split


def test_a_live_map_counts_the_atoms_that_it_moves():
    """A peptide in a cell, first whole, and then split."""
    peptide = read_structure(DATA / "models.pdb")
    peptide = replace(peptide.take(~is_water(peptide)), cell=Cell.from_parameters(40, 41, 42))
    split = wrapped(peptide, -peptide.positions.mean(0) + [0.2, 0.3, 0.1])
    options = {"method": "pb", "spacing": 4.0, "padding": 3.0}
    made = live(structure=peptide, **options).objects["live"]
    assert made.moved == 0
    made.update(split.positions)
    whole = WholeComplex.of(split, np.ones(len(split), bool))(split.positions, split.cell)
    assert made.moved == (whole != split.positions).any(1).sum() > 10
    made.update(peptide.positions)
    assert made.moved == 0
    assert live(structure=split, **options).objects["live"].moved > 10
