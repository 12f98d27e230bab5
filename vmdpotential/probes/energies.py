"""Lennard-Jones energies of a probe atom on a lattice: atoms with the same distance of least energy are one sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine, LatticeSum, Prepared
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions.probe import DISPERSION
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.nonbonded import Nonbonded, lennard_jones

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

#: Energies of one atom above this many depths are as high: floats hold sums of thousands of them.
CAP = 1e30


@dataclass(frozen=True, eq=False)
class ProbeSum:
    """The Lennard-Jones of one probe atom with the atoms of a structure.

    Parameters
    ----------
    rmin : (G,) float64, A
        Distances of the least energy, all different.
    groups : sequence of (n,) int64
        The atoms that have each of them.
    depths : sequence of (n,) float64
        Depths of the wells of these, kcal/mol.
    cutoff : float, A
    """

    rmin: Floats
    groups: tuple[NDArray[np.int64], ...]
    depths: tuple[Floats, ...]
    cutoff: float

    def energies(self, engine: Engine, lattice: Lattice, positions: Floats, cell: Cell | None) -> Singles:
        """Return the energy, kcal/mol, (nx, ny, nz), of the probe at every node; 0 farther than the cutoff of all."""
        total = np.zeros(lattice.shape, np.float32)
        self.add_to(total, self.prepare(engine, lattice, cell), positions)
        return total

    def prepare(self, engine: Engine, lattice: Lattice, cell: Cell | None) -> list[Prepared]:
        """Return a sum for each group of atoms, ready to run for the positions of any frame."""
        bounds = [DISPERSION.bind(rmin=float(rmin), cap=CAP, cutoff=self.cutoff) for rmin in self.rmin]
        return [engine.prepare(LatticeSum(lattice, bound, cell)) for bound in bounds]

    def add_to(self, total: Singles, prepared: Sequence[Prepared], positions: Floats) -> float:
        """Add the energies to a map (nx, ny, nz), and return the seconds that a GPU computed."""
        seconds = 0.0
        for prepared_sum, group, depth in zip(prepared, self.groups, self.depths, strict=True):
            result = prepared_sum.run(positions[group], depth)
            total += result.values().reshape(total.shape)
            seconds += result.device_seconds or 0.0
        return seconds

    def at(self, points: Floats, positions: Floats, cell: Cell | None) -> Floats:
        """Return the energy, kcal/mol, (P,), at points in float64, written out: the definition, for checks."""
        result = np.zeros(len(points))
        for rmin, group, depth in zip(self.rmin, self.groups, self.depths, strict=True):
            places, index = positions[group], np.arange(len(group))
            if cell is not None:
                places, index = cell.images_in_box(places, points.min(0) - self.cutoff, points.max(0) + self.cutoff)
            for n, point in enumerate(points):
                r2 = ((places - point) ** 2).sum(1)
                near = r2 < self.cutoff**2
                six = (rmin**2 / r2[near]) ** 3
                result[n] += (depth[index[near]] * (six * six - 2 * six)).sum()
        return result


def probe_sum(terms: Nonbonded, sigma: float, epsilon: float, cutoff: float) -> ProbeSum:
    """Return the sum of a probe with a sigma, A, and an epsilon, kcal/mol, by the rule of the structure's force field.

    Geometric means where these make its table, else Lorentz and Berthelot's; these too where all atoms with
    Lennard-Jones are of one type, as in water, so that nothing shows the rule.

    Raises
    ------
    UsageError
        For numbers that make no well.
    """
    if not (0 < sigma < 100 and 0 < epsilon < 1e3):
        raise UsageError("probe", "needs a sigma in A and an epsilon in kcal/mol, both above 0",
                         value=f"{sigma:g},{epsilon:g}")
    if terms.rule == "geometric" and len(np.unique(terms.types[terms.epsilon[terms.types] > 0])) > 1:
        c6, c12 = (float(x) for x in lennard_jones(np.float64(sigma), np.float64(epsilon)))  # type: ignore[arg-type]
        rows6, rows12 = np.diagonal(terms.c6), np.diagonal(terms.c12)
        return _grouped(terms, np.sqrt(rows6 * c6), np.sqrt(rows12 * c12), cutoff)
    has = terms.epsilon > 0
    c6s, c12s = lennard_jones((terms.sigma + sigma) / 2, np.sqrt(terms.epsilon * epsilon))
    return _grouped(terms, np.where(has, c6s, 0.0), np.where(has, c12s, 0.0), cutoff)


def type_sum(terms: Nonbonded, name: str, cutoff: float) -> ProbeSum:
    """Return the sum of a probe of one of the types of the structure's force field, with the pairs of its table.

    Raises
    ------
    UsageError
        When there is no such type.
    """
    if name not in terms.names:
        raise UsageError("probe", f"the force field ({terms.source}) has the types {', '.join(terms.names[:40])}"
                         f"{' ...' if len(terms.names) > 40 else ''}", "or give NAME=SIGMA,EPSILON", value=name)
    row = terms.names.index(name)
    return _grouped(terms, terms.c6[row], terms.c12[row], cutoff)


def _grouped(terms: Nonbonded, c6: Floats, c12: Floats, cutoff: float) -> ProbeSum:
    """Return the sum with these coefficients of each type (T,), c12 / r^12 - c6 / r^6."""
    used = np.unique(terms.types)
    if ((c6[used] <= 0) != (c12[used] <= 0)).any():
        raise InputError("an atom type repels a probe without attracting it, or the other way round, which is no "
                         "Lennard-Jones well", "use another {probe}")
    has = (c6 > 0) & (c12 > 0)
    ratio = np.divide(2 * c12, c6, out=np.zeros_like(c6), where=has)
    rmin = np.round(ratio ** (1 / 6), 9)
    depth = np.divide(c6, 2 * ratio, out=np.zeros_like(c6), where=has)
    of_atoms, depths = rmin[terms.types], depth[terms.types]
    values = np.unique(of_atoms[depths > 0])
    groups = [np.flatnonzero((of_atoms == value) & (depths > 0)) for value in values]
    return ProbeSum(values, tuple(groups), tuple(depths[group] for group in groups), cutoff)
