"""pKa values of a structure's residues by PROPKA.

M. H. M. Olsson, C. R. Sondergaard, M. Rostkowski, J. H. Jensen, J. Chem. Theory Comput. 7, 2011, 525.
"""

from __future__ import annotations

import io
import logging
import string
from collections.abc import Sequence

from vmdpotential.errors import TaskError, one_line, shorten_text
from vmdpotential.extras import load_optional
from vmdpotential.molecule.names import WATER_RESIDUES
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.user_charges import ResidueCharges

from .components import AMINO_ACIDS
from .draft import Draft

#: Names of chains, and the largest number of a residue in one, in a PDB file.
_LAST = 9999
_LETTERS = string.ascii_uppercase + string.ascii_lowercase + string.digits


def propka_values(structure: Structure, draft: Draft,
                  charges: Sequence[ResidueCharges] = ()) -> dict[tuple[int, str], float]:
    """Return pKa values by residue index and group (ASP, GLU, HIS, CYS, TYR, LYS, ARG, N+, C-).

    Raises
    ------
    BackendError
        When PROPKA is not installed.
    TaskError
        When PROPKA cannot read the structure.
    """
    run = load_optional("propka.run", "pKa values", "prepare")
    text, rows = _records(structure, draft)
    logger = logging.getLogger("propka")
    level, logger.level = logger.level, logging.CRITICAL
    try:
        molecule = run.single("structure.pdb", optargs=["-q"], stream=io.StringIO(text), write_pka=False)
        groups = molecule.conformations["AVR"].groups
    except (Exception, SystemExit) as error:  # PROPKA has no error class of its own
        reason = shorten_text(one_line(str(error)), 120)
        raise TaskError(f"{structure.where}: PROPKA failed ({type(error).__name__}: {reason})",
                        "use {pka model}") from None
    finally:
        logger.setLevel(level)
    result = {}
    for group in groups:
        row = rows.get((group.atom.chain_id, group.atom.res_num))
        name = group.residue_type.strip()
        if row is not None and group.pka_value is not None and (name in AMINO_ACIDS or name in ("N+", "C-")):
            result[row, name] = float(group.pka_value)
    return result


def _records(structure: Structure, draft: Draft) -> tuple[str, dict[tuple[str, int], int]]:
    """Return the heavy atoms, without waters, as text of a PDB file, and residue indices by chain and number in it."""
    lines: list[str] = []
    rows: dict[tuple[str, int], int] = {}
    starts = draft.starts.tolist()
    chains: dict[str, str] = {}
    number: dict[str, int] = {}
    for n, residue in enumerate(draft.residues):
        name = residue.component.name if residue.component is not None else residue.name
        if name.upper() in WATER_RESIDUES:
            continue
        key = f"{structure.chain_ids[residue.source]}/{structure.segment_ids[residue.source]}"
        if number.get(chains.get(key, ""), _LAST) == _LAST:  # a new chain, or one with more residues than four digits
            roomy = [name for name in _LETTERS if number.get(name, 0) < _LAST]
            if not roomy:
                raise TaskError(f"{structure.where}: has more residues than input of PROPKA can number",
                                "use {pka model}")
            chains[key] = min(roomy, key=lambda name: number.get(name, 0))
        letter = chains[key]
        number[letter] = number.get(letter, 0) + 1
        rows[letter, number[letter]] = n
        record = "ATOM  " if name in AMINO_ACIDS else "HETATM"
        for k in range(starts[n], starts[n + 1]):
            atom, element = str(draft.names[k])[:4], str(draft.elements[k]).upper()
            written = atom if len(atom) == 4 or len(element) == 2 else f" {atom}"
            x, y, z = draft.positions[k]
            lines.append(f"{record}{len(lines) % 99999 + 1:5d} {written:<4} {name[:3]:>3} {letter}"
                         f"{number[letter]:4d}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00          {element:>2}")
    return "\n".join([*lines, "END", ""]), rows
