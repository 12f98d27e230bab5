"""Water in pores through a membrane: which region is one, and energies of ions against closed forms."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from helpers import charges_at, shell
from MDAnalysisTests.datafiles import PDB_HOLE
from slabs import around_ion

import vmdpotential as vp
from vmdpotential import potential_map
from vmdpotential.engines import get_engine
from vmdpotential.errors import MemoryPlanError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io import write_structure
from vmdpotential.plugins.continuum.molecule import Continuum, Membrane
from vmdpotential.plugins.continuum.pores import WIDEST, describe_pores, find_pores
from vmdpotential.plugins.pores.check import (
    ATOM,
    check_pores,
    check_voltage,
    images_in_slab,
    in_membrane,
    potential_in_pore,
    tube,
)
from vmdpotential.plugins.pores.energies import Ion, ion_energies
from vmdpotential.units import coulomb_constant

CPU = get_engine("cpu")
KT = coulomb_constant("kT/e")


def energies(continuum, points, ion, spacing=1.0):
    return list(ion_energies(continuum, np.array(points, float), ion, spacing, CPU))


@pytest.mark.parametrize("thickness", [30.0, 30.2, 30.35, 31.1])
def test_a_pore_is_open_at_its_ends_wherever_nodes_are(thickness):
    wall, half = tube(3.5, 38.0), thickness / 2
    found = find_pores(wall, np.full(len(wall), ATOM), 1.4, -half, half)
    heights = np.linspace(-half + 1e-6, half - 1e-6, 201)
    assert found.at(np.stack([0 * heights, 0 * heights, heights], 1)).all()
    lattice = Lattice((-1, -1, -20), 0.5, (5, 5, 81))
    z = lattice.points()[:, 2]
    assert (found.at_nodes(lattice).ravel() == (abs(z) < half + 0.5))[abs(abs(z) - half - 0.5) > 1e-6].all()


def test_a_wide_pore_is_reported_as_at_least_what_is_measured():
    wall = tube(15.0, 34.0)
    found = find_pores(wall, np.full(len(wall), ATOM), 1.4, -15.0, 15.0)
    assert found.radius == WIDEST
    assert f"at least {WIDEST:g} A" in describe_pores(found)


def test_a_path_through_several_pores_is_to_be_given(tmp_path):
    wall = tube(3.0, 34.0)
    positions = np.concatenate([wall - np.array([9, 0, 0]), wall + np.array([9, 0, 0])])
    structure = replace(charges_at(positions, np.zeros(len(positions))), radii=np.full(len(positions), ATOM))
    with pytest.raises(UsageError) as caught:
        vp.born(structure, atoms="all", parameters={"membrane": 30}, positions=2, spacing=2.0)
    assert caught.value.parameter == "points"


@pytest.mark.parametrize("radius", [2.0, 3.0, 5.0, 8.0])
def test_volume_and_radius_of_a_tube(radius):
    wall = tube(radius, 34.0)
    found = find_pores(wall + 0.1, np.full(len(wall), ATOM), 1.4, -15.0, 15.0)
    assert found.count == 1
    assert found.radius == pytest.approx(radius, abs=0.3)
    assert found.volume == pytest.approx(np.pi * radius**2 * 30, rel=0.2)
    points = np.array([[0.0, 0.0, 0.0], [radius + 6, 0.0, 0.0], [0.0, 0.0, 15.5], [0.0, 0.0, 17.0]])
    assert found.at(points).tolist() == [True, False, False, False]
    assert found.at(points, 1.0).tolist() == [True, False, True, False]


def cut(wall, condition):
    return wall[~condition(*wall.T)]


@pytest.mark.parametrize("change", ["narrow", "plug", "slit", "short"])
def test_what_is_no_pore(change):
    """Too narrow for a water; closed in the middle; open to the lipid along its side; ending in the membrane."""
    wall = tube(1.2 if change == "narrow" else 4.0, 20.0 if change == "short" else 34.0)
    if change == "plug":
        plane = np.arange(-4.0, 4.1, 1.5)
        wall = np.concatenate([wall, np.stack(np.meshgrid(plane, plane, [0.0]), -1).reshape(-1, 3)])
    if change == "slit":
        wall = cut(wall, lambda x, y, z: (x > 0) & (abs(y) < 5.0))
    assert find_pores(wall, np.full(len(wall), ATOM), 1.4, -15.0, 15.0) is None


def test_a_gap_that_no_chain_gets_through_leaves_a_pore():
    wall = cut(tube(4.0, 34.0), lambda x, y, z: (x > 0) & (abs(y) < 2.5))
    assert find_pores(wall, np.full(len(wall), ATOM), 1.4, -15.0, 15.0) is not None


def test_two_pores():
    wall, side = tube(3.0, 34.0), np.array([9.0, 0, 0])
    two = np.concatenate([wall - side, wall + side])
    assert find_pores(two, np.full(len(two), ATOM), 1.4, -15.0, 15.0).count == 2


@pytest.mark.parametrize("salt", [0.0, 0.15])
def test_ion_in_a_slab_has_the_energy_of_its_images(salt):
    """A. Parsegian, Nature 221 (1969) 844; with salt by Hankel's transform."""
    assert images_in_slab(30.0, 2.0, 78.5) == pytest.approx(around_ion(0.0, 0.0, 30.0, 0.0), rel=1e-4)
    kappa = 1 / 7.86 if salt else 0.0
    made = Continuum(np.array([[30.0, 0, 0]]), np.zeros(1), np.zeros(1), KT, 2.0, 78.5, 1.4, 2.0, kappa,
                     np.zeros((0, 2)), Membrane(-15.0, 15.0, 2.0))
    (found,) = energies(made, [[0, 0, 0]], Ion(1.0, 2.0), 0.5)
    bulk = (1 / 78.5 - 1 / 2) / 2.0 - kappa / (1 + kappa * 4.0) / 78.5
    exact = 0.5 * KT * (around_ion(0.0, 0.0, 30.0, salt) - bulk)
    assert found.total == pytest.approx(exact, abs=found.error)
    assert found.error < 0.01 * exact
    assert found.interaction == 0


def test_ion_on_the_axis_of_a_pore():
    wall = tube(6.0, 66.0, 1.3)
    radii = np.full(len(wall), ATOM)
    exact = 0.5 * KT * (potential_in_pore(6.0, 2.0, 10.0) + images_in_slab(60.0, 2.0, 10.0))
    (wet,) = energies(in_membrane(wall, radii, 60.0), [[0.2, -0.3, 0.4]], Ion(1.0, 1.5))
    assert wet.total == pytest.approx(exact, rel=0.03)
    (filled,) = energies(in_membrane(wall, radii, 60.0, pores=False), [[0.2, -0.3, 0.4]], Ion(1.0, 1.5))
    assert filled.total > 3 * wet.total


def test_uniform_permittivity_has_no_effect_but_that_of_charges():
    """The same permittivity everywhere: Coulomb's law, whatever the pore and the membrane are."""
    wall = tube(4.0, 34.0, 1.5)
    charges = np.zeros(len(wall))
    charges[::97] = np.resize([0.5, -0.8, 0.4], len(charges[::97]))
    base = in_membrane(wall, np.full(len(wall), ATOM), 30.0)
    uniform = replace(base, inside=10.0, outside=10.0, charges=charges,
                      membrane=replace(base.membrane, permittivity=10.0))
    points = np.array([[0.0, 0, 0], [0.5, 0.2, 9.0]])
    exact = [KT / 10 * (charges / np.linalg.norm(wall - point, axis=1)).sum() for point in points]
    for found, value in zip(energies(uniform, points, Ion(1.0, 1.5)), exact, strict=True):
        assert found.total == pytest.approx(value, abs=found.error + 0.02 * abs(value))


def test_interaction_is_the_energy_of_all_charges_at_once():
    """One solution on a lattice around everything, less that of the molecule, and of the ion in water."""
    wall = tube(4.0, 22.0, 1.5)
    charges = np.zeros(len(wall))
    charges[::41] = np.resize([0.5, -0.3, 0.2, -0.6], len(charges[::41]))
    base = charges_at(wall, charges)
    molecule = replace(base, radii=np.full(len(wall), ATOM))
    ion = replace(charges_at([[0.3, 0.4, 2.0]], [1.0]), radii=np.array([1.5]))
    both = replace(charges_at(np.concatenate([wall, ion.positions]), np.append(charges, 1.0)),
                   radii=np.append(molecule.radii, 1.5))
    values = {"membrane": 20.0, "salt": 0.0, "pores": 1.4}
    lattice = Lattice.around(wall, 0.5, 4.0)
    totals = [potential_map(each, method="pb", lattice=lattice, parameters={**values, "membrane": membrane}
                            ).solvation.total for each, membrane in ((molecule, 20.0), (ion, 0.0))]
    made = Continuum(wall, charges, molecule.radii, KT, 2.0, 78.5, 1.4, 2.0, 0.0, np.zeros((0, 2)),
                     Membrane(-10.0, 10.0, 2.0, find_pores(wall, molecule.radii, 1.4, -10, 10)))
    (found,) = energies(made, ion.positions, Ion(1.0, 1.5), 0.5)
    # the ion does not close this pore, so that the map of both has the same one
    whole = potential_map(both, method="pb", lattice=lattice, parameters=values).solvation.total
    kcal = coulomb_constant("kcal/mol/e") / KT
    coulomb = KT / 2 * (charges / np.linalg.norm(wall - ion.positions[0], axis=1)).sum()
    assert found.total == pytest.approx((whole - sum(totals)) / kcal + coulomb, abs=2 * found.error + 0.3)
    assert abs(found.interaction) > 1


def test_map_in_a_pore_is_that_of_water_and_continuous():
    """Outside and at the ends of a wide pore of water in water, the potential is Coulomb's."""
    wall = tube(7.0, 24.0, 1.5)
    structure = replace(charges_at(np.append(wall, [[0.0, 0, -16]], 0), [0.0] * len(wall) + [1.0]),
                        radii=np.full(len(wall) + 1, ATOM))
    lattice = Lattice((-1.0, -1.0, -11.0), 1.0, (3, 3, 23))
    values = {"membrane": 20.0, "salt": 0.0, "inside": 78.5, "membrane_inside": 78.5}
    made = potential_map(structure, method="pb", lattice=lattice, parameters=values, unit="kT/e")
    exact = KT / 78.5 / np.linalg.norm(lattice.points() - [0, 0, -16], axis=1)
    assert np.sqrt(np.mean((made.values.ravel() / exact - 1) ** 2)) < 0.015
    low = potential_map(structure, method="pb", lattice=lattice, unit="kT/e", parameters={**values, "inside": 2.0,
                                                                                  "membrane_inside": 2.0})
    closed = potential_map(structure, method="pb", lattice=lattice, unit="kT/e", parameters={
        **values, "inside": 2.0, "membrane_inside": 2.0, "pores": 0.0})
    middle = (1, 1, 11)
    assert made.values[middle] < low.values[middle]  # the field is confined to the pore
    assert abs(low.values[middle] - closed.values[middle]) > 0.2 * abs(low.values[middle])


def test_pore_that_a_ligand_closes_is_there_with_and_without_it():
    """What a ball without a charge costs the charges around it, as for an ion, whose pores are those without it."""
    wall, place, radius = tube(3.0, 22.0, 1.6), np.array([[0.1, 0.2, 0.3]]), 2.6
    charges, radii = np.zeros(len(wall)), np.full(len(wall), ATOM)
    charges[::17] = np.resize([0.5, -0.5], len(charges[::17]))
    made = replace(charges_at(np.concatenate([wall, place]), np.append(charges, 1e-6)), radii=np.append(radii, radius))
    assert find_pores(made.positions, made.radii, 1.4, -10, 10) is None
    first = np.arange(len(made)) < len(wall)
    found = vp.binding_energy(made, first, ~first, spacing=1.0, parameters={"membrane": 20.0, "salt": 0.0})
    alone = Continuum(wall, charges, radii, KT, 2.0, 78.5, 1.4, 2.0, 0.0, np.zeros((0, 2)),
                      Membrane(-10.0, 10.0, 2.0, find_pores(wall, radii, 1.4, -10, 10)))
    (expected,) = energies(alone, place, Ion(1e-6, radius))
    assert found.desolvation[0] == pytest.approx(expected.interaction * coulomb_constant("kcal/mol/e") / KT, rel=0.25)


@pytest.fixture(scope="module")
def channel(tmp_path_factory):
    """A tube with marks of a membrane around it, and rings of dipoles, as a PQR file."""
    wall = tube(3.5, 34.0, 1.5)
    charges = np.zeros(len(wall))
    charges[abs(wall[:, 2]) < 1.0] = -0.05
    marks = [[x, y, z] for z in (-15.0, 15.0) for x in (-25, 25) for y in (-25, 25)]
    count = len(wall)
    names = np.array(["TUB"] * count + ["DUM"] * len(marks))
    made = replace(charges_at(np.concatenate([wall, marks]), np.append(charges, np.zeros(len(marks)))),
                   residue_names=names, elements=np.full(len(names), "C"), radii=np.full(len(names), ATOM),
                   residue_index=np.where(names == "DUM", 1, 0), residue_ids=np.where(names == "DUM", 2, 1))
    path = tmp_path_factory.mktemp("channel") / "channel.pqr"
    write_structure(made, path)
    return path


def test_command(capsys, tmp_path, channel):
    code, out, err = shell(capsys, "born", channel, "--ion", "K+", "--set", "membrane=auto", "--positions", 5,
                           "--spacing", 1, "-o", tmp_path / "k.csv", "--figure", tmp_path / "k.png", "--json")
    assert code == 0, err
    data = json.loads(out)
    assert (data["charge"], data["radius"], data["membrane"]) == (1.0, 2.172, [-15.0, 15.0])
    assert data["pore"]["radius"] == pytest.approx(3.5, abs=0.3)
    assert [row["z"] for row in data["rows"]] == pytest.approx([-25, -12.5, 0, 12.5, 25])
    assert max(abs(row["x"]) + abs(row["y"]) for row in data["rows"]) < 0.3
    ends, middle = data["rows"][::4], data["rows"][2]
    assert middle["interaction"] < ends[0]["interaction"] < 0 < ends[0]["desolvation"] < middle["desolvation"]
    # the tube is the same upwards and downwards, and the lattice is elsewhere
    assert ends[0]["energy"] == pytest.approx(ends[1]["energy"], abs=ends[0]["error"] + ends[1]["error"])
    with (tmp_path / "k.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[2]["energy"]) == pytest.approx(middle["energy"], rel=1e-6)
    assert (tmp_path / "k.png").stat().st_size > 1000


def test_an_atom_far_away_is_refused_before_memory_is_taken(monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "200M")
    far = replace(charges_at([[0, 0, 0], [9e6, 9e6, 9e6]], [1.0, 0.0]), radii=np.full(2, 2.0))
    with pytest.raises(MemoryPlanError):
        vp.born(far, atoms="all", ion="Cl-", points=np.array([[0, 0, 3.0]]), spacing=1.0)


def test_points_and_python(tmp_path, channel):
    (tmp_path / "points.csv").write_text("0,0,3\n")
    made = vp.born(channel, ion="Cl-", points=tmp_path / "points.csv", spacing=1.0, parameters={"membrane": "auto"})
    given = vp.born(channel, ion="Cl-", points=np.array([[0, 0, 3.0]]), spacing=1.0,
                    parameters={"membrane": "auto"})
    assert np.array_equal(made.energies, given.energies)
    assert (made.energies[:, 3] > 0).all()


@pytest.mark.parametrize("words", [
    ("--ion", "Na"), ("--ion", "Xx+"), ("--ion", "I3-"), ("--set", "nonlinear=1"), ("--set", "gaussian=0.9"),
    ("--positions", "1"), ("--points", "missing.csv"), ("--along", "w"), ("--radius", "0"), ("--radius", "nan"),
    ("--set", "membrane=30,pores=-1"), ("--set", "membrane=auto,membrane_centre=2")])
def test_refused(capsys, channel, words):
    code, out, err = shell(capsys, "born", channel, *words)
    assert code == 2, out + err
    assert len(err.strip().splitlines()) <= 3


@pytest.mark.parametrize("check", [check_pores, check_voltage])
def test_check_passes(check):
    for name, error, limit in check(CPU, 4):
        assert error < limit, name


@pytest.mark.slow
def test_gramicidin_has_a_pore_for_what_is_smaller_than_a_water(tmp_path):
    """The structure of the entry 1GRM, whose channel is along y, with hydrogens."""
    structure = vp.prepare(PDB_HOLE).structure
    middle = structure.positions[structure.elements != "H"].mean(0)
    x, y, z = (structure.positions - middle).T
    positions = np.stack([x, -z, y], 1)
    assert find_pores(positions, structure.radii, 1.4, -11.0, 11.0) is None
    found = find_pores(positions, structure.radii, 1.1, -11.0, 11.0)
    assert found.count == 1
    # the widest path is at least as wide as the best straight one, and no wider than the room in its narrowest plane
    heights = np.arange(-11, 11.1, 0.25)
    sides = np.stack(np.meshgrid(*[np.arange(-2, 2.01, 0.1)] * 2, indexing="ij"), -1).reshape(-1, 2)
    points = np.concatenate([np.tile(sides, (len(heights), 1)), np.repeat(heights, len(sides))[:, None]], 1)
    room = np.array([(np.linalg.norm(positions - point, axis=1) - structure.radii).min() for point in points])
    room = room.reshape(len(heights), len(sides))
    assert room.min(0).max() - 0.2 < found.radius < room.max(1).min() + 0.2
    channel = Continuum(positions, np.zeros(len(positions)), structure.radii, KT, 2.0, 78.5, 1.1, 2.0, 0.0,
                        np.zeros((0, 2)), Membrane(-11.0, 11.0, 2.0, found))
    filled = replace(channel, membrane=Membrane(-11.0, 11.0, 2.0, None))
    in_water, in_lipid = (energies(each, [[0, 0, 0]], Ion(1.0, 1.0))[0].desolvation for each in (channel, filled))
    assert 0 < in_water < 0.8 * in_lipid
