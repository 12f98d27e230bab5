"""Structures of atoms of which only the nuclei are known, as in files of quantum chemistry programs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from vmdpotential.molecule.structure import Structure


def from_nuclei(numbers: ArrayLike, positions: ArrayLike, source: str) -> Structure:
    """Return a structure of one residue.

    Parameters
    ----------
    numbers : (N,) int
        Atomic numbers; others than those of elements are sites without one.
    positions : (N, 3) float64, A
    source : str
        Name of the file.
    """
    import gemmi

    elements = [gemmi.Element(n).name if 0 < n <= 118 else "X" for n in np.asarray(numbers).tolist()]
    count = len(elements)
    return Structure(
        positions=np.asarray(positions, np.float64).reshape(count, 3),
        atom_names=np.array([f"{e}{n + 1}" for n, e in enumerate(elements)], np.str_),
        residue_names=np.full(count, "MOL"), residue_ids=np.ones(count, np.int64),
        residue_index=np.zeros(count, np.int64),
        elements=np.array(["" if e == "X" else e for e in elements], np.str_), hetero=np.ones(count, bool),
        sources=(source,))
