"""The planes of a membrane that is found: from marks and lipids, and what is refused."""

from dataclasses import replace
from importlib import resources

import numpy as np
import pytest
from helpers import charges_at, shell

from vmdpotential import potential_map, prepare, read_structure, select, solvation_energy
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.membranes import membrane_planes
from vmdpotential.molecule.radii import atomic_radii
from vmdpotential.plugins.continuum.pores import find_pores

LIPIDS = resources.files("openmm") / "app" / "data"


@pytest.fixture(scope="module")
def bilayer():
    return read_structure(LIPIDS / "POPC.pdb")


def ion_and_marks(heights, names=None):
    """Return an ion of 2 A at (0, 0, 1), and marks of a membrane at some heights."""
    places = [[x, y, z] for z in heights for x, y in ((-20, -20), (20, 5), (0, 25))]
    made = charges_at([[0, 0, 1.0], *places], [1.0] + [0.0] * len(places))
    return replace(made, residue_names=np.array(["MOL"] + ["DUM"] * len(places)), radii=np.full(len(made), 2.0),
                   residue_index=np.arange(len(made)))


def test_marks_give_the_same_energy_as_numbers():
    marked = ion_and_marks([-14.0, 16.0])
    planes = membrane_planes(marked)
    assert (planes.low, planes.high, planes.of_lipids) == (-14.0, 16.0, False)
    lattice = Lattice.around(marked.positions[:1], 1.0, 8.0)
    found = potential_map(marked, method="pb", lattice=lattice, parameters={"membrane": "auto"})
    given = potential_map(marked, method="pb", lattice=lattice, parameters={"membrane": 30, "membrane_centre": 1})
    assert np.array_equal(found.values, given.values)
    assert found.provenance.medium == given.provenance.medium
    for result in (found, given):
        assert result.solvation.total == pytest.approx(given.solvation.total)
    assert found.solvation.total > -30  # in water, -80 kcal/mol


def test_planes_of_lipids_are_those_of_the_hydrocarbon(bilayer):
    """28.8 A for POPC (N. Kucerka et al., Biochim. Biophys. Acta 1808 (2011) 2761); one small frame deviates more."""
    planes = membrane_planes(bilayer)
    assert planes.high - planes.low == pytest.approx(28.8, abs=3.5)
    carbons = bilayer.positions[np.isin(bilayer.atom_names, ["C22", "C32"]) & (bilayer.residue_names != "HOH"), 2]
    middle = 0.5 * (planes.low + planes.high)
    assert planes.low == pytest.approx(carbons[carbons < middle].mean(), abs=0.5)
    assert planes.high == pytest.approx(carbons[carbons > middle].mean(), abs=0.5)


def test_membrane_around_a_transporter_and_no_pore_through_it():
    """YiiP in POPE and POPG, which opens to one side at a time."""
    system = read_structure(resources.files("MDAnalysisTests") / "data" / "analysis" / "YiiP_lipids.gro.gz")
    planes = membrane_planes(system)
    assert planes.high - planes.low == pytest.approx(30.0, abs=3.0)
    protein = select(system, "protein")
    radii, _ = atomic_radii(system, protein, "bondi")
    assert find_pores(system.positions[protein], radii, 1.4, planes.low, planes.high) is None


def test_phosphates_where_no_ester_is_seen(bilayer):
    lipid = np.flatnonzero(select(bilayer, "lipid"))
    atoms = bilayer.take(lipid[bilayer.elements[lipid] != "O"])
    planes = membrane_planes(atoms)
    z = atoms.positions[atoms.elements == "P", 2]
    assert planes.low == pytest.approx(z[z < z.mean()].mean(), abs=1e-9)


def test_lipids_are_replaced_and_not_part_of_the_molecule(bilayer):
    charged = bilayer.with_charges(np.zeros(len(bilayer)))
    with pytest.raises(InputError):
        solvation_energy(charged, parameters={"membrane": "auto"})


@pytest.mark.parametrize("heights", [[], [3.0], [-14.0, 2.0, 16.0], [-14.0, -11.0, 16.0]])
def test_refuses_what_is_no_membrane(heights):
    with pytest.raises(InputError):
        solvation_energy(ion_and_marks(heights), parameters={"membrane": "auto"})


def test_lipids_along_another_axis(bilayer):
    with pytest.raises(InputError):
        membrane_planes(replace(bilayer, positions=bilayer.positions[:, [2, 0, 1]]))


@pytest.mark.parametrize("values", [{"membrane": "auto", "membrane_centre": 3.0}, {"probe": "auto"},
                                    {"membrane": "automatic"}, {"membrane": float("nan")}])
def test_refuses_other_values(values):
    with pytest.raises(UsageError):
        solvation_energy(ion_and_marks([-14.0, 16.0]), parameters=values)


def test_preparation_keeps_the_planes_that_it_leaves_out(capsys, tmp_path):
    file = tmp_path / "marked.pdb"
    lines = (resources.files("pdbfixer") / "tests" / "data" / "1BHL.pdb").read_text().splitlines()
    atoms = [line for line in lines if line.startswith("ATOM") and int(line[22:26]) < 62]
    marks = [f"HETATM{9000 + n:5d}  {name}   DUM  {900 + n:4d}    {x:8.3f}{0:8.3f}{z:8.3f}"
             for n, (name, x, z) in enumerate([("N", 1, -15.5), ("N", 9, -15.5), ("O", 1, 15.5), ("O", 9, 15.5)])]
    file.write_text("\n".join([*atoms, *marks, "END", ""]))
    made = prepare(file).structure
    planes = membrane_planes(made)
    assert (planes.low, planes.high) == (-15.5, 15.5)
    command = ("map", file, "-o", tmp_path / "map.npz", "--method", "pb", "--spacing", 2, "--set")
    code, out, err = shell(capsys, *command, "membrane=auto")
    assert (code, "31 A" in out) == (0, True), out + err
    assert shell(capsys, *command, "membrane=nan", "--force")[0] == 2


@pytest.mark.parametrize("radius", [np.nan, -1.0, 1e30])
def test_implausible_radii_are_replaced_for_all_atoms(radius, caplog):
    made = replace(ion_and_marks([]), radii=np.array([radius]), elements=np.array(["C"]))
    radii, source = atomic_radii(made, np.ones(1, bool))
    assert (radii[0], source) == (1.7, "mbondi2")
    assert "radius" in caplog.text
