"""Report on the completion of a structure: a table with a row for every residue, and a summary."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from vmdpotential.errors import listed_words
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.structure import Structure
from vmdpotential.results import TableColumns, Tabular

from .draft import CROWDED_NOTE, OVERBONDED_NOTE, UNUSUAL_NOTE
from .states import CHARGED_NOTE

#: Notes that the summary repeats, as the potential depends on them most.
DOUBTS = (UNUSUAL_NOTE, CROWDED_NOTE, OVERBONDED_NOTE, CHARGED_NOTE)
#: Columns of the table.
COLUMNS = ("chain", "residue", "number", "state", "pka", "net_charge", "charges", "added_atoms", "added_hydrogens",
           "kept_hydrogens", "note")


@dataclass(frozen=True)
class Row:
    """A residue's protonation state and pKa, its net charge (e) and the origin of its charges, and added atoms."""

    chain: str
    residue: str
    number: str
    state: str
    pka: float | None
    net_charge: float
    charges: str
    added_atoms: tuple[str, ...]
    added_hydrogens: int
    kept_hydrogens: int
    note: str = ""

    @property
    def label(self) -> str:
        """Name, number and chain: ``HIS64 A``."""
        return f"{self.residue}{self.number} {self.chain}".rstrip()

    def values(self) -> dict[str, Any]:
        """Return the columns by their names."""
        return {name: " ".join(self.added_atoms) if name == "added_atoms" else getattr(self, name) for name in COLUMNS}


@dataclass(frozen=True)
class PreparedStructure(Tabular):
    """A completed structure, and a report on its completion.

    Parameters
    ----------
    structure : Structure
        The completed structure with charges and radii; its `origins` relate its atoms to those of the input.
    charges : ChargeReport
        Origin of the charges.
    rows : list of Row
        The table, a row for each residue.
    gaps : list of str
        Chain breaks of proteins, which were capped.
    breaks : list of str
        Chain breaks of nucleic acids, which have no caps.
    ph : float
        The pH that determines protonation states.
    pka : str
        Origin of the pKa values, ``model`` or ``propka``.
    radii : str
        The set of radii, and elements that it does not have.
    left_out : dict
        Numbers of atoms that were left out, by a description of their kind.
    """

    structure: Structure
    charges: ChargeReport
    rows: list[Row]
    gaps: list[str]
    breaks: list[str]
    ph: float
    pka: str
    radii: str
    left_out: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Prepared({len(self.structure)} atoms, {self.summary()})"

    def table(self) -> TableColumns:
        """Return a row for each residue."""
        rows = [row.values() for row in self.rows]
        return {name: [row[name] for row in rows] for name in COLUMNS}

    @property
    def added(self) -> tuple[int, int]:
        """Numbers of added heavy atoms and hydrogens."""
        return sum(len(row.added_atoms) for row in self.rows), sum(row.added_hydrogens for row in self.rows)

    def summary(self) -> str:
        """Return a line such as ``prepared at pH 7: added 1,646 hydrogens and 4 heavy atoms; ...``."""
        heavy, hydrogens = self.added
        parts = [f"{hydrogens:,} hydrogen{'s' * (hydrogens != 1)}"]
        if heavy:
            parts.append(f"{heavy:,} heavy atom{'s' if heavy > 1 else ''}")
        text = f"prepared at pH {self.ph:g}: added {' and '.join(parts)}"
        if self.gaps:
            text += f"; {len(self.gaps)} gap{'s' if len(self.gaps) > 1 else ''} capped (ACE, NME or NH2)"
        if self.breaks:
            text += f"; {len(self.breaks)} gap{'s' if len(self.breaks) > 1 else ''} of nucleic acids"
        if self.charges.approximate:
            text += f"; approximate charges for {listed_words(self.charges.approximate, 80)}"
        for doubt in DOUBTS:
            count = sum(doubt in row.note for row in self.rows)
            text += f"; {doubt}: {count} residue{'s' * (count > 1)}" if count else ""
        if self.left_out:
            text += "; left out: " + ", ".join(
                f"{count} {what.replace('atoms', 'atom', 1) if count == 1 else what}"
                for what, count in self.left_out.items())
        return f"{text}; radii: {self.radii}"

    def lines(self) -> list[str]:
        """Return the lines of the report."""
        result = [self.summary()]
        states: dict[str, Counter[str]] = {}
        for row in self.rows:
            for word in row.state.split("+"):
                if word and not word.isdigit() and word not in ("N-terminus", "C-terminus"):
                    states.setdefault(row.residue, Counter())[word] += 1
        known = [f"{name}: {', '.join(f'{state} ({count})' for state, count in counts.items())}"
                 for name, counts in sorted(states.items()) if len(counts) > 1 or name not in counts]
        if known:
            result.append(f"states ({self.pka} pKa): {'; '.join(known)}")
        completed = [f"{row.label} ({len(row.added_atoms)})" for row in self.rows if row.added_atoms]
        if completed:
            result.append(f"completed residues (atoms added): {listed_words(completed, 300)}")
        if self.gaps:
            result.append(f"gaps, capped by NME or NH2, and ACE: {listed_words(self.gaps, 300)}")
        if self.breaks:
            result.append(f"gaps of nucleic acids, not capped: {listed_words(self.breaks, 300)}")
        notes = Counter(row.note for row in self.rows if row.note)
        for note in notes:
            result.append(f"{note}: {listed_words([row.label for row in self.rows if row.note == note], 200)}")
        return result

    @property
    def data(self) -> dict[str, Any]:
        """The report for programs (``--json``)."""
        heavy, hydrogens = self.added
        return {
            "ph": self.ph, "pka": self.pka, "added_heavy_atoms": heavy, "added_hydrogens": hydrogens,
            "gaps": [*self.gaps, *self.breaks], "left_out": dict(self.left_out), "radii": self.radii,
            "residues": [row.values() | {"added_atoms": list(row.added_atoms)} for row in self.rows],
        }
