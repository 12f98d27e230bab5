"""Pores through a membrane: which part of a slab is water, because a protein encloses it.

On nodes of a lattice around the molecule, three regions of the slab are found. Lipid is where the centre of a ball of
the lipids' chains gets from the edge of the lattice without leaving the slab or touching an atom, and what is within
the radius of such a ball. Of the rest, where the centre of a water can be, the connected pieces that end at water on
both sides of the slab are pores. Water above and below is what a water reaches from beyond the molecule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.arrays import Floats
from vmdpotential.grid.lattice import Lattice, coordinate_bounds
from vmdpotential.surfaces.region import Surface

Mask = NDArray[np.bool_]

#: Spacing of the nodes, A, and their largest number, beyond which the spacing grows.
SPACING, MOST_NODES = 0.4, 4_000_000

#: Radius of the lipids' chains, A: a chain occupies at least 20 A^2 of a membrane (J. F. Nagle, S. Tristram-Nagle,
#: Biochim. Biophys. Acta 1469 (2000) 159).
CHAIN = 2.5

#: How far the lattice reaches beyond the molecule, A.
ATOM_MARGIN = 7.0

#: Largest radius of a pore, A, that is measured; wider ones are reported as at least this.
WIDEST = 12.0


@dataclass(frozen=True, eq=False)
class PoreRegion:
    """The water in a slab that is connected with both of its sides.

    Parameters
    ----------
    lattice : Lattice
    water : (nx, ny, nz) bool
        Which nodes are in a pore, or in atoms next to it.
    low, high : float, A
        Heights of the slab's faces.
    volume : float, A^3
        Of what waters fill of all pores.
    radius : float, A
        The narrowest radius of the widest path through a pore: that of the largest ball that goes through, at most
        :data:`WIDEST`.
    count : int
    """

    lattice: Lattice
    water: Mask
    low: float
    high: float
    volume: float
    radius: float
    count: int

    def at(self, points: Floats, beyond: float = 0.0) -> Mask:
        """Return which points (..., 3), A, are in a pore, as far as they are not in the molecule.

        Points up to `beyond` above and below the slab count, if they are straight before a pore's end.
        """
        z = points[..., 2]
        inside = (z > self.low - beyond) & (z < self.high + beyond)
        moved = np.stack([points[..., 0], points[..., 1], np.clip(z, self.low, self.high)], -1)
        place = np.rint((moved - self.lattice.origin) / self.lattice.spacing).astype(np.int64)
        inside &= ((place >= 0) & (place < self.lattice.shape)).all(-1)
        place = np.clip(place, 0, np.array(self.lattice.shape) - 1)
        return np.asarray(inside & self.water[tuple(np.moveaxis(place, -1, 0))], np.bool_)

    def at_nodes(self, lattice: Lattice) -> Mask:
        """Return which nodes (nx, ny, nz) of a lattice are in a pore, and those next to its ends."""
        result = np.zeros(lattice.shape, np.bool_)
        axes = [lattice.origin[d] + lattice.spacing[d] * np.arange(lattice.shape[d]) for d in range(3)]
        part = []
        for d, axis in enumerate(axes):
            low, high = self.lattice.origin[d], self.lattice.last[d]
            if d == 2:
                low, high = self.low - lattice.spacing[2], self.high + lattice.spacing[2]
            chosen = np.flatnonzero((axis >= low) & (axis <= high))
            if not len(chosen):
                return result
            part.append(slice(int(chosen[0]), int(chosen[-1]) + 1))
        grids = np.stack(np.meshgrid(*(axis[p] for axis, p in zip(axes, part, strict=True)), indexing="ij"), -1)
        result[tuple(part)] = self.at(grids, float(lattice.spacing[2]))
        return result


def find_pores(positions: Floats, radii: Floats, probe: float, low: float, high: float) -> PoreRegion | None:
    """Return the pores of a molecule through a slab; None if there are none.

    Parameters
    ----------
    positions : (N, 3) float64, A
    radii : (N,) float64, A
    probe : float, A
        Radius of a water.
    low, high : float, A
        Heights of the slab's faces.

    Raises
    ------
    MemoryPlanError
        For atoms so far apart that the search does not fit into memory.
    """
    from scipy import ndimage

    solid = radii > 0
    if not solid.any() or positions[solid, 2].min() > high or positions[solid, 2].max() < low:
        return None
    begin, end = coordinate_bounds(positions[solid])
    begin, end = begin - ATOM_MARGIN, end + ATOM_MARGIN
    begin[2], end[2] = min(begin[2], low - 2 * ATOM_MARGIN), max(end[2], high + 2 * ATOM_MARGIN)
    spacing = max(SPACING, float(np.prod(end - begin) / MOST_NODES) ** (1 / 3))
    while (shape := np.ceil((end - begin) / spacing).astype(int) + 1).prod() > 8 * MOST_NODES:  # of a few long rows
        spacing *= 1.5
    a, b, c = shape.tolist()
    if (nodes := a * b * max(c, 16)) > 8 * MOST_NODES:  # rows are as long as vectors of the processor
        memory.require(20 * nodes, "the search for pores", "correct positions that are far too large")
    lattice = Lattice(begin, np.full(3, spacing), (a, b, c))
    z = begin[2] + spacing * np.arange(c)
    in_slab = (z >= low) & (z <= high)
    if not in_slab.any():
        return None
    # exact up to the radius of a chain, and a bound farther out
    surface = Surface(positions, radii, 0.0)
    distances = surface.distances(lattice, layers=int(np.ceil(max(CHAIN, probe) / spacing)) + 1)
    levels = slice(*(np.flatnonzero(in_slab)[[0, -1]] + [0, 1]).tolist())
    around = distances[:, :, levels]
    chains, _ = ndimage.label(around >= CHAIN)
    edge = np.unique(np.concatenate([chains[0].ravel(), chains[-1].ravel(), chains[:, 0].ravel(),
                                     chains[:, -1].ravel()]))
    lipid = np.isin(chains, edge[edge > 0])
    if not lipid.any():
        return None
    lipid = ndimage.distance_transform_edt(~lipid, spacing) <= CHAIN
    free = distances >= probe
    free[:, :, levels] &= ~lipid
    first, last = levels.start, levels.stop - 1
    if first == 0 or last == c - 1:
        return None
    below = _bulk(free[:, :, :first], 0)[:, :, -1]
    above = _bulk(free[:, :, last + 1 :], -1)[:, :, 0]
    pieces, _ = ndimage.label(free[:, :, levels])
    through = np.intersect1d(pieces[:, :, 0][below], pieces[:, :, -1][above])
    through = through[through > 0]
    if not len(through):
        return None
    pore = np.isin(pieces, through)
    water = ndimage.distance_transform_edt(~pore, spacing) <= probe + 2 * spacing
    filled = (ndimage.distance_transform_edt(~pore, spacing) <= probe) & (around >= 0)
    wet = np.zeros(lattice.shape, np.bool_)
    wet[:, :, levels] = water & ~lipid
    # the nearest node to a face can be beyond it
    wet[:, :, first - 1], wet[:, :, last + 1] = wet[:, :, first], wet[:, :, last]
    room, nodes = np.full(pore.shape, -1.0), np.argwhere(pore)
    room[pore] = _distances(lattice.points(nodes + np.array([0, 0, first])), positions[solid], radii[solid])
    return PoreRegion(lattice, wet, low, high, float(filled.sum()) * spacing**3,
                      _narrowest(room, probe, below, above), len(through))


def _distances(points: Floats, positions: Floats, radii: Floats) -> Floats:
    """Return the distances (P,) of points to the nearest surface of an atom, A, at most :data:`WIDEST`."""
    from scipy.spatial import cKDTree

    result = np.full(len(points), WIDEST)
    for radius in np.unique(radii):
        tree = cKDTree(positions[radii == radius])
        result = np.minimum(result, tree.query(points, distance_upper_bound=WIDEST + radius)[0] - radius)
    return result


def _bulk(free: Mask, end: int) -> Mask:
    """Return the free nodes that are connected with those of the first (0) or last (-1) plane."""
    from scipy import ndimage

    parts, _ = ndimage.label(free)
    known = np.unique(parts[:, :, end])
    return np.asarray(np.isin(parts, known[known > 0]), np.bool_)


def _narrowest(room: Floats, probe: float, below: Mask, above: Mask) -> float:
    """Return the radius of the largest ball that goes from below to above where a ball has `room`, by bisection."""
    from scipy import ndimage

    low, high = probe, WIDEST
    parts, _ = ndimage.label(room >= WIDEST)
    if (np.intersect1d(parts[:, :, 0][below], parts[:, :, -1][above]) > 0).any():
        return WIDEST
    while high - low > 0.02:
        radius = 0.5 * (low + high)
        parts, _ = ndimage.label(room >= radius)
        common = np.intersect1d(parts[:, :, 0][below], parts[:, :, -1][above])
        low, high = (radius, high) if (common > 0).any() else (low, radius)
    return low


def describe_pores(pores: PoreRegion | None) -> str:
    """Return what was found of pores through a membrane."""
    if pores is None:
        return "no pore connects both sides of the membrane"
    word = "pore connects" if pores.count == 1 else "pores connect"
    radius = f"{pores.radius:.2f} A" if pores.radius < WIDEST else f"at least {WIDEST:g} A"
    return (f"{pores.count} {word} both sides of the membrane: {pores.volume:.0f} A^3 of water, narrowest radius "
            f"{radius}")
