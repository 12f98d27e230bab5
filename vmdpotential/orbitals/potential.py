"""The electrostatic potential of nuclei and electrons of a wave function, without a fit.

The electrons are Gaussians times Hermite polynomials (:mod:`vmdpotential.orbitals.products`), and the potential of each
is known in closed form (:mod:`vmdpotential.orbitals.charge_kernel`). On maps of many points a mesh has what is smooth
of it (:mod:`vmdpotential.orbitals.mesh`), and only points near to narrow Gaussians are summed directly.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.compiling import build, threads
from vmdpotential.engines import SOFT_CORE
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.orbitals.mesh import BYTES, Mesh, exponential_reach, lay_mesh, smooth_potential
from vmdpotential.orbitals.products import Gaussians, gaussians, hermite
from vmdpotential.orbitals.wavefunction import Wavefunction
from vmdpotential.units import BOHR, DEFAULT_TEMPERATURE, coulomb_constant

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Exponents of the widest Gaussians that are tried for a mesh, bohr^-2.
WIDTHS = tuple(2.0**n for n in range(-4, 6))

#: Potential, hartree/e, below which what is left of a Gaussian is left out: exp of minus this.
_REACH = 16.0

#: Seconds of a Gaussian at a point: for each, and for each of its coefficients; of a Gaussian at a node; of a node.
_POINT, _TERM, _SAMPLE, _NODE = 8e-9, 1.2e-9, 1.5e-9, 6e-8


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
    mesh = choose_mesh(electrons, lattice)
    values = summed(electrons, wavefunction.positions / BOHR, wavefunction.nuclear_charges, lattice, mesh, factor)
    made = Provenance(method="Gaussian basis functions", interaction="coulomb", medium="vacuum, no screening",
                      boundary="open", precision="double", engine="cpu", inputs=(wavefunction.name,))
    return Grid(lattice, values, unit, temperature, 1.0, made)


def choose_mesh(electrons: Gaussians, lattice: Lattice) -> Mesh | None:
    """Return the mesh by which the potential is found soonest; None for that without one."""
    best, least = None, _seconds(electrons, lattice, None)
    for width in WIDTHS if len(electrons.exponents) else ():
        mesh = lay_mesh(electrons, lattice.origin / BOHR, lattice.last / BOHR, width)
        if BYTES * mesh.nodes + 12 * lattice.size > memory.limit():
            continue
        seconds = _seconds(electrons, lattice, mesh)
        if seconds < least:
            best, least = mesh, seconds
    return best


def _seconds(electrons: Gaussians, lattice: Lattice, mesh: Mesh | None) -> float:
    """Return about how long a potential takes on a core."""
    terms = np.array([len(hermite(order)) for order in range(int(electrons.orders.max(initial=0)) + 1)])
    each = _POINT + _TERM * terms[electrons.orders]
    if mesh is None:
        return float(each.sum()) * lattice.size
    narrow = electrons.exponents > mesh.width
    points = 4 / 3 * np.pi * near_reaches(electrons, mesh.width) ** 3 / np.prod(lattice.spacing / BOHR)
    nodes = 4 / 3 * np.pi * (mesh.reaches / mesh.spacing) ** 3
    return float(3 * each[narrow] @ np.minimum(points, lattice.size)[narrow] + _SAMPLE * nodes.sum()
                 + _NODE * mesh.nodes)


def near_reaches(electrons: Gaussians, width: float) -> Floats:
    """Return where the potential of each Gaussian less that of a wider one is negligible, bohr."""
    sizes = electrons.sizes(width)
    return exponential_reach(width, sizes, electrons.orders, _REACH)


def summed(electrons: Gaussians, nuclei: Floats, charges: Floats, lattice: Lattice, mesh: Mesh | None,
           factor: float) -> NDArray[np.float32]:
    """Return `factor` times the potential, hartree/e, (nx, ny, nz), of electrons and nuclei (N, 3) bohr."""
    smooth, width = np.zeros((0, 0, 0)), 0.0
    near, reaches = np.ones(len(electrons.orders), bool), np.full(len(electrons.orders), 1e9)
    if mesh is not None:
        width = mesh.width
        smooth = -factor * smooth_potential(electrons, mesh, [axis / BOHR for axis in lattice.axes()])
        near, reaches = electrons.exponents > width, near_reaches(electrons, width)
    most = int(electrons.orders.max(initial=0))
    kernel = build.load("charge_kernel")
    values = np.empty(lattice.shape, np.float32)
    task = partial(kernel.potential, electrons.centres[near], electrons.exponents[near], electrons.orders[near],
                   electrons.starts[near], electrons.coefficients * -factor, reaches[near], width, _steps(most),
                   np.array([len(hermite(order)) for order in range(most + 1)]),
                   _boys(most, kernel.LAST, kernel.FINE, kernel.TERMS), nuclei, charges * factor, SOFT_CORE / BOHR,
                   lattice.origin / BOHR, lattice.spacing / BOHR, smooth, values)
    threads.run(task, lattice.shape[0], "potential of electrons", 1)
    return values


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
