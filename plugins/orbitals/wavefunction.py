"""Wave functions of quantum chemistry: nuclei, shells, orbitals and their occupations."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError, UsageError
from vmdpotential.molecule.structure import Structure

from ..formats.nuclei import from_nuclei
from .shells import Shell

#: Largest deviation from an integer of an occupation that counts as integral.
_INTEGRAL = 1e-3

_NAME = re.compile(r"(homo|lumo)(?:([+-])(\d{1,6}))?|(\d{1,9})")


@dataclass(frozen=True, eq=False)
class Channel:
    """Orbitals of one spin, or of both spins in a restricted calculation.

    Parameters
    ----------
    coefficients : (F, O) float64
        Coefficients of the basis functions, in the order of the shells.
    occupations : (O,) float64
    energies : (O,) float64, hartree, or None
    """

    coefficients: Floats
    occupations: Floats
    energies: Floats | None


@dataclass(frozen=True, eq=False)
class Wavefunction:
    """Orbitals of a molecule in a basis of Gaussians.

    Parameters
    ----------
    name : str
        Name of the file.
    numbers : (N,) int64
        Atomic numbers.
    positions : (N, 3) float64, A
    shells : tuple of Shell
    alpha, beta : Channel
        Orbitals of each spin, with occupations of 0 to 1.
    restricted : bool
        Whether both spins have the same orbitals.
    cores : (N,) float64, e, or None
        Charges of the nuclei less the core electrons that pseudopotentials replace; None for the atomic numbers.
    """

    name: str
    numbers: NDArray[np.int64]
    positions: Floats
    shells: tuple[Shell, ...]
    alpha: Channel
    beta: Channel
    restricted: bool
    cores: Floats | None = None

    @property
    def nuclear_charges(self) -> Floats:
        """(N,) charges of the nuclei, e, less the core electrons that pseudopotentials replace."""
        return self.numbers.astype(np.float64) if self.cores is None else self.cores

    @property
    def electrons(self) -> float:
        """Number of electrons in the orbitals of the file."""
        return float(self.alpha.occupations.sum() + self.beta.occupations.sum())

    def structure(self) -> Structure:
        """Return the nuclei as a structure of one residue."""
        return from_nuclei(self.numbers, self.positions, self.name)

    def occupied(self, sign: float = 1.0) -> tuple[Floats, Floats]:
        """Return the orbitals' coefficients (B, N) and occupations (N,), with a factor on those of beta electrons."""
        alpha, beta = self.alpha, self.beta
        if self.restricted:
            return alpha.coefficients, alpha.occupations + sign * beta.occupations
        return (np.hstack([alpha.coefficients, beta.coefficients]),
                np.concatenate([alpha.occupations, sign * beta.occupations]))

    def channel(self, spin: str) -> Channel:
        """Return the orbitals of a spin, ``alpha`` or ``beta``; if restricted, those of both with total occupations."""
        if self.restricted:
            both = self.alpha.occupations + self.beta.occupations
            return Channel(self.alpha.coefficients, both, self.alpha.energies)
        return self.alpha if spin == "alpha" else self.beta

    def find(self, name: str, spin: str = "alpha") -> int:
        """Return the index of an orbital that is given by a name such as ``homo`` or ``lumo+1``, or a number from 1.

        Raises
        ------
        UsageError
            If the name is not valid, or the orbital does not exist.
        InputError
            If homo and lumo are not defined, because occupations are not integers.
        """
        match, orbitals = _NAME.fullmatch(name.strip().lower()), self.channel(spin)
        count = len(orbitals.occupations)
        if match is None:
            raise UsageError("orbital", "give homo, lumo, homo-1, lumo+2 ..., or a number from 1", value=name)
        if match[4]:
            if not 1 <= int(match[4]) <= count:
                raise UsageError("orbital", f"{self.name} has orbitals 1 to {count}", value=name)
            return int(match[4]) - 1
        if np.abs(orbitals.occupations - np.rint(orbitals.occupations)).max() > _INTEGRAL:
            raise InputError(f"{self.name}: has fractional occupations, so that its {match[1]} is not defined",
                             "give the number of an orbital as {orbital}")
        energies = np.arange(count) if orbitals.energies is None else orbitals.energies
        order = np.lexsort((np.arange(count), energies))
        occupied = orbitals.occupations[order] > 0.5
        ranks = np.flatnonzero(occupied if match[1] == "homo" else ~occupied)
        rank = -1 if not len(ranks) else int(ranks[-1] if match[1] == "homo" else ranks[0])
        steps = int(match[2] + match[3]) if match[3] else 0
        if rank < 0 or not 0 <= rank + steps < count:
            raise UsageError("orbital", f"{self.name} has no such orbital among its {count}", value=name)
        return int(order[rank + steps])
