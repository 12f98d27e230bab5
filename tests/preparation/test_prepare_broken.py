"""Damaged structures: completed with finite places and charges, or refused in our own words."""

from dataclasses import replace
from pathlib import Path

import MDAnalysisTests
import numpy as np
import pytest

from vmdpotential.errors import InputError, TaskError, VmdpotentialError
from vmdpotential.io import read_structure
from vmdpotential.plugins.preparation.prepare import prepare_structure

DATA = Path(MDAnalysisTests.__file__).parent / "data"
NAMES = ["ALA", "HIS", "DG", "A", "NAG", "HEM", "ZN", "HOH", "UNK", "LIG", "ATP", "CYS", "X", "SO4", "ACE"]


def damaged(structure, random):
    """Return the structure with one to three kinds of damage."""
    for kind in random.choice(7, random.integers(1, 4), replace=False):
        count = len(structure)
        few = random.integers(0, count, max(1, count // 20))
        if kind == 0:
            structure = structure.take(random.random(count) > random.choice([0.02, 0.3, 0.8]))
        elif kind == 1:
            positions = structure.positions.copy()
            positions[few] = positions[few[0]]
            structure = replace(structure, positions=positions)
        elif kind == 2:
            names = structure.residue_names.astype("<U4")
            chosen = np.isin(structure.residue_index, structure.residue_index[few[:3]])
            names[chosen] = random.choice(NAMES)
            structure = replace(structure, residue_names=names)
        elif kind == 3:
            elements = structure.elements.astype("<U2")
            elements[few] = random.choice(["C", "Fe", "H", "D", "", "Xe", "P"])
            structure = replace(structure, elements=elements)
        elif kind == 4:
            structure = replace(structure, positions=structure.positions * random.choice([0.0, 0.2, 1e4]))
        elif kind == 5:
            atoms = structure.atom_names.astype("<U4")
            atoms[few] = random.choice(["CA", "H01", "X", "OXT", "P"])
            structure = replace(structure, atom_names=atoms)
        else:
            structure = structure.take(np.isin(structure.atom_names, ["N", "CA", "C", "O", "CB", "P", "C1"]))
        if not len(structure):
            break
    return structure


def test_coordinates_and_names_without_an_end_are_refused_in_one_line():
    structure = read_structure(DATA / "mmcif/1YJP.cif")
    positions = structure.positions.copy()
    positions[5] = 1e200
    with pytest.raises(InputError) as caught:
        prepare_structure(replace(structure, positions=positions))
    assert structure.label(5) in str(caught.value)
    names = structure.residue_names.astype("<U300")
    names[names == "TYR"] = "Q" * 300
    with pytest.raises(TaskError) as caught:
        prepare_structure(replace(structure, residue_names=names, sources=("x.cif",)))
    assert len(str(caught.value)) < 300


@pytest.mark.slow
@pytest.mark.filterwarnings("error:invalid value:RuntimeWarning", "error:divide by zero:RuntimeWarning")
@pytest.mark.parametrize("name", ["mmcif/1YJP.cif", "4E43.pdb"])
def test_damage_ends_in_finite_numbers_or_an_error_of_ours(name):
    whole = read_structure(DATA / name)
    first = whole.take(whole.residue_index < 45)
    for seed in range(20):
        structure = damaged(first, np.random.default_rng(seed))
        try:
            made = prepare_structure(structure).structure
        except VmdpotentialError:
            continue
        assert np.isfinite(made.positions).all(), seed
        assert np.isfinite(made.known_charges).all(), seed
        assert np.isfinite(made.radii).all(), seed
