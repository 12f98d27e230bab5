"""The potential of Gaussian charges on a lattice on the CPU.

For maps of many points the smooth part is summed on a mesh (:mod:`vmdpotential.engines.cpu.gaussian_mesh`), and only
the difference near narrow Gaussians is summed directly, by the kernels of ``orbitals/potential.cu``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.engines.cpu.gaussian_mesh import BYTES, Mesh, build_mesh, exponential_reach, smooth_potential
from vmdpotential.engines.gaussians import Gaussians, GaussianSum, boys_table, hermite
from vmdpotential.grid.lattice import Lattice
from vmdpotential.kernels.launch import KernelFile, launch

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Integers = NDArray[np.int64]

KERNELS = KernelFile(Path(__file__).parents[2] / "orbitals" / "potential.cu")

#: Candidates for the largest exponent of Gaussians on a mesh, bohr^-2.
WIDTHS = tuple(2.0**n for n in range(-4, 6))

#: The difference of a narrow and a wide Gaussian is neglected where it is below exp(-_REACH) hartree/e.
_REACH = 16.0

#: Seconds per Gaussian and point, per coefficient and point, per Gaussian and node, and per node.
_POINT, _TERM, _SAMPLE, _NODE = 8e-9, 1.2e-9, 1.5e-9, 6e-8


def potential(work: GaussianSum) -> Singles:
    """Return the potential (nx, ny, nz); see :class:`vmdpotential.engines.Engine`."""
    return summed(work, choose_mesh(work.electrons, work.lattice))


def choose_mesh(electrons: Gaussians, lattice: Lattice) -> Mesh | None:
    """Return the mesh with the shortest estimated time; None if the sum without a mesh is faster."""
    best, least = None, _seconds(electrons, lattice, None)
    for width in WIDTHS if len(electrons.exponents) else ():
        mesh = build_mesh(electrons, lattice.origin, lattice.last, width)
        if BYTES * mesh.nodes + 12 * lattice.size > memory.limit():
            continue
        seconds = _seconds(electrons, lattice, mesh)
        if seconds < least:
            best, least = mesh, seconds
    return best


def _seconds(electrons: Gaussians, lattice: Lattice, mesh: Mesh | None) -> float:
    """Return the estimated time of a potential on one core, s."""
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
    """Return the distances at which the difference of each Gaussian and the wider one becomes negligible, bohr."""
    sizes = electrons.sizes(width)
    return exponential_reach(width, sizes, electrons.orders, _REACH)


def summed(work: GaussianSum, mesh: Mesh | None) -> Singles:
    """Return the potential (nx, ny, nz) by a mesh, or without one."""
    electrons, lattice = work.electrons, work.lattice
    smooth, width = None, 0.0
    near, reaches = np.ones(len(electrons.orders), bool), np.full(len(electrons.orders), 1e9)
    if mesh is not None:
        width = mesh.width
        smooth = -work.factor * smooth_potential(electrons, mesh, list(lattice.axes()))
        near, reaches = electrons.exponents > width, near_reaches(electrons, width)
    most = int(electrons.orders.max(initial=0))
    values = np.empty(lattice.shape, np.float32)
    launch(KERNELS["sum_gaussian_potential"], lattice.shape[0], "potential of electrons", 1,
           centres=electrons.centres[near], exponents=electrons.exponents[near], orders=electrons.orders[near],
           starts=electrons.starts[near], coefficients=electrons.coefficients * -work.factor, reaches=reaches[near],
           steps=_steps(most), counts=np.array([len(hermite(order)) for order in range(most + 1)]),
           table=boys_table(most), nuclei=np.ascontiguousarray(work.nuclei), charges=work.charges * work.factor,
           smooth=smooth, out=values, origin=lattice.origin, spacing=lattice.spacing, width=width,
           closest=work.closest, shape=lattice.shape, gaussians=np.count_nonzero(near), most=most,
           charge_count=len(work.charges))
    return values


def _steps(order: int) -> Integers:
    """Return the recursion of each R_tuv, (K, 4), see ``orbitals/potential.cu``."""
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
