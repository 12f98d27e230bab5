"""How much farther than the cutoff pairs must be listed: the energy that a list of some age misses.

S. Pall, B. Hess, "A flexible algorithm for calculating pair interactions on SIMD architectures", Comput. Phys. Commun.
184 (2013) 2641-2650, appendix. Two atoms that were farther apart than the list's radius when it was made may have come
within the cutoff. Free flight by thermal velocities makes the distance between them change by a normal distribution of
variance kT t^2 (1/m_i + 1/m_j), and the potential is expanded to third order around the cutoff, where it is taken to
be zero: a shift does no work. Collisions and constraints only slow atoms down, so that this is an upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import numpy as np
from numpy.typing import NDArray

from vmdpotential import units
from vmdpotential.engines.pairs import Atoms
from vmdpotential.errors import TaskError, UsageError
from vmdpotential.interactions.pairs import PairPotential
from vmdpotential.interactions.tracing import evaluate_all

Floats = NDArray[np.float64]

#: Variance of a velocity of 1 u at 1 K, A^2/fs^2.
THERMAL = units.BOLTZMANN * units.AVOGADRO * 1e3 * (1e-15 / units.ANGSTROM) ** 2
#: kcal/mol of kT at 1 K.
GAS_CONSTANT = units.BOLTZMANN * units.AVOGADRO / (1000 * units.CALORIE)


@dataclass(frozen=True, eq=False)
class Kinds:
    """Atoms that a potential does not tell apart, with what the estimate takes of their pairs.

    Parameters
    ----------
    weight : (K, K) float64, 1/A^3
        Share of the atoms of the first kind times the density of the second.
    spread : (K, K) float64, A^2/fs^2
        Variance of the relative velocity along the line between them.
    derivatives : (3, K, K) float64
        First to third derivative of the energy at the cutoff, kcal/mol/A^n.
    cutoff : float, A
    """

    weight: Floats
    spread: Floats
    derivatives: Floats
    cutoff: float

    @classmethod
    def of(cls, potential: PairPotential, atoms: Atoms, masses: Floats, volume: float,
           temperature: float = units.DEFAULT_TEMPERATURE) -> Kinds:
        """Return the kinds of some atoms.

        Parameters
        ----------
        potential : PairPotential
            With a cutoff.
        atoms : Atoms
        masses : (N,) float64, u
        volume : float, A^3
            That the atoms fill evenly.
        temperature : float, K

        Raises
        ------
        UsageError
            When the potential has no cutoff, or a mass, the volume or the temperature is not positive.
        """
        cutoff = potential.cutoff
        if cutoff is None:
            raise UsageError("cutoff", "pairs without a cutoff are not listed")
        if not (len(atoms) and (np.asarray(masses) > 0).all() and volume > 0 and temperature > 0):
            raise UsageError("masses", "atoms, and masses, a volume and a temperature above 0, are needed")
        columns = [np.asarray(masses, np.float64), *(atoms.parameters[n] for n in potential.atoms)]
        if atoms.types is not None:
            columns.append(atoms.types.astype(np.float64))
        rows, counts = np.unique(np.column_stack(columns), axis=0, return_counts=True)
        inputs = {f"{side}.{name}": rows[:, 1 + n][index] for n, name in enumerate(potential.atoms)
                  for side, index in (("i", (slice(None), None)), ("j", (None, slice(None))))}
        if atoms.types is not None:
            types = rows[:, -1].astype(np.int64)
            inputs |= {f"pair.{name}": table[types[:, None], types] for name, table in atoms.tables.items()}
        inverse = 1 / rows[:, 0]
        return cls(np.outer(counts, counts) / (counts.sum() * volume),
                   THERMAL * temperature * (inverse[:, None] + inverse),
                   _derivatives(potential, inputs, cutoff, len(rows)), cutoff)

    def missed(self, buffer: float, age: float) -> float:
        """Return the energy per atom that a list of some age (fs) misses, kcal/mol, at most."""
        sigma = np.sqrt(self.spread) * age
        from scipy import special

        b = buffer / sigma
        bell, tail = np.exp(-0.5 * b * b) / np.sqrt(2 * pi), 0.5 * special.erfc(b / np.sqrt(2))
        # moments of how far pairs come within the cutoff
        second = sigma**2 * ((b * b + 1) * tail - b * bell)
        third = sigma**3 * ((b * b + 2) * bell - b * (b * b + 3) * tail)
        fourth = sigma**4 * ((b**4 + 6 * b * b + 3) * tail - b * (b * b + 5) * bell)
        one, two, three = self.derivatives
        energy = -one / 2 * second + two / 6 * third - three / 24 * fourth
        shell = 4 * pi * (self.cutoff + buffer + sigma) ** 2
        # each pair belongs to two atoms; energies of unlike charges cancel in no order that is known
        return float(0.5 * (self.weight * shell * np.abs(energy)).sum())


def _derivatives(potential: PairPotential, inputs: dict[str, Floats], cutoff: float, kinds: int) -> Floats:
    """Return the first three derivatives of the energy at the cutoff, by differences of the slope there."""
    scaled = potential.scaled(("slope",))
    h = 1e-3 * cutoff
    first = []
    for k in (-2, -1, 0, 1, 2):
        r = float(np.hypot(cutoff + k * h, potential.softening))
        values = inputs | dict(zip(scaled.program.parameters, scaled.values, strict=True))
        slope = evaluate_all(scaled.program, values | {"r2": np.float64(r * r), "rinv": np.float64(1 / r)})[0]
        first.append(np.broadcast_to(-(cutoff + k * h) * slope, (kinds, kinds)))
    second = (first[0] - 8 * first[1] + 8 * first[3] - first[4]) / (12 * h)
    third = (-first[0] + 16 * first[1] - 30 * first[2] + 16 * first[3] - first[4]) / (12 * h * h)
    return np.stack([first[2], second, third])


def drift(kinds: Kinds, buffer: float, life: float) -> float:
    """Return the drift of the energy per atom by a buffer (A) and lists that live for `life` fs, kcal/mol/ns, at most.

    What a list misses at its end is taken to be lost with each list.
    """
    return kinds.missed(buffer, life) / (life * 1e-6)


def buffer_for(kinds: Kinds, tolerance: float, life: float) -> float:
    """Return the least buffer (A) that keeps the drift of the energy per atom below a tolerance (kcal/mol/ns).

    Parameters
    ----------
    kinds : Kinds
    tolerance : float, kcal/mol/ns
        For an atom; 0.1 kT/ns is 0.06.
    life : float, fs
        Of a list: steps times their length.

    Raises
    ------
    TaskError
        When no buffer of up to the cutoff's length is enough.
    """
    if drift(kinds, 0.0, life) <= tolerance:
        return 0.0
    low, high = 0.0, kinds.cutoff
    if not drift(kinds, high, life) <= tolerance:
        raise TaskError(f"no buffer up to {high:g} A keeps the drift below {tolerance:g} kcal/mol/ns for an atom",
                        "make lists more often")
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if drift(kinds, middle, life) <= tolerance else (middle, high)
    return high
