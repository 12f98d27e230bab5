"""The electrostatic potential of nuclei and electrons of a wave function, without a mesh or a fit.

The product of two primitives is a sum of Hermite Gaussians at a point between them (L. E. McMurchie, E. R. Davidson,
J. Comput. Phys. 26 (1978) 218), so that the electrons are Gaussians with coefficients that follow from the density
matrix, and the potential of each is known in closed form (:mod:`vmdpotential.orbitals.charge_kernel`).
Primitives of the same exponent at the same nucleus are one, whatever shells they are of; products that add less than
:data:`NEGLIGIBLE` are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory, progress
from vmdpotential.compiling import build, threads
from vmdpotential.engines import SOFT_CORE
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.orbitals.shells import in_monomials, monomials
from vmdpotential.orbitals.wavefunction import Wavefunction
from vmdpotential.units import BOHR, DEFAULT_TEMPERATURE, coulomb_constant

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: e; Gaussians whose largest coefficient is less add nothing that could be seen.
NEGLIGIBLE = 1e-8

#: Pairs of primitives whose products are made at once.
_TOGETHER = 4096


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Charges: derivatives of Gaussians exp(-p |r - P|^2).

    Parameters
    ----------
    centres, exponents : (G, 3) and (G,) float64, bohr and bohr^-2
    orders : (G,) int64
        Largest number of derivatives of each.
    coefficients : sequence of (K,) float64
        Of each, by t + u + v (:func:`hermite`).
    """

    centres: Floats
    exponents: Floats
    orders: Integers
    coefficients: list[Floats]


@cache
def hermite(order: int) -> tuple[tuple[int, int, int], ...]:
    """Return all (t, u, v) with a sum of at most `order`, by their sum."""
    return tuple((t, u, total - t - u) for total in range(order + 1) for t in range(total + 1)
                 for u in range(total - t + 1))


def potential_map(wavefunction: Wavefunction, lattice: Lattice, unit: str = "kT/e",
                  temperature: float = DEFAULT_TEMPERATURE) -> Grid:
    """Return the electrostatic potential of the nuclei and electrons at the points of a lattice.

    Parameters
    ----------
    wavefunction : Wavefunction
    lattice : Lattice
    unit : str
        Of :data:`vmdpotential.units.POTENTIAL_UNITS`.
    temperature : float, K
        For kT/e.

    Returns
    -------
    Grid
        A point nearer than 0.01 A to a nucleus has its potential at that distance.

    Raises
    ------
    UsageError
        For a unit that does not exist.
    MemoryPlanError
        When the map does not fit into memory.
    """
    factor = coulomb_constant(unit, temperature) / BOHR
    memory.require(8 * lattice.size, f"a map of {' x '.join(map(str, lattice.shape))} points", "use a larger {spacing}")
    electrons = gaussians(wavefunction)
    most = int(electrons.orders.max(initial=0))
    kernel = build.load("charge_kernel")
    starts = np.concatenate([[0], np.cumsum([len(one) for one in electrons.coefficients])[:-1]]).astype(np.int64)
    coefficients = np.concatenate([*electrons.coefficients, np.zeros(1)]) * -factor
    counts = np.array([len(hermite(order)) for order in range(most + 1)])
    values = np.empty(lattice.shape, np.float32)
    table = _boys(most, kernel.LAST, kernel.FINE, kernel.TERMS)
    task = partial(kernel.run, electrons.centres, electrons.exponents, electrons.orders, starts, coefficients,
                   _steps(most), counts, table, wavefunction.positions / BOHR, wavefunction.nuclear_charges * factor,
                   SOFT_CORE / BOHR, lattice.origin / BOHR, lattice.spacing / BOHR, values)
    threads.run(task, lattice.shape[0], "potential of electrons", 1)
    made = Provenance(method="Gaussian basis functions", interaction="coulomb", medium="vacuum, no screening",
                      boundary="open", precision="double", engine="cpu", inputs=(wavefunction.name,))
    return Grid(lattice, values, unit, temperature, 1.0, made)


def gaussians(wavefunction: Wavefunction) -> Gaussians:
    """Return the density of the electrons as derivatives of Gaussians, e, with the potential's factor 2 pi / p."""
    centres, exponents, momenta, blocks, occupations = _primitives(wavefunction)
    first, second = np.triu_indices(len(exponents))
    p = exponents[first] + exponents[second]
    reduced = exponents[first] * exponents[second] / p
    overlap = np.exp(-reduced * ((centres[first] - centres[second]) ** 2).sum(1))
    sizes = np.array([np.sqrt((block**2 @ np.abs(occupations)).max(initial=0)) for block in blocks])
    kept = overlap * sizes[first] * sizes[second] * 2 * np.pi / p > NEGLIGIBLE
    first, second, p = first[kept], second[kept], p[kept]
    found_centres: list[Floats] = []
    found_exponents: list[Floats] = []
    orders: list[int] = []
    coefficients: list[Floats] = []
    kinds = momenta[first] * 100 + momenta[second]
    for kind in np.unique(kinds):
        chosen = np.flatnonzero(kinds == kind)
        for begin in range(0, len(chosen), _TOGETHER):
            some = chosen[begin : begin + _TOGETHER]
            a, b, exponent = first[some], second[some], p[some]
            middle = (exponents[a, None] * centres[a] + exponents[b, None] * centres[b]) / exponent[:, None]
            left, right = np.stack([blocks[n] for n in a]) * occupations, np.stack([blocks[n] for n in b])
            matrix = np.matmul(left, right.transpose(0, 2, 1)) * np.where(a == b, 1.0, 2.0)[:, None, None]
            made = _products(centres[a] - middle, centres[b] - middle, exponents[a], exponents[b],
                             (int(momenta[a[0]]), int(momenta[b[0]])), matrix)
            made *= (2 * np.pi / exponent)[:, None]
            found_centres.append(middle)
            found_exponents.append(exponent)
            orders += [int(kind // 100 + kind % 100)] * len(some)
            coefficients += list(made)
            progress.report("products of orbitals", len(coefficients) / len(p))
    if not coefficients:
        return Gaussians(np.zeros((0, 3)), np.zeros(0), np.zeros(0, np.int64), [])
    return Gaussians(np.concatenate(found_centres), np.concatenate(found_exponents), np.array(orders, np.int64),
                     coefficients)


def _primitives(wavefunction: Wavefunction) -> tuple[Floats, Floats, Integers, list[Floats], Floats]:
    """Return centres, exponents and largest momenta of primitives that differ, their orbitals' coefficients (monomials,
    orbitals) of all monomials up to that momentum, and the orbitals' occupations.
    """
    if wavefunction.restricted:
        coefficients = wavefunction.alpha.coefficients
        occupations = wavefunction.alpha.occupations + wavefunction.beta.occupations
    else:
        coefficients = np.hstack([wavefunction.alpha.coefficients, wavefunction.beta.coefficients])
        occupations = np.concatenate([wavefunction.alpha.occupations, wavefunction.beta.occupations])
    taken = np.abs(occupations) > NEGLIGIBLE
    coefficients, occupations = coefficients[:, taken], occupations[taken]
    places: dict[tuple[float, ...], list[tuple[int, Floats]]] = {}
    row = 0
    for shell in wavefunction.shells:
        functions = in_monomials(shell.momentum, shell.functions)
        of_monomials = functions.T @ coefficients[row : row + len(functions)]
        row += len(functions)
        for exponent, weight in zip(shell.exponents.tolist(), shell.radial().tolist(), strict=True):
            places.setdefault((*shell.centre.tolist(), exponent), []).append((shell.momentum, weight * of_monomials))
    blocks, momenta = [], []
    for parts in places.values():
        most = max(momentum for momentum, _ in parts)
        block = np.zeros((sum(len(monomials(momentum)) for momentum in range(most + 1)), len(occupations)))
        for momentum, values in parts:
            at = sum(len(monomials(lower)) for lower in range(momentum))
            block[at : at + len(values)] += values
        blocks.append(block)
        momenta.append(most)
    keys = np.array(list(places), float).reshape(-1, 4)
    return keys[:, :3], keys[:, 3], np.array(momenta, np.int64), blocks, occupations


def _products(a: Floats, b: Floats, alpha: Floats, beta: Floats, momenta: tuple[int, int], matrix: Floats) -> Floats:
    """Return the coefficients (n, K) of Hermite Gaussians of pairs of primitives.

    Parameters
    ----------
    a, b : (n, 3) float64
        The two centres less that of the product.
    alpha, beta : (n,) float64
    momenta : (int, int)
    matrix : (n, monomials, monomials) float64
        Of the density.
    """
    x, y, z = (_expansion(a[:, d], b[:, d], alpha, beta, momenta) for d in range(3))
    powers = [[power for momentum in range(most + 1) for power in monomials(momentum)] for most in momenta]
    order = {tuv: n for n, tuv in enumerate(hermite(sum(momenta)))}
    found = np.zeros((len(alpha), len(order)))
    for m, (i, j, k) in enumerate(powers[0]):
        for n, (q, r, s) in enumerate(powers[1]):
            weight = matrix[:, m, n]
            for t in range(i + q + 1):
                along_x = weight * x[i, q, t]
                for u in range(j + r + 1):
                    along_xy = along_x * y[j, r, u]
                    for v in range(k + s + 1):
                        found[:, order[t, u, v]] += along_xy * z[k, s, v]
    return found


def _expansion(a: Floats, b: Floats, alpha: Floats, beta: Floats, momenta: tuple[int, int]) -> Floats:
    """Return E[i, j, t] (.., n), by which x_a^i x_b^j times both exponentials is a sum of Hermite Gaussians."""
    p = alpha + beta
    first, second = momenta
    found = np.zeros((first + 1, second + 1, first + second + 2, len(a)))
    found[0, 0, 0] = np.exp(-alpha * beta / p * (a - b) ** 2)
    for i in range(first + 1):
        for j in range(second + 1):
            if i == j == 0:
                continue
            before, apart = (found[i - 1, j], -a) if i else (found[i, j - 1], -b)
            for t in range(i + j + 1):
                found[i, j, t] = apart * before[t] + (t + 1) * before[t + 1] + (
                    before[t - 1] / (2 * p) if t else 0.0)
    return found


def _steps(order: int) -> Integers:
    """Return how each R_tuv follows from others, see the kernel."""
    place = {tuv: n for n, tuv in enumerate(hermite(order))}
    steps = np.zeros((len(place), 4), np.int64)
    for tuv, n in place.items():
        if n == 0:
            continue
        axis = int(np.argmax(np.array(tuv) > 0))
        one = list(tuv)
        one[axis] -= 1
        two = list(one)
        two[axis] -= 1
        steps[n] = axis, place[one[0], one[1], one[2]], place.get((two[0], two[1], two[2]), 0), max(0, one[axis])
    return steps


def _boys(order: int, far: float, fine: int, terms: int) -> Floats:
    """Return a table (rows, 1 + order + terms) of exp(-T) and Boys' functions at multiples of 1 / fine."""
    from scipy.special import gamma, gammainc

    t = np.arange(int(far * fine) + 2)[:, None] / fine
    m = np.arange(order + terms) + 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        found = gamma(m) * gammainc(m, t) / (2 * t**m)
    found[0] = 1 / (2 * m)
    return np.concatenate([np.exp(-t), found], axis=1)
