"""Lennard-Jones energies of a probe atom on a lattice; atoms with the same distance of the minimum are one sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.nonbonded import Nonbonded, lennard_jones
from vmdpotential.sums.potential_sum import PotentialSum, Prepared, prepare_sum

from .interactions import DISPERSION

Singles = NDArray[np.float32]

#: Largest energy of a pair, in units of its depth: a float32 can hold sums of thousands of these.
CAP = 1e30


@dataclass(frozen=True, eq=False)
class ProbeSum:
    """Lennard-Jones energy of a probe atom with the atoms of a structure.

    Parameters
    ----------
    rmin : (G,) float64, A
        Distances of the energy minimum, all different.
    groups : sequence of (n,) int64
        For each distance, the atoms that have it.
    depths : sequence of (n,) float64
        For each distance, the depths of these atoms' energy wells, kcal/mol.
    cutoff : float, A
    """

    rmin: Floats
    groups: tuple[NDArray[np.int64], ...]
    depths: tuple[Floats, ...]
    cutoff: float

    def energies(self, engine: Engine, lattice: Lattice, positions: Floats, cell: Cell | None) -> Singles:
        """Return the energy (nx, ny, nz) of the probe at every node, kcal/mol."""
        total = np.zeros(lattice.shape, np.float32)
        self.add_to(total, self.prepare(engine, lattice, cell), positions)
        return total

    def prepare(self, engine: Engine, lattice: Lattice, cell: Cell | None) -> list[Prepared]:
        """Return a prepared sum for each group of atoms, which can run with the positions of any frame."""
        bounds = [DISPERSION.bind(rmin=float(rmin), cap=CAP, cutoff=self.cutoff) for rmin in self.rmin]
        return [prepare_sum(engine, PotentialSum(lattice, bound, cell)) for bound in bounds]

    def add_to(self, total: Singles, prepared: Sequence[Prepared], positions: Floats) -> float:
        """Add the energies to a map (nx, ny, nz), and return the computing time of a GPU in seconds."""
        seconds = 0.0
        for prepared_sum, group, depth in zip(prepared, self.groups, self.depths, strict=True):
            result = prepared_sum.run(positions[group], depth)
            total += result.values().reshape(total.shape)
            seconds += result.device_seconds or 0.0
        return seconds

    def at(self, points: Floats, positions: Floats, cell: Cell | None) -> Floats:
        """Return the energy (P,) at points, kcal/mol, computed from the definition in float64, for checks."""
        result = np.zeros(len(points))
        for rmin, group, depth in zip(self.rmin, self.groups, self.depths, strict=True):
            images, index = positions[group], np.arange(len(group))
            if cell is not None:
                images, index = cell.images_in_box(images, points.min(0) - self.cutoff, points.max(0) + self.cutoff)
            for n, point in enumerate(points):
                r2 = ((images - point) ** 2).sum(1)
                near = r2 < self.cutoff**2
                six = (rmin**2 / r2[near]) ** 3
                result[n] += (depth[index[near]] * (six * six - 2 * six)).sum()
        return result


def probe_sum(terms: Nonbonded, sigma: float, epsilon: float, cutoff: float) -> ProbeSum:
    """Return the sum for a probe with a sigma (A) and an epsilon (kcal/mol), by the force field's combination rule.

    The rule is the geometric one if the force field's table follows from it, and otherwise Lorentz and Berthelot's,
    also if all atoms with Lennard-Jones parameters are of one type, as in water, so that the rule is unknown.

    Raises
    ------
    UsageError
        For a sigma or an epsilon that is not above 0, or far too large.
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
    """Return the sum for a probe of a type of the structure's force field, with the parameters in its table of pairs.

    Raises
    ------
    UsageError
        If the force field does not have the type.
    """
    if name not in terms.names:
        raise UsageError("probe", f"the force field ({terms.source}) has the types {', '.join(terms.names[:40])}"
                         f"{' ...' if len(terms.names) > 40 else ''}", "or give NAME=SIGMA,EPSILON", value=name)
    row = terms.names.index(name)
    return _grouped(terms, terms.c6[row], terms.c12[row], cutoff)


def _grouped(terms: Nonbonded, c6: Floats, c12: Floats, cutoff: float) -> ProbeSum:
    """Return the sum for the coefficients of c12 / r^12 - c6 / r^6 between the probe and each type, (T,)."""
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
