"""AutoGrid's maps: values by definition and of autogrid4, and the wells of hydrogen bonds."""


import numpy as np
import pytest

from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import sigmoidal_dielectric
from vmdpotential.plugins.probes import autodock, coulomb
from vmdpotential.plugins.probes import interactions as pages
from vmdpotential.units import coulomb_constant

#: Ten atoms, by their types, places and charges, and what autogrid4 4.2.6 has at some of the nodes of 11 x 11 x 11 that
#: are 1 A apart around (0.5, 0.5, 0.5), with smoothing 0.5 and the dielectric -0.1465.
ATOMS = ["C", "A", "N", "OA", "SA", "C", "OA", "N", "HD", "Zn"]
PLACES = np.array([[0, 0, 0], [3.1, .4, -.3], [-2.2, 2.1, 1.3], [1.1, -3.2, 2.0], [-3.3, -1.4, -2.1], [2.5, 3.4, 2.2],
                   [4.6, -2.5, -3.1], [0.3, 4.1, -3.3], [1.2, 4.3, -3.6], [-4.4, 3.2, -3.0]])
CHARGES = np.array([.1, -.05, -.35, -.4, -.1, .2, -.5, -.3, .35, .9])
NODES = [(0, 0, 0), (10, 10, 10), (2, 8, 5), (9, 4, 7), (5, 5, 10), (0, 7, 3), (7, 1, 1), (3, 3, 9), (10, 5, 5),
         (6, 9, 6)]
AUTOGRID = {
    "C": [-0.033, -0.017, 92.65, -0.051, -0.048, 2.963, 0.941, -0.065, 1.472, 196.786],
    "N": [-0.034, -0.014, 41.06, -0.074, -0.039, 0.714, 0.304, -0.054, 0.581, 92.651],
    "Cl": [-0.043, -0.023, 145.36, -0.055, -0.066, 5.023, 1.532, -0.088, 2.338, 305.745],
    "H": [-0.003, 0.0, 0.668, -0.01, 0.0, -0.024, -0.009, -0.002, -0.005, 2.038],
    "e": [-0.04, 0.032, -0.926, -0.243, -0.138, 3.291, -1.047, -0.302, -0.25, 0.693],
    "d": [0.03, 0.019, 0.111, 0.095, 0.065, 0.082, 0.073, 0.069, 0.099, 0.114],
}


def by_definition(probe, point, table):
    """Return the energy of a probe at a point, by distances as they are or, as in AutoGrid's tables, cut to 0.01 A."""
    total = 0.0
    for kind, place, charge in zip(ATOMS, PLACES, CHARGES, strict=True):
        r, atom = np.linalg.norm(place - point), autodock.KINDS[kind]
        r = np.floor(r * 100) / 100 if table else r
        if probe == "e":
            permittivity = 1 / (sigmoidal_dielectric.INTERACTION.bind()(r) * r)
            distance = max(np.linalg.norm(place - point), 0.5)
            total += autodock.COULOMB_WEIGHT * coulomb_constant("kcal/mol/e") * charge / (distance * permittivity)
            continue
        if r > 8:
            continue
        gaussian = autodock.SOLVATION_WEIGHT * np.exp(-r * r / (2 * 3.6**2))
        if probe == "d":
            total += 0.01097 * atom.volume * gaussian
            continue
        own = autodock.KINDS[probe]
        rmin, depth = (own.rmin + atom.rmin) / 2, autodock.DISPERSION_WEIGHT * np.sqrt(own.depth * atom.depth)
        near = r + (np.arange(-25, 26) / 100 if table else np.clip(rmin - r, -0.25, 0.25))
        six = (rmin / near) ** 6
        total += min(np.min(depth * (six * six - 2 * six)), 1e5)
        total += gaussian * (own.solvation * atom.volume + own.volume * (atom.solvation + 0.01097 * abs(charge)))
    return total


@pytest.mark.parametrize("probe", AUTOGRID)
def test_maps_of_autogrid(probe, engine):
    lattice = Lattice(np.full(3, -4.5), np.ones(3), (11, 11, 11))
    atoms = autodock.Receptor(PLACES, np.array(ATOMS), CHARGES)
    result = autodock.autodock_maps(atoms, lattice, [probe], engine)[probe].values
    for node, theirs in zip(NODES, AUTOGRID[probe], strict=True):
        point = lattice.points([node])[0]
        # its tables are the only difference between it and the definition, and maps have the definition
        assert by_definition(probe, point, table=True) == pytest.approx(theirs, abs=2e-3, rel=1e-4)
        assert result[node] == pytest.approx(by_definition(probe, point, table=False), abs=1e-4, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("spacing", [(0.375, 0.375, 0.375), (0.375, 0.9, 0.2)])
def test_coulomb_energies_by_parts_are_those_of_all_pairs(spacing, engine):
    rng = np.random.default_rng(5)
    places, charges = rng.uniform(-12, 12, (1200, 3)), rng.normal(0, 0.4, 1200) * 47
    lattice = Lattice(np.array([-6.0, -5.0, -4.0]), np.array(spacing), (33, 31, 30))
    assert lattice.size * len(charges) > coulomb.MANY
    result = coulomb.coulomb(engine, lattice, places, charges).ravel()
    bound = pages.SCREENED.bind()
    for node in rng.integers(0, lattice.size, 200):
        r = np.linalg.norm(lattice.points()[node] - places, axis=1)
        assert result[node] == pytest.approx((bound(np.maximum(r, 1e-6)) * charges).sum(), abs=2.5e-4, rel=1e-5)


def test_hydrogen_bonds_have_their_wells(engine):
    atoms = autodock.Receptor(np.zeros((1, 3)), np.array(["OA"]), np.zeros(1))
    lattice = Lattice(np.array([1.5, 0.0, 0.0]), np.array([0.1, 1, 1]), (30, 1, 1))
    result = autodock.autodock_maps(atoms, lattice, ["HD"], engine)["HD"].values.ravel()
    at = int(result.argmin())
    assert 1.6 < 1.5 + 0.1 * at < 2.2
    solvation = 0.00051 * 17.1573 * autodock.SOLVATION_WEIGHT
    # the least and the largest energy of one atom are the same, 0.9 of the well along the direction of its lone pairs
    assert result[at] == pytest.approx(-2 * 0.9 * 5 * autodock.BOND_WEIGHT, abs=solvation + 1e-4)
