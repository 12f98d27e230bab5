"""Charges from a user's files for residues without templates, matched by the names of residues and atoms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from vmdpotential.errors import ChargeError
from vmdpotential.molecule.templates import TemplateMatch, TemplateMiss


@dataclass(frozen=True)
class MoleculeOfFile:
    """Atoms and bonds of a molecule in a file (SDF, MOL2).

    Parameters
    ----------
    names, elements : tuple of str
        Names and elements of the atoms.
    formal : tuple of int
        Formal charges, e.
    bonds : tuple of (int, int, int)
        Two atoms and the order of their bond, see :mod:`~vmdpotential.molecule.gasteiger`.
    """

    names: tuple[str, ...]
    elements: tuple[str, ...]
    formal: tuple[int, ...]
    bonds: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class ResidueCharges:
    """Charges of the atoms of a residue, as read from a file.

    Parameters
    ----------
    residue : str
        Name of the residue.
    charges : dict
        Charges, e, by atom name.
    source : str
        Name of the file, for reports.
    short : str
        Name of the residue without a number at its end, if the file may have appended one (``LIG1``).
    molecule : Molecule, optional
        Atoms and bonds, if the file has bonds.
    """

    residue: str
    charges: dict[str, float]
    source: str
    short: str = ""
    molecule: MoleculeOfFile | None = None


@dataclass
class UserCharges:
    """Charges of all residues in a user's files, and the number of residues to which each was assigned.

    Parameters
    ----------
    residues : sequence of ResidueCharges
        Charges of residues; those with the same name are different forms, with different atoms.
    used : Counter
        Number of residues that got the charges of each item of `residues`, by its index.

    Raises
    ------
    ChargeError
        When two residues have the same name and atoms but different charges.
    """

    residues: Sequence[ResidueCharges] = ()
    used: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._forms: dict[str, dict[frozenset[str], int]] = {}
        names = {item.residue.upper() for item in self.residues}
        for n, residue in enumerate(self.residues):
            forms = self._forms.setdefault(residue.residue.upper(), {})
            if residue.short and residue.short.upper() not in names:
                self._forms[residue.short.upper()] = forms
            atoms = frozenset(name.upper() for name in residue.charges)
            other = self.residues[forms.setdefault(atoms, n)]
            if other.charges != residue.charges:
                raise ChargeError(f"{residue.source} and {other.source} give different charges for the same atoms of "
                                  f"{residue.residue}", "leave one of them out")

    def __bool__(self) -> bool:
        return bool(self.residues)

    def match(self, residue_name: str, atom_names: Sequence[str], count: int) -> TemplateMatch | TemplateMiss | None:
        """Return the charges of `count` equal residues, or how their atoms differ; None for an unknown residue."""
        forms = self._forms.get(residue_name.upper())
        if forms is None:
            return None
        names = [name.upper() for name in atom_names]
        result = forms.get(frozenset(names))
        if result is None or len(set(names)) < len(names):
            nearest = min(forms, key=lambda atoms: len(atoms.symmetric_difference(names)))
            twice = {name for name, times in Counter(names).items() if times > 1}
            residue = self.residues[forms[nearest]]
            lacking = tuple(name for name in residue.charges if name.upper() not in names)
            extra = tuple(name for name in atom_names if name.upper() not in nearest or name.upper() in twice)
            return TemplateMiss(extra, lacking, file=residue.source)
        self.used[result] += count
        charges = {name.upper(): charge for name, charge in self.residues[result].charges.items()}
        return TemplateMatch(residue_name, tuple(charges[name] for name in names), file=self.residues[result].source)

    def described(self) -> list[str]:
        """Return a line for each form that was used: its file, number of residues and net charge."""
        return [f"{residue.residue} from {residue.source} ({_times(self.used[n])}, "
                f"net charge {net_text(residue.charges.values())})"
                for n, residue in enumerate(self.residues) if self.used[n]]

    def unused(self) -> list[str]:
        """Return the names of residues whose charges were not used, as the structure does not have them."""
        used = {self.residues[n].residue for n in self.used}
        return [name for name in dict.fromkeys(item.residue for item in self.residues) if name not in used]


def _times(count: int) -> str:
    return f"{count} residue{'s' if count > 1 else ''}"


def net_text(charges: Iterable[float]) -> str:
    """Return the sum of charges as text, such as ``+1 e`` or ``-0.998 e``."""
    net = round(sum(charges), 4) + 0.0
    return f"{net:+g} e" if net else "0 e"
