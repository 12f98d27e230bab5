"""Electrostatic potential of the nuclei and electrons of a wave function, without fitted charges.

The electron density is a sum of Hermite Gaussians (:mod:`.products`), whose potentials are known
in closed form. For maps of many points on a CPU the smooth part is summed on a mesh
(:mod:`.mesh`), and only the difference near narrow Gaussians is summed directly.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory, progress
from vmdpotential.arrays import Floats, Integers
from vmdpotential.engines import Engine, get_engine
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.interactions import SOFT_CORE
from vmdpotential.kernels.launch import KernelFile, tiled_plane
from vmdpotential.units import BOHR, DEFAULT_TEMPERATURE, coulomb_constant

from .gaussians import Gaussians, boys_table, hermite
from .mesh import BYTES, Mesh, build_mesh, exponential_reach, smooth_potential
from .products import gaussians
from .wavefunction import Wavefunction

Singles = NDArray[np.float32]

KERNELS = KernelFile(Path(__file__).with_name("potential.cu"))

#: Candidates for the largest exponent of Gaussians on a mesh, bohr^-2.
WIDTHS = tuple(2.0**n for n in range(-4, 6))

#: The difference of a narrow and a wide Gaussian is neglected where it is below exp(-_REACH) hartree/e.
_REACH = 16.0

#: Seconds per Gaussian and point, per coefficient and point, per Gaussian and node, and per node, of a CPU.
_POINT, _TERM, _SAMPLE, _NODE = 8e-9, 1.2e-9, 1.5e-9, 6e-8

#: Number of coefficients times points in one launch, which takes some seconds at most, so that Ctrl-C can act.
TERMS_PER_LAUNCH = 5e9


def potential_map(wavefunction: Wavefunction, lattice: Lattice, unit: str = "kT/e",
                  temperature: float = DEFAULT_TEMPERATURE, engine: str = "auto") -> Grid:
    """Return the electrostatic potential of the nuclei and electrons at the points of a lattice.

    Parameters
    ----------
    wavefunction : Wavefunction
    lattice : Lattice
    unit : str
        Unit of the values, from :data:`vmdpotential.units.POTENTIAL_UNITS`.
    temperature : float, K
        Temperature that defines kT/e.
    engine : str
        Compute engine.

    Returns
    -------
    Grid
        Map of the potential. Distances to nuclei below 0.01 A count as 0.01 A.

    Raises
    ------
    UsageError
        For a unit that does not exist.
    MemoryPlanError
        If the map does not fit into memory.
    BackendError
        If the engine is not available on this computer.
    """
    backend, factor = get_engine(engine), coulomb_constant(unit, temperature) / BOHR
    memory.require(12 * lattice.size, f"a map of {' x '.join(map(str, lattice.shape))} points",
                   "use a larger {spacing}")
    in_bohr = Lattice(lattice.origin / BOHR, lattice.spacing / BOHR, lattice.shape)
    electrons = gaussians(wavefunction)
    # GPUs sum all Gaussians faster than a mesh is transformed
    mesh = None if backend.devices() else choose_mesh(electrons, in_bohr)
    values = sum_potential(backend, in_bohr, electrons, mesh, wavefunction.positions / BOHR,
                           wavefunction.nuclear_charges, factor)
    provenance = Provenance(method="Gaussian basis functions", interaction="coulomb", medium="vacuum, no screening",
                            medium_kind="vacuum", boundary="open", precision="double", engine=backend.name,
                            inputs=(wavefunction.name,))
    return Grid(lattice, values, unit, temperature, 1.0, provenance)


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


def sum_potential(engine: Engine, lattice: Lattice, electrons: Gaussians, mesh: Mesh | None, nuclei: Floats,
                  charges: Floats, factor: float) -> Singles:
    """Return the potential (nx, ny, nz) of electrons and nuclei, summed in float64 by a mesh, or without one.

    Parameters
    ----------
    engine : Engine
    lattice : Lattice
        Lattice in bohr.
    electrons : Gaussians
        The density of the electrons, whose charge counts as negative.
    mesh : Mesh or None
    nuclei, charges : (N, 3) and (N,) float64, bohr and e
        Positions and charges of the nuclei.
    factor : float
        Factor that converts the potential from hartree/e to the unit of the result.
    """
    orders, plane, batches = electrons.orders, tiled_plane(lattice.shape), []
    narrow, reaches = np.ones(len(orders), bool), np.full(len(orders), 1e9)
    if mesh is not None:
        narrow, reaches = electrons.exponents > mesh.width, near_reaches(electrons, mesh.width)
    for order in np.unique(orders[narrow]).tolist():
        chosen, size = np.flatnonzero(narrow & (orders == order)), len(hermite(order))
        parts = max(1, int(np.ceil(len(chosen) * size * float(lattice.size) / TERMS_PER_LAUNCH)))
        batches += [(order, part) for part in np.array_split(chosen, min(parts, len(chosen)))]
    geometry = {"origin": lattice.origin, "spacing": lattice.spacing, "shape": lattice.shape, "plane": plane}
    count = lattice.shape[0] * plane
    with engine.room(12 * lattice.size + 8 * len(electrons.coefficients) + 40 * len(orders)), \
            progress.parts("potential of electrons", len(batches) + 1) as done:
        sums = engine.zeros(lattice.shape, np.float64) if mesh is None else engine.array(
            -factor * smooth_potential(electrons, mesh, list(lattice.axes())))
        finished, values = engine.zeros(1, np.float64), engine.empty(lattice.shape, np.float32)
        for order, part in batches:
            coefficients = electrons.coefficients[electrons.starts[part, None] + np.arange(len(hermite(order)))]
            engine.launch(KERNELS[f"add_gaussians_{order}"], count, "potential of electrons", plane,
                          centres=electrons.centres[part], exponents=electrons.exponents[part],
                          coefficients=coefficients * -factor, reaches=reaches[part], steps=_steps(order),
                          table=boys_table(order), sums=sums, width=0.0 if mesh is None else mesh.width,
                          gaussians=len(part), order=order, **geometry)
            engine.to_host(finished)  # waits for the kernel
            done()
        engine.launch(KERNELS["add_nuclei"], count, "potential of nuclei", plane, nuclei=np.ascontiguousarray(nuclei),
                      charges=charges * factor, sums=sums, out=values, closest=SOFT_CORE / BOHR, count=len(charges),
                      **geometry)
        return cast(Singles, engine.to_host(values))


@cache
def _steps(order: int) -> Integers:
    """Return the recursion of each R_tuv, (K, 4), see ``potential.cu``."""
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
