"""The planes of a membrane across z: from the marks of a file, or from its lipids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError
from vmdpotential.molecule.names import DUMMY_RESIDUES
from vmdpotential.molecule.selection import is_lipid
from vmdpotential.molecule.structure import Structure

#: Longest bond of a carbon in a lipid to carbon, oxygen or nitrogen, A.
BOND = 1.75

#: Smallest number of lipids of a leaflet whose mean height is that of a plane.
FEWEST = 3

#: Largest deviation of marks from their plane, A, and standard deviation of a leaflet's atoms over the thickness.
FLAT, SPREAD = 0.5, 0.35

#: What to do where no planes are found.
REMEDY = "give the thickness and the centre in A, such as {set membrane=30,membrane_centre=0}"


class MembranePlanes(NamedTuple):
    """Heights of the two planes of a membrane, A, and the atoms that they are from."""

    low: float
    high: float
    source: str
    #: Whether the atoms are those of lipids, which the membrane replaces.
    of_lipids: bool = False

    def __str__(self) -> str:
        return f"z = {self.low:.1f} and {self.high:.1f} A, from {self.source}"


def membrane_planes(structure: Structure) -> MembranePlanes:
    """Return the planes of the membrane around a structure.

    They are those of the file's marks, as in the OPM database (residues DUM), also if `prepare` left these out; or the
    mean heights of two leaflets of lipids: of the first carbons of the chains, next to the ester groups, where the
    hydrocarbon begins; or if there are none, of the phosphates.

    Raises
    ------
    InputError
        For a structure without marks and lipids, or where they are not two planes across z.
    """
    marks = np.isin(structure.residue_names, list(DUMMY_RESIDUES))
    planes = marked_planes(structure.positions[marks]) if marks.any() else structure.planes
    if planes is not None:
        return MembranePlanes(*planes, "marks of the file (residues DUM)")
    if marks.any():
        raise InputError(f"{structure.where}: the marks of its membrane (residues DUM) are not in two planes across z",
                         REMEDY)
    lipids = np.flatnonzero(is_lipid(structure))
    if not len(lipids):
        raise InputError(f"{structure.where}: has neither marks of a membrane (residues DUM) nor lipids", REMEDY)
    atoms = structure.take(lipids)
    phosphates = np.flatnonzero((atoms.elements == "P") | np.isin(atoms.atom_names, ("P", "PO4")))
    for chosen, source in ((_first_of_chains(atoms), "carbons next to the esters"), (phosphates, "phosphates")):
        found = _leaflets(atoms, chosen)
        if found is not None:
            return MembranePlanes(*found, f"{len(chosen)} {source} of the lipids", True)
    raise InputError(f"{structure.where}: its lipids are not two flat leaflets across z", REMEDY)


def marked_planes(marks: Floats) -> tuple[float, float] | None:
    """Return the heights of the two planes across z of marks (M, 3), A; None if they are not in two such planes."""
    z = marks[:, 2]
    upper = z > 0.5 * (z.min(initial=np.inf) + z.max(initial=-np.inf)) if len(z) else np.zeros(0, bool)
    if not upper.any() or any(np.ptp(z[side]) > 2 * FLAT for side in (upper, ~upper)):
        return None
    return float(z[~upper].mean()), float(z[upper].mean())


def _first_of_chains(atoms: Structure) -> NDArray[np.int64]:
    """Return the carbons next to the carbon of an ester group: those with hydrocarbon neighbours only, but for it."""
    from scipy.spatial import cKDTree

    heavy = np.flatnonzero(np.isin(atoms.elements, ["C", "O", "N", "P", "S"]))
    if not len(heavy):
        return heavy
    a, b = cKDTree(atoms.positions[heavy]).query_pairs(BOND, output_type="ndarray").T
    same = atoms.residue_index[heavy[a]] == atoms.residue_index[heavy[b]]
    pairs = np.concatenate([np.stack([a, b], 1)[same], np.stack([b, a], 1)[same]])
    elements = atoms.elements[heavy]
    carbon, oxygen = elements == "C", elements == "O"
    count = len(heavy)
    oxygens = np.bincount(pairs[oxygen[pairs[:, 1]], 0], minlength=count)
    others = np.bincount(pairs[~carbon[pairs[:, 1]], 0], minlength=count)
    ester = carbon & (oxygens == 2)
    beside = np.bincount(pairs[ester[pairs[:, 1]], 0], minlength=count)
    result: NDArray[np.int64] = heavy[carbon & (others == 0) & (beside == 1)]
    return result


def _leaflets(atoms: Structure, chosen: NDArray[np.int64]) -> tuple[float, float] | None:
    """Return the mean heights of chosen atoms of lipids in both leaflets; None if they are not two layers."""
    if len(chosen) < 2 * FEWEST:
        return None
    # heads are above the rest of their lipids in the upper leaflet
    count = atoms.residue_index.max() + 1
    sizes = np.bincount(atoms.residue_index, minlength=count)
    middles = np.bincount(atoms.residue_index, atoms.positions[:, 2], count) / np.maximum(sizes, 1)
    z, owners = atoms.positions[chosen, 2], atoms.residue_index[chosen]
    heads = np.bincount(owners, z, count) / np.maximum(np.bincount(owners, minlength=count), 1)
    upper = (heads > middles)[owners]
    if min(upper.sum(), (~upper).sum()) < FEWEST:
        return None
    low, high = float(z[~upper].mean()), float(z[upper].mean())
    if high <= low or max(z[upper].std(), z[~upper].std()) > SPREAD * (high - low):
        return None
    return low, high
