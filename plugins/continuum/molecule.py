"""A molecule in a solution of ions: the parameters of the Poisson-Boltzmann equation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vmdpotential.grid.lattice import Lattice
from vmdpotential.kernels.launch import KernelFile, launch_kernel
from vmdpotential.surfaces.region import PointCubes, Surface

from .pores import PoreRegion
from .voltage import AppliedPotential

Floats = NDArray[np.float64]
Scalars = TypeVar("Scalars", NDArray[np.float32], NDArray[np.float64])

KERNELS = KernelFile(Path(__file__).with_name("covers.cu"))

#: Least radius of atoms that may cover others, and least distance from them, A; side of cubes by which they are sorted.
TINY, CUBE = 1e-6, 4.0

#: Number of atoms whose covers a thread finds at a time.
ATOMS_PER_TASK = 400

#: A function that returns the sum of q / r, e/A, at the nodes of a lattice, for positions (N, 3) and charges (N,): an
#: array (nx, ny, nz) float32, of numpy or an engine, and the place of the lattice's first node, as it may have more.
NodeSum = Callable[[Lattice, Floats, Floats], tuple[Any, tuple[int, int, int]]]


@dataclass(frozen=True)
class Membrane:
    """A slab across z from `low` to `high`, A, of a permittivity, without ions, except for the water of pores."""

    low: float
    high: float
    permittivity: float
    pores: PoreRegion | None = None
    #: Potential of the solution below against that above, kT/e.
    voltage: float = 0.0

    def share(self, low: Floats, high: Floats) -> Floats:
        """Return the fraction of each range of z that is in the slab."""
        result: Floats = np.clip(np.minimum(high, self.high) - np.maximum(low, self.low), 0, None) / (high - low)
        return result


@dataclass(frozen=True, eq=False)
class Continuum:
    """A molecule in a solution of ions.

    Parameters
    ----------
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    radii : (N,) float64, A
    constant : float, kT/e A/e
        Potential of 1 e at 1 A in vacuum.
    inside, outside : float
        Permittivities.
    probe : float, A
        Radius of the probe of the molecular surface; 0 for the van der Waals surface.
    ion_radius : float, A
        Closest distance of an ion's centre to an atom's surface.
    kappa : float, 1/A
        Inverse Debye length of the solution.
    ions : (I, 2) float64
        Valence and share of the ionic strength of each kind, for the full equation; none for the linear one.
    membrane : Membrane or None
        A slab across z in the place of the solution.
    gaussian : float
        Width of the Gaussian densities of atoms, in their radii, of a permittivity without a sharp surface
        (:mod:`.smooth`); 0 for a surface.
    """

    positions: Floats
    charges: Floats
    radii: Floats
    constant: float
    inside: float
    outside: float
    probe: float
    ion_radius: float
    kappa: float
    ions: Floats
    membrane: Membrane | None = None
    gaussian: float = 0.0

    @property
    def applied(self) -> AppliedPotential | None:
        """The potential, kT/e, that a voltage makes across the membrane without the molecule; None without one."""
        m = self.membrane
        if m is None or not m.voltage:
            return None
        return AppliedPotential(m.low, m.high, m.permittivity / self.outside, self.kappa, m.voltage)

    @cached_property
    def surface(self) -> Surface:
        """The surface of the molecule; the van der Waals surface for a smooth permittivity."""
        return Surface(self.positions, self.radii, 0.0 if self.gaussian else self.probe)

    @cached_property
    def covers(self) -> AtomCovers:
        """The atoms that cover others."""
        return _find_covers(self.positions, self.radii, self.probe)

    def with_charges(self, charges: Floats) -> Continuum:
        """Return the same molecule, with what is known of its shape, and other charges (N,), e."""
        result = replace(self, charges=charges)
        vars(result)["surface"] = self.surface
        if "covers" in vars(self):
            vars(result)["covers"] = self.covers
        return result

    def mixed(self, free: Scalars) -> Scalars:
        """Return the permittivity where the solvent has a fraction `free` of the space."""
        return self.inside + (self.outside - self.inside) * free


@dataclass(frozen=True, eq=False)
class AtomCovers:
    """The atoms that cover others; each atom's cover is the one below whose surface it is deepest.

    Parameters
    ----------
    owners : (N,) int64
        The cover of each atom.
    depths : (N,) float64, A
        How deep each centre is below the surface of its cover.
    radii : (N,) float64, A
        Radii of the covers.
    exposed : (N,) float64
        Fractions of the covers' surfaces that a solvent molecule can touch.
    """

    owners: NDArray[np.int64]
    depths: Floats
    radii: Floats
    exposed: Floats


def _find_covers(positions: Floats, radii: Floats, probe: float) -> AtomCovers:
    """Return the covers of all atoms, by the nearest atoms with a radius around each."""
    count, balls = len(radii), np.flatnonzero(radii > 0) if radii.any() else np.arange(len(radii))
    cubes, wide = PointCubes(positions[balls], CUBE), np.maximum(radii + probe, TINY)
    balls = balls[cubes.order]
    owners, depths, free = np.empty(count, np.int64), np.empty(count), np.empty(count)
    launch_kernel(KERNELS["find_covers"], count, "surface", ATOMS_PER_TASK, positions=np.ascontiguousarray(positions),
                  radii=np.ascontiguousarray(radii), wide=wide, centres=positions[balls], balls=balls,
                  starts=cubes.starts, owners=owners, depths=depths, free=free, counts=cubes.counts, low=cubes.low,
                  side=cubes.side, tiny=TINY, far=2 * float(wide.max(initial=0.0)))
    return AtomCovers(owners, depths, radii[owners], free[owners])
