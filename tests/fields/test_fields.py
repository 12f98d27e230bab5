"""Fields at atoms, bonds and points: closed forms, Ewald's sum, OpenMM, exclusions, contributions, the command."""

import csv
import json
import pickle
from dataclasses import replace
from pathlib import Path

import ewald
import MDAnalysisTests
import numpy as np
import openmm
import pytest
from helpers import charges_at, random_charges, refused, shell, water
from openmm import unit
from test_profile import layers, write

from vmdpotential.engines import get_engine
from vmdpotential.engines.cpu import CpuEngine
from vmdpotential.errors import InputError
from vmdpotential.frames.cells import CellFrames
from vmdpotential.interactions import coulomb
from vmdpotential.io.files.points import read_points
from vmdpotential.io.trajectories.frames import Trajectory
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Topology
from vmdpotential.plugins.fields import field as fields
from vmdpotential.plugins.fields.field import field_at
from vmdpotential.plugins.fields.sites import FieldSites, bonds_between
from vmdpotential.sums.choice import plan_fastest
from vmdpotential.sums.points import request_at
from vmdpotential.units import coulomb_constant

C = coulomb_constant("V")
FILES = Path(MDAnalysisTests.__file__).parent / "data"
CUBE = Cell.from_parameters(20, 20, 20)
SLANTED = Cell.from_parameters(28, 33, 30, 70, 100, 115)


def atoms(*rows):
    return FieldSites.atoms(np.array(rows), [str(n) for n in rows])


def points(places):
    return FieldSites.at(np.asarray(places, float), [str(n) for n in range(len(places))])


def definition(places, positions, charges, here=()):
    """Return potential (P,), e/A, and field (P, 3), e/A^2, of all charges but the one that each place is, if any."""
    d = places[:, None] - positions
    r = np.linalg.norm(d, axis=2)
    r[np.arange(len(here)), list(here)] = np.inf
    return (charges / r).sum(1), np.einsum("pn,pnd->pd", charges / r**3, d)


def test_rock_salt_has_madelungs_constant_and_no_field():
    index = np.indices((4, 4, 4)).reshape(3, -1).T
    sign = (-1.0) ** index.sum(1)
    salt = charges_at(2.82 * index, sign, Cell.from_parameters(*[4 * 2.82] * 3))
    result = field_at(salt, atoms(*range(64)))
    np.testing.assert_allclose(result.potential[0, 0] * sign, -1.74756459463318 * C / 2.82, rtol=2e-5)
    assert abs(result.field).max() < 1e-5 * C / 2.82


@pytest.mark.parametrize("count", [40, 3000])
def test_an_open_boundary_has_all_atoms(monkeypatch, count):
    positions, charges = random_charges(count, 0, 30)
    monkeypatch.setattr(CpuEngine, "costs", CpuEngine.costs._replace(
        point_pair_field=1.0 if count > 1000 else 0.0))
    structure = charges_at(positions, charges)
    expected = definition(positions[:20], positions, charges, range(20))
    actual = field_at(structure, atoms(*range(20)))
    assert (actual.error == 0) == (count < 1000)
    error = 3e-5 if count > 1000 else 1e-9
    np.testing.assert_allclose(actual.potential[0, 0], C * expected[0], atol=error * 10)
    np.testing.assert_allclose(actual.field[0, 0], C * expected[1], atol=error * 20)
    away = np.array([[50.0, 0, 0], [-5, 40, 3]])
    actual = field_at(structure, points(away))
    np.testing.assert_allclose(actual.field[0, 0], C * definition(away, positions, charges)[1], atol=error * 20)


@pytest.mark.parametrize("cell", [pytest.param(Cell.from_parameters(24, 31, 37), marks=pytest.mark.slow), SLANTED])
def test_a_periodic_cell_is_ewalds_sum(cell):
    rng = np.random.default_rng(3)
    positions, charges = rng.uniform(-1, 2, (30, 3)) @ cell.vectors, rng.normal(0.1, 0.5, 30)
    structure = charges_at(positions, charges, cell)
    places = rng.uniform(-1, 2, (10, 3)) @ cell.vectors
    actual, expected = field_at(structure, points(places)), ewald.with_field(places, positions, charges, cell.vectors)
    np.testing.assert_allclose(actual.potential[0, 0], C * expected[0], atol=1e-4)
    np.testing.assert_allclose(actual.field[0, 0].T, C * expected[1:], atol=3e-4)
    assert np.std(actual.field[0, 0].T - C * expected[1:]) < 2 * actual.error
    # at an atom: all others, and its own images
    groups = {"a": np.arange(30) < 10, "b": (np.arange(30) > 5) & (np.arange(30) < 20)}
    actual = field_at(structure, atoms(7, 15), sources=groups)
    for n, row in enumerate((7, 15)):
        others = np.arange(30) != row
        _, *field = ewald.with_field(positions[row : row + 1], positions[others], charges[others], cell.vectors)
        np.testing.assert_allclose(actual.field[0, 0, n], C * np.ravel(field), atol=3e-4)
    assert actual.names == ["total", "a", "b", "rest"]
    overlap = field_at(structure, atoms(7, 15), sources={"both": groups["a"] & groups["b"]})
    for values, of_both in ((actual.field, overlap.field), (actual.potential, overlap.potential)):
        np.testing.assert_allclose(values[0, 0], values[0, 1:].sum(0) - of_both[0, 1], atol=1e-10)


def test_a_test_charge_is_pushed_as_openmm_pushes_it():
    box = water(18.0, Cell.from_parameters(18, 18, 18))
    place = np.array([9.2, 8.0, 9.9])
    system, force = openmm.System(), openmm.NonbondedForce()
    for charge in [*box.charges, 1e-3]:
        system.addParticle(1)
        force.addParticle(charge, 0.1, 0)
    system.setDefaultPeriodicBoxVectors(*(box.cell.vectors / 10))
    force.setNonbondedMethod(openmm.NonbondedForce.PME)
    force.setCutoffDistance(0.85)
    force.setEwaldErrorTolerance(1e-6)
    system.addForce(force)
    context = openmm.Context(system, openmm.VerletIntegrator(1), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(np.concatenate([box.positions, place[None]]) / 10)
    pushed = context.getState(getForces=True).getForces(asNumpy=True)[-1].value_in_unit(
        unit.kilocalories_per_mole / unit.angstrom)
    volts = C / coulomb_constant("kcal/mol/e")
    np.testing.assert_allclose(field_at(box, points(place[None])).field[0, 0, 0], pushed / 1e-3 * volts, atol=2e-3)


def test_water_feels_the_field_of_charged_sheets():
    sheets, box = layers((5.0, 2.0), (55.0, -2.0)), water(24.0)
    both = charges_at(np.concatenate([box.positions + np.array([0, 0, 18]), sheets.positions]),
                      np.concatenate([box.charges, sheets.charges]), sheets.cell)
    of_sheets = np.arange(len(both)) >= len(box)
    actual = field_at(both, atoms(*range(0, len(box), 60)), sources={"water": ~of_sheets, "sheets": of_sheets},
                     boundary="periodic")
    expected = [0, 0, 4 * np.pi * C * 2 / 24**2 * (1 - 50 / 60)]
    np.testing.assert_allclose(actual.field[0, 2], np.broadcast_to(expected, actual.field[0, 2].shape), atol=2e-4)


def peptide():
    """Two residues of four atoms, bonded in a row, and an ion, in an open boundary."""
    rng = np.random.default_rng(8)
    positions = np.cumsum(rng.normal(0.8, 0.4, (9, 3)), axis=0)
    structure = charges_at(positions, rng.normal(size=9))
    bonds = np.stack([np.arange(7), np.arange(1, 8)], axis=1)
    return replace(
        structure, atom_names=np.array(["N", "CA", "C", "O"] * 2 + ["NA"]), elements=np.array([*"NCCONCCO", "NA"]),
        residue_index=np.repeat([0, 1, 2], [4, 4, 1]), residue_ids=np.repeat([1, 2, 3], [4, 4, 1]),
        topology=Topology("psf", np.full(9, "X"), np.ones(9), bonds))


def test_what_a_place_does_not_feel():
    structure = peptide()
    rows = {"atom": [2], "residue": range(4), "molecule": range(8)}
    for exclude, own in rows.items():
        others = np.delete(np.arange(9), list(own))
        expected = definition(structure.positions[2:3], structure.positions[others], structure.charges[others])
        actual = field_at(structure, atoms(2), exclude=exclude)
        np.testing.assert_allclose(actual.field[0, 0, 0], C * expected[1][0], atol=1e-9)
        np.testing.assert_allclose(actual.potential[0, 0, 0], C * expected[0][0], atol=1e-9)
    # in a cell the images of what is left out stay
    periodic = replace(structure, cell=CUBE)
    left_out = np.arange(9) >= 4
    actual = field_at(periodic, atoms(2), exclude="residue", sources={"own": ~left_out})
    inside, image = (ewald.with_field(structure.positions[2:3], structure.positions[rows], structure.charges[rows],
                                      CUBE.vectors)[1:, 0] for rows in (left_out, [0, 1, 3]))
    near = definition(structure.positions[2:3], structure.positions[[0, 1, 3]], structure.charges[[0, 1, 3]])[1][0]
    np.testing.assert_allclose(actual.field[0, 0, 0], C * (inside + image - near), atol=5e-4)
    np.testing.assert_allclose(actual.field[0, 1, 0], C * (image - near), atol=5e-4)
    with refused("exclude"):
        field_at(replace(structure, topology=None), atoms(2), exclude="molecule")


def test_along_bonds():
    structure = peptide()
    carbons, oxygens = structure.atom_names == "C", structure.atom_names == "O"
    for item in (structure, replace(structure, topology=None)):
        np.testing.assert_array_equal(bonds_between(item, carbons, oxygens), [[2, 3], [6, 7]])
    np.testing.assert_array_equal(bonds_between(structure, oxygens, carbons), [[3, 2], [7, 6]])
    places = FieldSites.bonds(bonds_between(structure, carbons, oxygens), ["1", "2"])
    actual = field_at(structure, places, exclude="residue")
    middle = structure.positions[[2, 3]].mean(0)
    along = structure.positions[3] - structure.positions[2]
    expected = definition(middle[None], structure.positions[4:], structure.charges[4:])[1][0]
    assert actual.along[0, 0, 0] == pytest.approx(C * expected @ along / np.linalg.norm(along), abs=1e-9)
    # through the side of a cell, the other way round
    shifted = structure.positions.copy()
    shifted[3] += CUBE.vectors[0]
    item, other = (field_at(replace(structure, positions=p, cell=CUBE), places, exclude="residue").along
                  for p in (structure.positions, shifted))
    np.testing.assert_allclose(item, other, atol=1e-9)
    with refused("bonds"):
        bonds_between(structure, structure.atom_names == "CA", oxygens)
    with refused("bonds"):
        bonds_between(replace(structure, topology=None), carbons, structure.atom_names == "NA")


def test_points_move_with_a_group():
    structure = peptide()
    given = FieldSites.at(structure.positions[:2] + np.array([0, 0, 1.5]), ["a", "b"], structure, np.arange(9) < 8)
    before = field_at(structure, given)
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    turn *= np.linalg.det(turn)
    moved = replace(structure, positions=structure.positions @ turn.T + [3, 4, 5])
    given_again = FieldSites.at(given.points, ["a", "b"], structure, np.arange(9) < 8)
    after = field_at(moved, given_again)
    np.testing.assert_allclose(after.potential, before.potential, atol=1e-8)
    np.testing.assert_allclose(after.field, before.field, atol=1e-8)
    wrapped = CUBE.wrap(structure.positions + np.array([8.0, 9, 3]))
    here = field_at(replace(structure, cell=CUBE), given)
    there = field_at(replace(structure, positions=wrapped, cell=CUBE), given)
    np.testing.assert_allclose(there.field, here.field, atol=2e-4)
    with refused("fit"):
        FieldSites.at(given.points, ["a", "b"], structure, np.arange(9) < 2)


def test_frames_of_cells_that_change(tmp_path):
    rng = np.random.default_rng(5)
    fraction, charges = rng.random((50, 3)), rng.normal(size=50)
    made = [(fraction @ cell.vectors, cell) for n in range(3)
            for cell in [Cell.from_parameters(20 + n, 21, 22, 90, 90, 90 + n)]]
    structure = charges_at(made[0][0], charges, made[0][1])
    result = field_at(structure, atoms(0, 1), write(tmp_path / "frames.dcd", made))
    assert result.frames.tolist() == [0, 1, 2]
    frames = CellFrames.of(structure, Trajectory(tmp_path / "frames.dcd", 50), "auto")
    work = fields.Fields(frames, charges, atoms(0, 1),
                         [np.arange(50)], np.ones((1, 1), bool), np.array([[0, 0], [1, 1]]), coulomb.INTERACTION.bind(),
                         plan_fastest(request_at(made[0][0][:2], made[0][0], charges, made[0][1], tolerance=1e-5,
                                                field=True).with_error(1e-6), get_engine("cpu")))
    elsewhere = pickle.loads(pickle.dumps(work)).block(range(1, 3))  # as another process does it
    np.testing.assert_array_equal(C * elsewhere["values.rows"][..., 1:], result.field[1:])
    for n, (positions, cell) in enumerate(made):
        alone = field_at(charges_at(positions, charges, cell), atoms(0, 1))
        np.testing.assert_allclose(result.field[n], alone.field[0], atol=1e-3)


def test_files_of_points(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("x,y,z,name\n1,2,3,here\n# a remark\n\n4 5 6\n")
    places, names = read_points(path)
    np.testing.assert_array_equal(places, [[1, 2, 3], [4, 5, 6]])
    assert names == ["here", "2"]
    for text, message in (("1,2,3\n1,2\n", "line 2"), ("x,y,z\n", "no points"), ("1,2,nan\n1,2,nan\n", "line 2")):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_points(path)


ADK = (FILES / "adk_oplsaa.gro", "--topology", FILES / "adk_oplsaa.tpr")


def test_the_command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bonds = ("--bonds", "//*/10-20/C", "//*/10-20/O", "--from", "protein", "water", "--field-unit", "MV/cm")
    code, out, err = shell(capsys, "field", ADK[0], FILES / "adk_oplsaa.xtc", *ADK[1:], *bonds, "--frames", "::5",
                           "-o", "a.csv", "--figure", "a.svg", "--json")
    assert code == 0, err
    data = json.loads(out)
    assert data["names"] == ["total", "protein", "water", "rest"]
    assert len(data["places"]) == 11
    assert data["exclude"] == "residue"
    assert -200 < np.mean(data["along"][0]) < -50  # of carbonyls in a protein, MV/cm
    np.testing.assert_allclose(data["along"][0], np.sum(data["along"][1:], axis=0), atol=1e-6)
    with open("a.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2 * 11 * 4
    first = [float(row["along (MV/cm)"]) for row in rows if row["from"] == "water" and "GLY10/" in row["place"]]
    assert np.mean(first) == pytest.approx(data["along"][2][0], rel=1e-5)
    assert "Field along bonds" in Path("a.svg").read_text()
