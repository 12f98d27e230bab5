"""AutoGrid's hydrogen bonds: directions at the receptor's atoms, and energies that depend on the angles with these.

A hydrogen points away from the atom to which it is bound, and a lone pair of nitrogen away from its neighbours. The
lone pairs of oxygen and sulfur are in a plane: that of a carbonyl group, or that between the two neighbours
(D. N. A. Boobbyer, P. J. Goodford, P. M. McWhinnie, R. C. Wade, J. Med. Chem. 32 (1989) 1083; G. M. Morris et al.,
J. Comput. Chem. 19 (1998) 1639).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.kernels.launch import KernelFile

KERNELS = KernelFile(Path(__file__).with_name("bonds.cu"))

#: Kinds of the receptor's atoms: hydrogens, nitrogens with one lone pair, and oxygens or sulfurs with two.
DONOR, ONE_PAIR, TWO_PAIRS = range(3)

#: Largest bond lengths, A: of the hydrogen of a donor (S-H too), of hydrogens that are neighbours of acceptors, of
#: heavy neighbours of oxygen and sulfur, and of those of nitrogen and of a carbonyl group's carbon.
_DONOR_HYDROGEN, _HYDROGEN, _BY_OXYGEN, _BY_OTHERS = 1.378, 1.3, 1.9, 1.7


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions of the atoms that form hydrogen bonds.

    Parameters
    ----------
    rows : (n,) int64
        Indices of the atoms in the receptor.
    kinds : (n,) int64
        Kind of each atom: DONOR, ONE_PAIR or TWO_PAIRS.
    directions, normals : (n, 3) float64
        Unit vectors along the bond and across the plane of lone pairs; 0 if no neighbours define them.
    powers : (n,) float64
        Power of the cosine at a hydrogen: 2 on nitrogen, 4 on oxygen and sulfur.
    """

    rows: NDArray[np.int64]
    kinds: NDArray[np.int64]
    directions: Floats
    normals: Floats
    powers: Floats


@dataclass(frozen=True, eq=False)
class Wells:
    """Hydrogen bonds of P probes with atoms of T types.

    Parameters
    ----------
    distances, depths : (P, T) float64, A and kcal/mol
        Positions and depths of the wells of each probe and type.
    extremes : (P,) bool
        Whether a probe's energy is the sum of its lowest and highest pair energy, instead of the sum of all.
    smooth : float, A
        Largest change of a distance towards the minimum of the well: the energy at the changed distance counts.
    cap : float, kcal/mol
        Largest energy of a pair.
    cutoff : float, A
    """

    distances: Floats
    depths: Floats
    extremes: NDArray[np.bool_]
    smooth: float
    cap: float
    cutoff: float


def bond_energies(engine: Engine, lattice: Lattice, positions: Floats, types: NDArray[np.int64], bonding: Directions,
                  wells: Wells) -> Floats:
    """Return the energies (P, nx, ny, nz), kcal/mol, of probes on a lattice.

    Parameters
    ----------
    engine : Engine
    lattice : Lattice
    positions : (N, 3) float64, A
        Positions of the receptor's atoms.
    types : (N,) int64
        Column of each atom in the tables of `wells`.
    bonding : Directions
        Either all or none of the atoms that form hydrogen bonds are donors.
    wells : Wells
    """
    (probes, kinds), atoms = wells.distances.shape, len(bonding.rows)
    with engine.room(8 * probes * lattice.size + 120 * atoms):
        out = engine.empty((probes, *lattice.shape), np.float64)
        engine.launch(
            KERNELS["sum_bonds"], lattice.size, "hydrogen bonds", lattice.shape[1] * lattice.shape[2],
            positions=positions[bonding.rows], directions=bonding.directions, normals=bonding.normals,
            powers=bonding.powers, kinds=bonding.kinds, types=types[bonding.rows], distances=wells.distances,
            depths=wells.depths, extremes=wells.extremes, out=out, origin=lattice.origin, spacing=lattice.spacing,
            smooth=wells.smooth, cap=wells.cap, cutoff=wells.cutoff, shape=lattice.shape, atoms=atoms, probes=probes,
            type_count=kinds)
        return cast(Floats, engine.to_host(out))


def directions(positions: Floats, types: Sequence[str], kinds: NDArray[np.int64]) -> Directions:
    """Return the directions of a receptor's atoms.

    Parameters
    ----------
    positions : (N, 3) float64, A
    types : sequence of str
        AutoDock's atom types.
    kinds : (N,) int64
        Kind of an atom that forms hydrogen bonds; negative for others.
    """
    from scipy.spatial import cKDTree

    rows = np.flatnonzero(kinds >= 0)
    pairs = cKDTree(positions).query_pairs(max(_DONOR_HYDROGEN, _HYDROGEN, _BY_OXYGEN, _BY_OTHERS),
                                           output_type="ndarray")
    near_by: dict[int, list[tuple[int, float]]] = {}
    for (first, second), distance in zip(pairs.tolist(), np.linalg.norm(
            positions[pairs[:, 0]] - positions[pairs[:, 1]], axis=1).tolist(), strict=True):
        near_by.setdefault(first, []).append((second, distance))
        near_by.setdefault(second, []).append((first, distance))
    hydrogen = np.isin(types, ["H", "HD"]).tolist()
    # each direction is from a start to an end; planes are given by the row of their atom and two of its neighbours
    ends, starts, powers = positions[rows].copy(), positions[rows].copy(), np.full(len(rows), 2.0)
    by_carbonyl: list[tuple[int, int, int]] = []
    between: list[tuple[int, int, int]] = []

    def neighbours(atom: int, heavy: float, light: float) -> list[int]:
        return sorted(n for n, distance in near_by.get(atom, ()) if distance < (light if hydrogen[n] else heavy))

    for row, (atom, kind) in enumerate(zip(rows.tolist(), kinds[rows].tolist(), strict=True)):
        if kind == DONOR:
            near = neighbours(atom, _DONOR_HYDROGEN, _DONOR_HYDROGEN)
            if near:
                starts[row] = positions[near[0]]
                powers[row] = 4.0 if types[near[0]] in ("OA", "SA") else 2.0
            continue
        near = neighbours(atom, _BY_OXYGEN if kind == TWO_PAIRS else _BY_OTHERS, _HYDROGEN)[:3]
        if kind == TWO_PAIRS and len(near) == 2:
            between.append((row, near[0], near[1]))
        elif near:
            starts[row] = positions[near[0]] if len(near) == 1 else positions[near].mean(0)
            others = [n for n in neighbours(near[0], _BY_OTHERS, _HYDROGEN) if n != atom]
            if kind == TWO_PAIRS and len(near) == 1 and others:
                by_carbonyl.append((row, near[0], others[0]))
    along, normal = _unit(ends - starts), np.zeros((len(rows), 3))
    if by_carbonyl:
        selected, carbon, other = np.array(by_carbonyl).T
        normal[selected] = _unit(np.cross(along[selected], positions[other] - positions[carbon]))
    if between:
        # the plane of the lone pairs is perpendicular to the line between the neighbours
        selected, first, second = np.array(between).T
        axis = normal[selected] = _unit(positions[second] - positions[first])
        from_first = ends[selected] - positions[first]
        along[selected] = _unit(from_first - (from_first * axis).sum(1, keepdims=True) * axis)
    return Directions(rows, kinds[rows].astype(np.int64), along, normal, powers)


def _unit(vectors: Floats) -> Floats:
    """Return vectors (n, 3) divided by their lengths; those of length 0 unchanged."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 0, length, 1.0)
