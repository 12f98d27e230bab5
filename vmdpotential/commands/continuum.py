"""What commands report of a molecule in a continuum."""

from __future__ import annotations

from typing import Any

import numpy as np

from vmdpotential.commands.between import label
from vmdpotential.grid.solvation import Solvation
from vmdpotential.molecule.structure import Structure

#: Residues that the report of a solvation energy names.
RESIDUES = 5


def solvation_lines(solvation: Solvation, structure: Structure) -> list[str]:
    """Return the energy of solvation in words: in total, and of the residues with the largest ones."""
    by_residue, starts = solvation.by_residue(structure), structure.residue_starts
    largest = [n for n in np.argsort(-abs(by_residue))[:RESIDUES] if by_residue[n]]
    named = ", ".join(f"{label(structure, int(starts[n]), True)} {by_residue[n]:.1f}" for n in largest)
    return [f"electrostatic solvation energy {solvation.total:.2f} kcal/mol (error {solvation.error:.2g})",
            *([f"residues that contribute most, kcal/mol: {named}"] if structure.residue_count > 1 else [])]


def solvation_data(solvation: Solvation, structure: Structure) -> dict[str, Any]:
    """Return the energy of solvation as plain data, kcal/mol: in total, by residue and by atom."""
    starts = structure.residue_starts[:-1]
    return {"total": solvation.total, "error": solvation.error, "unit": "kcal/mol",
            "residues": [{"name": label(structure, int(n), True), "energy": energy}
                         for n, energy in zip(starts, solvation.by_residue(structure).tolist(), strict=True)],
            "atoms": solvation.energies.tolist()}
