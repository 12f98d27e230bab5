"""Report lines and data of an electrostatic solvation energy."""

from __future__ import annotations

from typing import Any

import numpy as np

from vmdpotential.grid.solvation import Solvation
from vmdpotential.molecule.structure import Structure, atom_label

#: Number of residues that the report of a solvation energy lists.
RESIDUES = 5


def solvation_lines(solvation: Solvation, structure: Structure) -> list[str]:
    """Return the report of a solvation energy: the total, and the residues that contribute most."""
    by_residue, starts = solvation.by_residue(structure), structure.residue_starts
    largest = [n for n in np.argsort(-abs(by_residue))[:RESIDUES] if by_residue[n]]
    names = ", ".join(f"{atom_label(structure, int(starts[n]), True)} {by_residue[n]:.1f}" for n in largest)
    ions = f", of which {solvation.ions:.2f} is that of the ions" if solvation.ions else ""
    return [f"electrostatic solvation energy {solvation.total:.2f} kcal/mol (error {solvation.error:.2g}){ions}",
            *([f"residues that contribute most, kcal/mol: {names}"] if structure.residue_count > 1 else [])]


def solvation_data(solvation: Solvation, structure: Structure) -> dict[str, Any]:
    """Return the solvation energy as plain data, kcal/mol: in total, by residue and by atom."""
    starts = structure.residue_starts[:-1]
    return {"total": solvation.total, "error": solvation.error, "unit": "kcal/mol",
            "ions": solvation.ions,
            "residues": [{"name": atom_label(structure, int(n), True), "energy": energy}
                         for n, energy in zip(starts, solvation.by_residue(structure).tolist(), strict=True)],
            "atoms": solvation.energies.tolist()}
