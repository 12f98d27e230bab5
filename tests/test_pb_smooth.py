"""A smooth permittivity by Gaussian densities: one ion against a radial solution, two residues, and refusals."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import charges_at
from scipy.integrate import quad, solve_ivp
from test_pb import INSIDE, PLACE, WATER, C, solved
from test_pb_energies import peptide

from vmdpotential import potential_at, potential_map
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.maps import MapOptions, plan_map
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


def test_points_of_an_ion():
    potential, _ = radial(2.0)
    ion = replace(charges_at([PLACE], [1.0]), radii=[2.0])
    d = np.random.default_rng(3).normal(size=(200, 3))
    for low, high, limit in ((0.2, 1.9, 2e-3), (2.1, 8.0, 5e-3)):
        r = np.random.default_rng(4).uniform(low, high, 200)
        points = PLACE + d / np.linalg.norm(d, axis=1)[:, None] * r[:, None]
        result = potential_at(ion, points, method="pb", parameters={"gaussian": WIDTH, "salt": SALT})
        assert rms(result - potential(r)) < limit * rms(potential(r))


def test_one_permittivity_gives_the_coulomb_sum():
    two = peptide()
    lattice = Lattice.around(two.positions, 0.6, 4.0)
    result = plan_map(two, MapOptions(method="pb", parameters={"gaussian": WIDTH, "salt": 0, "inside": WATER},
                                     boundary="open"), lattice=lattice)[1]
    exact = potential_map(two, method="direct", dielectric=WATER, lattice=lattice)
    assert rms(result.values() - exact.values) < 5e-3 * rms(exact.values)
    assert abs(result.energies.sum()) < 0.01


@pytest.mark.slow
def test_two_residues_against_finer_lattices():
    two = peptide()
    lattice = Lattice.around(two.positions, 0.6, 5.0)
    away = (np.linalg.norm(lattice.points()[:, None] - two.positions, axis=2) - two.radii).min(1).reshape(lattice.shape)
    results = []
    for count in (1, 2, 4):
        finer = Lattice(lattice.origin, lattice.spacing / count, tuple(count * (n - 1) + 1 for n in lattice.shape))
        result = plan_map(two, MapOptions(method="pb", parameters={"gaussian": WIDTH}, boundary="open", tolerance=1e-3),
                         lattice=finer)[1]
        results.append((result.values()[::count, ::count, ::count], result))
    exact, best = results[-1]
    first, second = (rms((values - exact)[away > 0]) / rms(exact[away > 0]) for values, _ in results[:2])
    assert first < results[0][1].errors.everywhere
    assert second < results[1][1].errors.everywhere
    assert second < 0.4 * first
    for _, result in results[:2]:
        assert abs(result.energies.sum() - best.energies.sum()) < 1.5 * result.energy_error
        assert result.energies.sum() == pytest.approx(best.energies.sum(), rel=0.01)


def test_refusals():
    ion = replace(charges_at([PLACE, PLACE + 1], [1.0, 0.5]), radii=[2.0, 0.0])
    with pytest.raises(InputError):
        solved(ion, 1.0, gaussian=WIDTH)
    with pytest.raises(UsageError):
        solved(replace(ion, radii=[2.0, 2.0]), 1.0, gaussian=WIDTH, membrane=10.0)
