"""A charge in the middle of a ball, by the full Poisson-Boltzmann equation of one variable."""

from functools import partial

import numpy as np
from scipy.integrate import solve_bvp

from vmdpotential.units import coulomb_constant, debye_length

WATER, INSIDE = 78.5, 2.0
C = coulomb_constant("kT/e")


def around_a_charged_ball(charge, radius, closest, salt):
    """Return the potential, kT/e, at distances from a charge in a ball, by the full equation of one variable."""
    kappa, end = 1 / debye_length(salt, 298.15, WATER), np.log(closest + 25 * debye_length(salt, 298.15, WATER))
    x, slope = np.linspace(np.log(closest), end, 400), C * charge / WATER

    def growth(x, y):  # of the potential and its slope times r^2, over ln(r)
        return np.vstack([y[1] / np.exp(x), np.exp(3 * x) * kappa**2 * np.sinh(y[0])])

    def ends(share, first, last):
        return np.array([first[1] + share * slope, last[1] * np.exp(-2 * end) + (kappa + np.exp(-end)) * last[0]])

    y = np.zeros((2, len(x)))
    for share in np.linspace(0.05, 1, 20):  # of the charge
        solution = solve_bvp(growth, partial(ends, share), x, y, tol=1e-8, max_nodes=100_000)
        assert solution.success
        x, y = solution.x, solution.y

    def at(r):
        first = solution.sol(np.log(closest))[0]
        return np.where(r < closest, first + slope * (1 / r - 1 / closest), solution.sol(np.log(r.clip(closest)))[0])

    return at


def work_of_charging(charge, radius, closest, salt):
    """Return the energy, kT, of bringing the charge into the ball, without that of the charge in the medium inside."""
    steps, weights = np.polynomial.legendre.leggauss(8)
    charges = 0.5 * charge * (1 + steps)
    potentials = [around_a_charged_ball(each, radius, closest, salt)(np.array([radius]))[0] - C * each / INSIDE / radius
                  for each in charges]
    return 0.5 * charge * float(weights @ potentials)
