"""Contacts of side chains with metals and with donors and acceptors of hydrogen bonds."""

from __future__ import annotations

import numpy as np

from vmdpotential.molecule.structure import Floats, Integers

from .components import AMINO_ACIDS
from .draft import METAL_ELEMENTS, Draft

#: Largest distances, A: of a metal from a nitrogen or sulphur that coordinates it, between the heavy atoms of a
#: hydrogen bond, and of atoms that influence the choice between tautomers.
COORDINATED, BOND, REACH = 2.9, 3.5, 4.2
#: Smallest difference of scores that decides between two choices: half of a good hydrogen bond.
CLEAR_DIFFERENCE = 0.5
#: Carbon, oxygen and nitrogen of the side chains' amide groups.
_AMIDES = {"ASN": ("CG", "OD1", "ND2"), "GLN": ("CD", "OE1", "NE2")}
_RING = ("CG", "CE1", "CD2", "ND1", "NE2")


class Contacts:
    """Search for metals, nitrogens and oxygens near the atoms of a draft, and scores of hydrogen bonds with them."""

    def __init__(self, draft: Draft) -> None:
        from scipy.spatial import cKDTree

        self.draft = draft
        self.metals = np.isin(draft.elements, list(METAL_ELEMENTS))
        polar = np.flatnonzero(np.isin(draft.elements, ["N", "O"]) | self.metals)
        self.rows = polar
        self.tree = cKDTree(draft.positions[polar]) if len(polar) else None

    def near(self, atom: int, distance: float) -> Integers:
        """Return the indices of metals, nitrogens and oxygens of other residues within a distance (A) of an atom."""
        if self.tree is None:
            return np.zeros(0, np.int64)
        result = self.rows[self.tree.query_ball_point(self.draft.positions[atom], distance)]
        return np.asarray(result[self.draft.residue[result] != self.draft.residue[atom]], np.int64)

    def metal(self, atom: int) -> bool:
        """Return whether an atom coordinates a metal."""
        return bool(self.metals[self.near(atom, COORDINATED)].any())

    def score(self, atom: int, behind: Floats, reach: float = REACH) -> float:
        """Return a score for a hydrogen on an atom: about 1 for each acceptor in front of it, and -1 for each donor.

        Parameters
        ----------
        atom : int
            Index of the atom.
        behind : (3,) float64, A
            Position behind the atom, opposite to the direction of the hydrogen.
        reach : float, A
            Largest distance of the acceptors and donors.
        """
        return sum(weight * _accepts(str(self.draft.names[row]), self._name(row))
                   for row, weight in self._weights(atom, behind, reach))

    def _weights(self, atom: int, behind: Floats, reach: float) -> list[tuple[int, float]]:
        """Return the polar atoms in front of an atom, and weights: 1 at 2.9 A straight ahead, less farther away."""
        place = self.draft.positions[atom]
        outwards = place - behind
        outwards = outwards / max(float(np.linalg.norm(outwards)), 1e-6)
        result = []
        for row in self.near(atom, reach).tolist():
            vector = self.draft.positions[row] - place
            length = float(np.linalg.norm(vector))
            aligned = float(vector @ outwards) / length
            if aligned >= 0.5:
                result.append((row, aligned * (REACH + 0.3 - length) / (REACH + 0.3 - 2.9)))
        return result

    def _name(self, row: int) -> str:
        return str(self.draft.residues[self.draft.residue[row]].name).upper()

    def flipped(self, residue: str, place: dict[str, int]) -> bool:
        """Return whether the end of ASN, GLN or HIS has better contacts if it is flipped by 180 degrees.

        Electron densities do not distinguish the atoms that a flip exchanges (J. M. Word, S. C. Lovell, J. S.
        Richardson, D. C. Richardson, J. Mol. Biol. 285, 1999, 1735).
        """
        positions = self.draft.positions
        if residue in _AMIDES:
            centre, oxygen, nitrogen = _AMIDES[residue]
            if not {centre, oxygen, nitrogen} <= place.keys():
                return False
            behind = positions[place[centre]]
            fits = self.score(place[nitrogen], behind, BOND) - self.score(place[oxygen], behind, BOND)
            return fits < -2 * CLEAR_DIFFERENCE
        if residue != "HIS" or not set(_RING) <= place.keys():
            return False
        behind = positions[[place[name] for name in _RING]].mean(0)
        nitrogens, carbons = (
            sum(weight for name in names for row, weight in self._weights(place[name], behind, BOND)
                if self._name(row) != "HOH")
            for names in (("ND1", "NE2"), ("CD2", "CE1")))
        return carbons > nitrogens + 2 * CLEAR_DIFFERENCE


def _accepts(atom: str, residue: str) -> float:
    """Return 1 for an acceptor of hydrogen bonds, -1 for a donor, and 0 for an atom that can be either."""
    if atom.startswith("O"):
        return 0.0 if (atom, residue) in (("OG", "SER"), ("OG1", "THR"), ("OH", "TYR"), ("O", "HOH")) else 1.0
    if residue in ("HIS", "HSD", "HSE", "HID", "HIE") and atom in ("ND1", "NE2"):
        return 0.0
    return -1.0 if residue in AMINO_ACIDS else 0.0
