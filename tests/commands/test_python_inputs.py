"""What functions of Python take: files, entries without hydrogens, and other objects, which are one sentence."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import shell
from messages import naming

import vmdpotential as vp
from vmdpotential.errors import InputError, UsageError, VmdpotentialError
from vmdpotential.molecule.cell import Cell

ROOT = Path(__file__).resolve().parents[2]

#: A tripeptide without hydrogens, with the geometry of an extended chain, and a water.
PEPTIDE = """\
ATOM      1  N   ALA A   1      -0.525   1.362   0.000  1.00  0.00           N
ATOM      2  CA  ALA A   1       0.000   0.000   0.000  1.00  0.00           C
ATOM      3  C   ALA A   1       1.520   0.000   0.000  1.00  0.00           C
ATOM      4  O   ALA A   1       2.145  -1.061   0.000  1.00  0.00           O
ATOM      5  CB  ALA A   1      -0.500  -0.755  -1.229  1.00  0.00           C
ATOM      6  OXT ALA A   1       2.100   1.090   0.000  1.00  0.00           O
END
"""


@pytest.fixture
def peptide(tmp_path):
    path = tmp_path / "peptide.pdb"
    path.write_text(PEPTIDE)
    return path


def test_a_file_without_hydrogens_gives_the_map_of_the_shell(peptide, tmp_path, capsys, caplog):
    written = tmp_path / "map.npz"
    words = ["--medium", "vacuum", "--spacing", "1", "--padding", "3"]
    code, _, error = shell(capsys, "map", peptide, *words, "-o", written)
    assert code == 0, error
    expected = vp.read_map(written)
    for structure in (peptide, str(peptide), vp.read_structure(peptide)):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            grid = vp.potential_map(structure, medium="vacuum", spacing=1.0, padding=3.0)
        np.testing.assert_array_equal(grid.values, expected.values)
        assert "hydrogen" in caplog.text  # what was added is said


def test_arrays_select_atoms_of_the_given_structure(peptide):
    """Atoms are added to the structure, and an array counts those before."""
    structure = vp.read_structure(peptide)
    whole = vp.prepare(structure).structure
    carbonyl = np.flatnonzero(structure.atom_names == "O")
    points = [[5.0, 5.0, 5.0], [0.0, 4.0, 4.0]]
    of_oxygen = vp.potential_at(whole, points, atoms=np.flatnonzero(whole.atom_names == "O"))
    np.testing.assert_allclose(vp.potential_at(structure, points, atoms=carbonyl), of_oxygen, rtol=1e-6)


def test_energies_take_a_file_as_well(peptide):
    prepared = vp.prepare(peptide).structure
    assert vp.solvation_energy(peptide, spacing=1.0).total == pytest.approx(
        vp.solvation_energy(prepared, spacing=1.0).total, rel=1e-9)


@pytest.mark.parametrize(("call", "kind", "parameter"), [
    (lambda s: replace(s, cell=[1, 2, 3]), UsageError, "cell"),
    (lambda s: replace(s, positions=None), UsageError, "positions"),
    (lambda s: replace(s, positions=[[1.0, 2.0]]), UsageError, "positions"),
    (lambda s: replace(s, charges=["much"] * len(s)), UsageError, "charges"),
    (lambda s: replace(s, residue_ids=["x"] * len(s)), UsageError, "residue_ids"),
    (lambda s: vp.potential_map(s, 0), UsageError, "options"),
    (lambda s: vp.potential_map(s, field=[]), UsageError, "field"),
    (lambda s: vp.potential_map(s, field=object()), UsageError, "field"),
    (lambda s: vp.potential_map(None), UsageError, "structure"),
    (lambda s: vp.potential_map(3), UsageError, "structure"),
    (lambda s: vp.potential_map("missing.pdb"), InputError, ""),
    (lambda s: vp.potential_at(s, s.positions, 0), UsageError, "options"),
    (lambda s: vp.potential_at(s, [None, 1.0]), UsageError, "points"),
])
def test_other_objects_are_refused_in_one_line(call, kind, parameter, peptide):
    structure = vp.read_structure(peptide).with_charges(np.zeros(6))
    with pytest.raises(kind) as caught:
        call(structure)
    assert isinstance(caught.value, VmdpotentialError)
    assert caught.value.parameter == parameter
    assert "\n" not in str(caught.value)


def test_a_topology_of_openmm_without_positions_is_refused():
    openmm = pytest.importorskip("openmm.app")
    with naming(InputError, "positions"):
        vp.Structure.from_openmm(openmm.Topology(), None)


def test_cells_and_arrays_of_other_kinds_are_taken(peptide):
    structure = vp.read_structure(peptide)
    made = replace(structure, cell=Cell.from_parameters(20, 20, 20), charges=[0] * 6)
    assert made.charges.dtype == np.float64
    assert made.cell.volume == pytest.approx(8000)
