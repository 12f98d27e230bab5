"""Hydrogen bonds of AutoDock's maps against AutoGrid, and their directions."""

import numpy as np
import pytest

from vmdpotential.engines import get_engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.plugins.probes import autodock
from vmdpotential.plugins.probes.bonds import DONOR, ONE_PAIR, TWO_PAIRS, directions

#: A carbonyl group next to an amide's N-H, a hydroxyl group, a nitrogen of a ring, a thioether and another N-H.
ATOMS = [
    ("OA", (0, 0, 0), -.57), ("C", (-1.23, 0, 0), .6), ("C", (-2.0, 1.31, .1), .03), ("N", (-1.93, -1.14, .05), -.42),
    ("HD", (-2.92, -1.02, .2), .27), ("OA", (3.1, 3.0, 1.2), -.65), ("C", (2.2, 4.05, 1.5), .2),
    ("HD", (3.9, 3.35, .85), .43), ("NA", (-3.4, 4.4, -2.3), -.56), ("A", (-3.1, 5.6, -2.8), .2),
    ("A", (-4.5, 4.1, -3.0), .1), ("SA", (4.1, -3.2, -2.2), -.27), ("C", (5.0, -4.7, -2.5), .1),
    ("C", (2.6, -3.7, -3.1), .07), ("N", (-4.0, -4.2, 3.2), -.3), ("HD", (-3.2, -4.3, 3.85), .3),
]
KINDS = [kind for kind, _, _ in ATOMS]
PLACES = np.array([place for _, place, _ in ATOMS])
CHARGES = np.array([charge for _, _, charge in ATOMS])

#: Nodes of 15 x 15 x 15 that are 1 A apart around (0, 0, 0), and what autogrid4 4.2.6 has there with smoothing 0.5.
NODES = [
    (11, 4, 3), (11, 1, 4), (10, 8, 9), (4, 11, 6), (11, 10, 10), (10, 10, 11), (10, 12, 7), (10, 12, 10), (3, 1,
    10), (5, 7, 10), (12, 5, 8), (4, 9, 3), (4, 4, 12), (4, 4, 7), (12, 9, 7), (3, 2, 13), (6, 3, 12),
]
AUTOGRID = {
    "HD": [0.716, 1.268, -0.575, 1.104, -0.552, -0.096, 0.278, 0.279, 0.193, -0.022, -0.022, -0.013, -0.01,
           -0.006, -0.062, -0.011, -0.006],
    "OA": [48.642, 40.346, 0.593, 132.747, 1.93, 0.011, 10.262, 10.051, 9.073, -0.123, -0.087, -0.035, 0.172,
           1.161, 0.015, -0.062, -0.28],
    "NA": [72.267, 59.728, 1.133, 202.464, 3.258, 0.108, 15.468, 15.085, 14.119, -0.065, -0.074, 0.086, 0.418,
           1.988, 0.126, -0.039, -0.269],
    "SA": [178.766, 147.158, 3.54, 522.524, 9.319, 0.484, 38.876, 37.715, 37.224, 0.079, -0.092, 0.513, 2.061,
           5.653, 0.654, 0.068, -0.131],
}


def well(r, acceptor, table):
    near = r + (np.arange(-25, 26) / 100 if table else np.clip(acceptor.bond - r, -0.25, 0.25))
    two = (acceptor.bond / near) ** 2
    return np.min(autodock.BOND_WEIGHT * acceptor.strength * (5 * two**6 - 6 * two**5))


def unit(vector):
    return vector / np.linalg.norm(vector)


#: Of each atom that bonds: its direction, the normal of its lone pairs, and the power of a cosine; by hand.
ANGLES = {
    0: (unit(PLACES[0] - PLACES[1]), unit(np.cross([1, 0, 0], PLACES[2] - PLACES[1])), 0),
    4: (unit(PLACES[4] - PLACES[3]), None, 2), 15: (unit(PLACES[15] - PLACES[14]), None, 2),
    7: (unit(PLACES[7] - PLACES[5]), None, 4), 8: (unit(PLACES[8] - (PLACES[9] + PLACES[10]) / 2), None, 0),
}
for at, first, second in ((5, 6, 7), (11, 12, 13)):
    line = PLACES[first] - PLACES[second]
    ANGLES[at] = unit(np.cross(np.cross(line, PLACES[at] - PLACES[first]), line)), unit(line), 0


def angle_factor(n, way):
    along, normal, power = ANGLES[n]
    cosine = way @ along
    if normal is None:
        return max(0.0, cosine) ** (power or 2)
    lift = np.sqrt(1 - (way @ normal) ** 2)
    if cosine >= 0:
        turn = np.arccos(min(1.0, cosine / lift))
        return (0.9 + 0.1 * np.sin(2 * turn)) * lift
    return 562.25 * (0.116978 - cosine**2) ** 3 * lift if cosine >= -0.34202 else 0.0


def by_definition(probe, point, table):
    """Return the energy at a point, by distances as they are or, as in AutoGrid's tables, cut to 0.01 A."""
    own, total, bonds = autodock.KINDS[probe], 0.0, []
    hydrogens = [n for n, kind in enumerate(KINDS) if kind == "HD"]
    closest = min(hydrogens, key=lambda n: np.linalg.norm(PLACES[n] - point))
    for n, (kind, place, charge) in enumerate(ATOMS):
        vector, atom = point - np.array(place), autodock.KINDS[kind]
        exact = np.linalg.norm(vector)
        r = np.floor(exact * 100) / 100 if table else exact
        if r > 8:
            continue
        gaussian = autodock.SOLVATION_WEIGHT * np.exp(-r * r / (2 * 3.6**2))
        total += gaussian * (own.solvation * atom.volume + own.volume * (atom.solvation + 0.01097 * abs(charge)))
        if {own.role, atom.role} != {"donor", "acceptor"}:
            rmin, depth = (own.rmin + atom.rmin) / 2, autodock.DISPERSION_WEIGHT * np.sqrt(own.depth * atom.depth)
            six = (rmin / (r + (np.arange(-25, 26) / 100 if table else np.clip(rmin - r, -0.25, 0.25)))) ** 6
            total += np.min(depth * (six * six - 2 * six))
            continue
        energy = well(r, atom if atom.role == "acceptor" else own, table)
        part = angle_factor(n, vector / exact)
        energy *= part + (1 - part) * np.clip(energy / 100, 0, 1)
        if own.pairs == 2 and vector @ ANGLES[n][0] > 0 and n != closest:
            turn = np.arccos(np.clip(ANGLES[n][0] @ ANGLES[closest][0], -1, 1))
            energy *= 0.5 - 0.5 * np.cos(turn * 4 / 3)
        bonds.append(energy)
    if own.pairs == 2:
        return total + sum(bonds)
    return total + (min(bonds) + max(bonds) if bonds else 0.0)


@pytest.mark.parametrize("probe", AUTOGRID)
def test_maps_of_autogrid(probe, engine):
    lattice = Lattice(np.full(3, -7.0), np.ones(3), (15, 15, 15))
    atoms = autodock.Receptor(PLACES, np.array(KINDS), CHARGES)
    result = autodock.autodock_maps(atoms, lattice, [probe], engine)[probe].values
    for node, theirs in zip(NODES, AUTOGRID[probe], strict=True):
        point = lattice.points([node])[0]
        # its tables are the only difference between it and the definition, and maps have the definition
        assert by_definition(probe, point, table=True) == pytest.approx(theirs, abs=2e-3, rel=1e-4)
        assert result[node] == pytest.approx(by_definition(probe, point, table=False), abs=1e-4, rel=1e-5)


def test_directions_of_groups():
    kinds = {"HD": DONOR, "NA": ONE_PAIR, "OA": TWO_PAIRS, "SA": TWO_PAIRS}
    actual = directions(PLACES, KINDS, np.array([kinds.get(kind, -1) for kind in KINDS]))
    assert actual.rows.tolist() == sorted(ANGLES)
    for n, along, normal, power in zip(actual.rows, actual.directions, actual.normals, actual.powers, strict=True):
        expected = ANGLES[n]
        assert along == pytest.approx(expected[0], abs=1e-12)
        if expected[1] is not None:
            assert abs(normal @ expected[1]) == pytest.approx(1)
        elif expected[2]:
            assert power == expected[2]


def test_an_atom_without_neighbours_bonds_in_no_direction():
    result = directions(np.array([[0.0, 0, 0], [9, 0, 0]]), ["HD", "OA"], np.array([DONOR, TWO_PAIRS]))
    assert not result.directions.any()
    lattice = Lattice(np.array([7.1, 0, 0]), np.ones(3), (1, 1, 1))
    atoms = autodock.Receptor(np.array([[9.0, 0, 0]]), np.array(["OA"]), np.zeros(1))
    grids = autodock.autodock_maps(atoms, lattice, ["HD", "OA"], get_engine("cpu"))
    assert all(np.isfinite(grid.values).all() for grid in grids.values())
