"""Energies and distances of placed ions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vmdpotential.arrays import Floats, Integers

from .potential import quiet_sums
from .sites import CandidateSites, nearest_distances, shortest_repeat


@dataclass(frozen=True, eq=False)
class IonEnergies:
    """Energies and distances of K ions.

    Parameters
    ----------
    before : (K,) float64, e^2/A
        Energy with the solute, the existing ions and the ions before it in the list.
    final : (K,) float64, e^2/A
        Energy with the solute and all other ions.
    solute_distance, ion_distance : (K,) float64, A
        Shortest distance from the ion's atoms to images of solute atoms, and of atoms of other ions; inf if there are
        none.
    """

    before: Floats
    final: Floats
    solute_distance: Floats
    ion_distance: Floats


def ion_energies(candidates: CandidateSites, owner: Integers, positions: Floats, charges: Floats,
                 fixed: Floats) -> IonEnergies:
    """Return the energies and distances of ions.

    Parameters
    ----------
    candidates : Candidates
    owner : (A,) int64
        Ion to which each atom belongs, increasing: 0, 1, ...
    positions : (A, 3) float64, A
        Positions of the ions' atoms.
    charges : (A,) float64, e
    fixed : (A,) float64, e/A
        Potential of the solute and the existing ions at each atom.
    """
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    count = len(owner)
    if not count:
        return IonEnergies(*(np.zeros(0) for _ in range(4)))
    around, pair = candidates.around, candidates.pair
    cell = around.cell
    before, others = np.zeros(count), np.zeros(count)
    apart = np.minimum(nearest_distances(positions, around.ions, cell), shortest_repeat(cell))
    for atom in range(count):
        itself = slice(starts[owner[atom]], starts[owner[atom] + 1] if owner[atom] + 1 < len(starts) else count)
        d = positions - positions[atom]
        r = np.sqrt(((d if cell is None else cell.minimum_image(d)) ** 2).sum(1))
        r[itself] = np.inf
        apart[atom] = min(apart[atom], r.min())
        potential = np.zeros(count)
        with quiet_sums():
            pair.add(positions, positions[atom], float(charges[atom]), potential)
        potential[itself] = 0.0
        others += potential
        before[itself.stop :] += potential[itself.stop :]
    return IonEnergies(
        np.add.reduceat(charges * (fixed + before), starts), np.add.reduceat(charges * (fixed + others), starts),
        np.minimum.reduceat(nearest_distances(positions, around.solute, cell), starts),
        np.minimum.reduceat(apart, starts))
