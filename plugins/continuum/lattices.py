"""Lattices for the Poisson-Boltzmann equation: nodes for multigrid, and parts of them."""

from __future__ import annotations

import numpy as np

from vmdpotential.grid.lattice import Lattice, coordinate_bounds

from .molecule import Continuum

#: Spacings around the molecule within which phi_c is needed: at cut edges and for interpolation between lattices.
NEXT = 3


def levels(shape: tuple[int, int, int]) -> int:
    """Return the number of multigrid levels for a lattice of a shape."""
    return max(1, int(np.log2(max(2, (min(shape) - 1) / 8))) + 1)


def enclosing_lattice(lattice: Lattice) -> tuple[Lattice, tuple[int, int, int], int]:
    """Return a lattice for multigrid that holds the nodes of another, the first of these, and the number of levels."""
    shape = np.maximum(np.array(lattice.shape) + 2, 17)
    depth = levels((int(shape[0]), int(shape[1]), int(shape[2])))
    step = 2 ** (depth - 1)
    nodes = -(-(shape - 1) // step) * step + 1
    a, b, c = (int(n) for n in (nodes - lattice.shape) // 2)
    nx, ny, nz = (int(n) for n in nodes)
    return Lattice(lattice.origin - lattice.spacing * (a, b, c), lattice.spacing, (nx, ny, nz)), (a, b, c), depth


def aligned_lattice(around: Lattice, nodes: Lattice, ratio: int) -> Lattice:
    """Return a lattice around a part of a molecule with the nodes of that of the whole, also coarse ones.

    It is `around`, moved by at most half a coarse spacing. The solver's own lattice of the whole is that for `nodes`;
    the coarse spacing is `ratio` times the fine one. So the solutions of both have the same errors of the lattice
    where their surfaces are the same.
    """
    apart = enclosing_lattice(nodes)[0].origin - enclosing_lattice(around)[0].origin
    step = ratio * around.spacing
    return Lattice(around.origin + apart - step * np.rint(apart / step), around.spacing, around.shape)


def around(c: Continuum, lattice: Lattice) -> tuple[slice, slice, slice]:
    """Return the part of a lattice where phi_c is needed: the molecule, and the nodes next to it.

    The whole lattice for a smooth permittivity, for which the molecule has no boundary.
    """
    if c.gaussian:
        return slice(0, lattice.shape[0]), slice(0, lattice.shape[1]), slice(0, lattice.shape[2])
    far, (low, high) = c.radii.max() + NEXT * lattice.spacing, coordinate_bounds(c.positions)
    first = ((low - far - lattice.origin) // lattice.spacing).astype(np.int64)
    last = ((high + far - lattice.origin) // lattice.spacing).astype(np.int64) + 2
    x, y, z = (slice(min(max(a, 0), n - 1), max(min(b, n), 1))
               for a, b, n in zip(first.tolist(), last.tolist(), lattice.shape, strict=True))
    return x, y, z


def part_shared(coarse: Lattice, finer: Lattice, ratio: int) -> tuple[slice, slice, slice]:
    """Return the part of a lattice that it shares with a finer one, which has every `ratio`-th of its spacings."""
    first = np.rint((finer.origin - coarse.origin) / coarse.spacing).astype(int)
    x, y, z = (slice(a, a + -(-n // ratio)) for a, n in zip(first.tolist(), finer.shape, strict=True))
    return x, y, z
