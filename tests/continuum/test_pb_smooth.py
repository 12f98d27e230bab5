"""A smooth permittivity by Gaussian densities: one ion against a radial solution, two residues, and refusals."""

import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import charges_at
from scipy.integrate import quad, solve_ivp
from test_pb import INSIDE, PLACE, WATER, C, solved

from vmdpotential import potential_at
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.plugins.continuum.interpolation import SolutionInterpolant
from vmdpotential.plugins.continuum.molecule import Continuum
from vmdpotential.plugins.continuum.pb import ATOM_BYTES
from vmdpotential.plugins.continuum.smooth import ChargeKinks
from vmdpotential.units import debye_length

WIDTH, SALT, ION = 0.93, 0.15, 2.0


def permittivity(r, radius):
    return WATER + (INSIDE - WATER) * np.exp(-((r / (WIDTH * radius)) ** 2))


def radial(radius):
    """Return the potential around a unit charge by its distance, and the reaction potential at it, kT/e.

    phi' = -D / (r^2 eps), D' = -eps kappa^2 r^2 phi where ions are.
    """
    kappa, reach, start = 1 / debye_length(SALT, 298.15, WATER), radius + ION, 0.05
    last = reach + 60

    def slopes(r, y, ions):
        return -y[1] / (r * r * permittivity(r, radius)), -WATER * ions * kappa**2 * r * r * y[0]

    def inwards(begin, end, y, ions):
        return solve_ivp(slopes, (begin, end), y, args=(ions,), rtol=1e-10, atol=1e-14, dense_output=True).sol

    far = inwards(last, reach, [1.0, WATER * last * last * (kappa + 1 / last)], True)
    near = inwards(reach, start, far(reach), False)
    factor = C / near(start)[1]
    within = quad(lambda s: (1 - INSIDE / permittivity(s, radius)) * C / INSIDE / s**2, 1e-9, start)[0]
    return (lambda r: factor * np.where(r > reach, far(np.maximum(r, reach))[0], near(np.minimum(r, reach))[0]),
            factor * near(start)[0] - C / INSIDE / start - within)


def rms(values):
    return np.sqrt(np.mean(np.square(values)))


@pytest.mark.parametrize("radius", [3.0, 1.5])
def test_ion_with_a_gaussian_density(radius):
    potential, reaction = radial(radius)
    ion, errors = replace(charges_at([PLACE], [1.0]), radii=[radius]), []
    for spacing in (1.0, 0.5, 0.25):
        planned, result = solved(ion, spacing, salt=SALT, gaussian=WIDTH)
        lattice = planned.request.lattice
        r = np.linalg.norm(lattice.points() - PLACE, axis=1).reshape(lattice.shape)
        exact = potential(r[r > radius])
        errors.append(rms(result.values()[r > radius] - exact) / rms(exact))
        assert result.energies.sum() == pytest.approx(0.5 * reaction, rel=5e-4)
        near = (r > 0.3) & (r < radius)
        assert rms(result.values()[near] - potential(r[near])) < 0.02 * spacing**2 * rms(potential(r[near]))
        assert errors[-1] < 1.2 * max(result.errors.everywhere, result.errors.away)
    assert errors[1] < 3e-3
    assert errors[2] < 1e-3
    assert np.log2(errors[0] / errors[2]) / 2 > 1.8
    assert "Gaussian" in planned.provenance.medium
    assert "gaussian 0.93" in planned.provenance.interaction


@pytest.mark.parametrize("place", [(0.0, 0.0, 0.0), (0.004, 0.0, 0.0), (0.25, 0.0, 0.0), (0.01, 0.02, 0.0)])
def test_ion_at_a_node(place):
    """And within its soft core, in the middle of an edge, and next to a node; also in the density of another atom."""
    for other in ((0.0, 0.0), (2.0, 1.2)):
        structures = [replace(charges_at([at, np.add(at, [0.7, other[0], 0.9])], [1.0, 0.0]), radii=[2.0, other[1]])
                      for at in (place, PLACE)]
        here, elsewhere = (solved(each, 0.5, salt=SALT, gaussian=WIDTH)[1].energies.sum() for each in structures)
        assert here == pytest.approx(0.5 * radial(2.0)[1] if other == (0.0, 0.0) else elsewhere, rel=2e-3)


def test_points_of_an_ion():
    potential, _ = radial(2.0)
    ion = replace(charges_at([PLACE], [1.0]), radii=[2.0])
    d = np.random.default_rng(3).normal(size=(200, 3))
    for low, high, limit in ((0.2, 1.9, 2e-3), (2.1, 8.0, 5e-3)):
        r = np.random.default_rng(4).uniform(low, high, 200)
        points = PLACE + d / np.linalg.norm(d, axis=1)[:, None] * r[:, None]
        result = potential_at(ion, points, method="pb", parameters={"gaussian": WIDTH, "salt": SALT})
        assert rms(result - potential(r)) < limit * rms(potential(r))


def test_refusals():
    ion = replace(charges_at([PLACE, PLACE + 1], [1.0, 0.5]), radii=[2.0, 0.0])
    with pytest.raises(InputError):
        solved(ion, 1.0, gaussian=WIDTH)
    with pytest.raises(UsageError):
        solved(replace(ion, radii=[2.0, 2.0]), 1.0, gaussian=WIDTH, membrane=10.0)


def peak_of(function):
    """Return the result of a function, and the most memory, in bytes, that it takes beside it at any time."""
    tracemalloc.start()
    try:
        result = function()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_neighbours_of_atoms_take_the_planned_memory():
    places = np.stack(np.meshgrid(*[2.2 * np.arange(n) for n in (30, 25, 20)], indexing="ij"), -1).reshape(-1, 3)
    ones = np.ones(len(places))
    molecule = Continuum(places, ones, 1.7 * ones, 1.0, INSIDE, WATER, 1.4, 2.0, 0.1, np.zeros((0, 2)), gaussian=WIDTH)
    kinks, peak = peak_of(lambda: ChargeKinks(molecule))
    assert peak < ATOM_BYTES * len(places)
    # the fraction free in the middle is the product over the other atoms within the reach, as it is by definition
    middle = int(np.argmin(((places - places.mean(0)) ** 2).sum(1)))
    away = np.linalg.norm(places - places[middle], axis=1)
    others = (away > 0) & (away < 3.4 * WIDTH * 1.7)
    assert kinks._others[middle] == pytest.approx(np.prod(1 - np.exp(-((away[others] / (WIDTH * 1.7)) ** 2))), rel=1e-9)


def test_points_of_a_surface_take_the_planned_memory():
    lattice, radius = Lattice((-4, -4, -4), 0.25, (33, 33, 33)), 2.0
    ball = Continuum(np.zeros((1, 3)), np.ones(1), np.full(1, radius), 1.0, INSIDE, WATER, 1.4, 2.0, 0.1,
                     np.zeros((0, 2)))
    distances = np.linalg.norm(lattice.points(), axis=1).reshape(lattice.shape) - radius
    smooth = SolutionInterpolant(SimpleNamespace(lattice=lattice, continuum=ball, within=distances < 0,
                                                 unknown=distances,
                                    distances=lambda: distances, host=lambda values: values))
    points = np.random.default_rng(5).uniform(-3, 3, (200_000, 3))
    inside, peak = peak_of(lambda: smooth.inside(points))
    np.testing.assert_array_equal(inside, np.linalg.norm(points, axis=1) < radius)
    assert peak < 20 * len(points)


def test_a_tiny_atom_leaves_everything_free():
    pair = charges_at([PLACE, np.add(PLACE, [0.7, 0.4, 0.9])], [1.0, 0.0])
    tiny, none = (solved(replace(pair, radii=[3.0, radius]), 1.0, gaussian=WIDTH)[1].values()
                  for radius in (1e-170, 0.0))
    np.testing.assert_allclose(tiny, none, rtol=1e-5, atol=1e-5)
