"""Charges that a user gives for residues that no template knows: matched by the names of residues and atoms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from vmdpotential.errors import ChargeError
from vmdpotential.molecule.templates import Match, Miss


@dataclass(frozen=True)
class Molecule:
    """Atoms and bonds of a file (SDF, MOL2).

    Parameters
    ----------
    names, elements : tuple of str
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
    """Charges of the atoms of a residue, as a file states them.

    Parameters
    ----------
    residue : str
        Its name.
    charges : dict
        By the names of atoms, e.
    source : str
        The file, for reports.
    short : str
        Its name without its number, where the file may have joined them (``LIG1``).
    molecule : Molecule, optional
        Its atoms and bonds, where the file states them.
    """

    residue: str
    charges: dict[str, float]
    source: str
    short: str = ""
    molecule: Molecule | None = None


@dataclass
class Given:
    """All residues that files give charges for.

    Parameters
    ----------
    residues : sequence of ResidueCharges
        Several of one name are its forms, of different atoms.

    Raises
    ------
    ChargeError
        When two of a name have the same atoms and different charges.
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

    def match(self, residue_name: str, atom_names: Sequence[str], count: int) -> Match | Miss | None:
        """Return the charges of a residue, what its atoms and those given differ in, or None where none are given.

        `count` residues have these atoms.
        """
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
            return Miss(extra, lacking, given=residue.source)
        self.used[result] += count
        charges = {name.upper(): charge for name, charge in self.residues[result].charges.items()}
        return Match(residue_name, tuple(charges[name] for name in names), given=self.residues[result].source)

    def described(self) -> list[str]:
        """Return of each residue that was found where its charges are from, how many there are, and the net charge."""
        return [f"{residue.residue} from {residue.source} ({_times(self.used[n])}, "
                f"net charge {net_text(residue.charges.values())})"
                for n, residue in enumerate(self.residues) if self.used[n]]

    def unused(self) -> list[str]:
        """Return the names of residues that the structure does not have."""
        result = {self.residues[n].residue for n in self.used}
        return [name for name in dict.fromkeys(item.residue for item in self.residues) if name not in result]


def _times(count: int) -> str:
    return f"{count} residue{'s' if count > 1 else ''}"


def net_text(charges: Iterable[float]) -> str:
    """Return the sum of charges, ``+1 e`` or ``-0.998 e``."""
    net = round(sum(charges), 4) + 0.0
    return f"{net:+g} e" if net else "0 e"
