"""The potential of Gaussian charges on a lattice on the CPU.

On maps of many points a mesh has what is smooth of it (:mod:`vmdpotential.engines.cpu.gaussian_mesh`), and only points
near to narrow Gaussians are summed directly (:mod:`vmdpotential.engines.cpu.gaussian_kernel`).
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.compiling import build, threads
from vmdpotential.engines.cpu.gaussian_mesh import BYTES, Mesh, exponential_reach, lay_mesh, smooth_potential
from vmdpotential.engines.gaussians import Gaussians, GaussianSum, boys_table, hermite
from vmdpotential.grid.lattice import Lattice

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Integers = NDArray[np.int64]

#: Exponents of the widest Gaussians that are tried for a mesh, bohr^-2.
WIDTHS = tuple(2.0**n for n in range(-4, 6))

#: Potential, hartree/e, below which what is left of a Gaussian is left out: exp of minus this.
_REACH = 16.0

#: Seconds of a Gaussian at a point: for each, and for each of its coefficients; of a Gaussian at a node; of a node.
_POINT, _TERM, _SAMPLE, _NODE = 8e-9, 1.2e-9, 1.5e-9, 6e-8


def potential(work: GaussianSum) -> Singles:
    """Return the potential (nx, ny, nz); see :class:`vmdpotential.engines.Engine`."""
    return summed(work, choose_mesh(work.electrons, work.lattice))


def choose_mesh(electrons: Gaussians, lattice: Lattice) -> Mesh | None:
    """Return the mesh by which the potential is computed in the least time; None for the sum without a mesh."""
    best, least = None, _seconds(electrons, lattice, None)
    for width in WIDTHS if len(electrons.exponents) else ():
        mesh = lay_mesh(electrons, lattice.origin, lattice.last, width)
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
    points = 4 / 3 * np.pi * near_reaches(electrons, mesh.width) ** 3 / np.prod(lattice.spacing)
    nodes = 4 / 3 * np.pi * (mesh.reaches / mesh.spacing) ** 3
    return float(3 * each[narrow] @ np.minimum(points, lattice.size)[narrow] + _SAMPLE * nodes.sum()
                 + _NODE * mesh.nodes)


def near_reaches(electrons: Gaussians, width: float) -> Floats:
    """Return where the potential of each Gaussian less that of a wider one is negligible, bohr."""
    sizes = electrons.sizes(width)
    return exponential_reach(width, sizes, electrons.orders, _REACH)


def summed(work: GaussianSum, mesh: Mesh | None) -> Singles:
    """Return the potential (nx, ny, nz) by a mesh, or without one."""
    electrons, lattice = work.electrons, work.lattice
    smooth, width = np.zeros((0, 0, 0)), 0.0
    near, reaches = np.ones(len(electrons.orders), bool), np.full(len(electrons.orders), 1e9)
    if mesh is not None:
        width = mesh.width
        smooth = -work.factor * smooth_potential(electrons, mesh, list(lattice.axes()))
        near, reaches = electrons.exponents > width, near_reaches(electrons, width)
    most = int(electrons.orders.max(initial=0))
    values = np.empty(lattice.shape, np.float32)
    task = partial(build.load("gaussian_kernel").potential, electrons.centres[near], electrons.exponents[near],
                   electrons.orders[near], electrons.starts[near], electrons.coefficients * -work.factor, reaches[near],
                   width, _steps(most), np.array([len(hermite(order)) for order in range(most + 1)]), boys_table(most),
                   work.nuclei, work.charges * work.factor, work.closest, lattice.origin, lattice.spacing, smooth,
                   values)
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
        term = list(tuv)
        term[axis] -= 1
        two = list(term)
        two[axis] -= 1
        steps[n] = axis, place[term[0], term[1], term[2]], place.get((two[0], two[1], two[2]), 0), max(0, term[axis])
    return steps
