"""The Verlet buffer of pair lists beyond the cutoff, by the energy of pairs that an ageing list misses.

S. Pall, B. Hess, "A flexible algorithm for calculating pair interactions on SIMD architectures", Comput. Phys. Commun.
184 (2013) 2641-2650, appendix. Atoms that were farther apart than the list's radius when it was made may have come
within the cutoff. By free flight with thermal velocities, changes of their distance have a normal distribution with
the variance kT t^2 (1/m_i + 1/m_j). The potential is expanded to third order around the cutoff, where it is shifted to
zero, as a shift does no work. Collisions only slow atoms down, so that the result is an upper bound.

An atom that is bound to a heavier one by a constraint moves with their common centre of mass, and around it in the
plane perpendicular to the bond. For a given angle between the bond and the line to another atom, the displacement along
this line is normally distributed; the cosine of the angle is uniformly distributed. The path around the centre is an
arc, so that the displacement cannot exceed twice its radius (GROMACS, calc_verletbuf.cpp, `constrained_atom_sigma2`).
Of several constraints, only that with the heaviest atom counts: the others would slow the atom down further.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import numpy as np
from numpy.typing import NDArray

from vmdpotential import units
from vmdpotential.arrays import Floats
from vmdpotential.errors import TaskError, UsageError
from vmdpotential.interactions.program import evaluate_all

from ..pairs.in_range import Atoms
from ..pairs.pair_terms import PairPotential

#: Variance of a velocity component of a mass of 1 u at 1 K, A^2/fs^2.
THERMAL = units.BOLTZMANN * units.AVOGADRO * 1e3 * (1e-15 / units.ANGSTROM) ** 2
#: Cosines of the angle between a bond and the line to another atom, from 0 to 1, and their weights (Gauss-Legendre).
COSINES, WEIGHTS = np.polynomial.legendre.leggauss(10) / np.array([[2.0], [2.0]]) + np.array([[0.5], [0.0]])
#: kT at 1 K, kcal/mol.
GAS_CONSTANT = units.BOLTZMANN * units.AVOGADRO / (1000 * units.CALORIE)


@dataclass(frozen=True, eq=False)
class Constraints:
    """Bonds with constrained lengths.

    Parameters
    ----------
    pairs : (C, 2) int64
        Atoms of the bonds.
    lengths : (C,) float64, A
        Lengths of the bonds.
    """

    pairs: NDArray[np.int64]
    lengths: Floats

    @classmethod
    def of_water(cls, positions: Floats) -> Constraints:
        """Return the O-H bonds of M whole water molecules with positions (3 M, 3), A, in the order O, H, H."""
        first = np.arange(0, len(positions), 3)[:, None]
        bonds = np.concatenate([first + pair for pair in ([0, 1], [0, 2])], axis=1).reshape(-1, 2)
        return cls(bonds, np.linalg.norm(positions[bonds[:, 0]] - positions[bonds[:, 1]], axis=1))


@dataclass(frozen=True, eq=False)
class AtomKinds:
    """Kinds of atoms that a potential does not distinguish, with data on their pairs for the estimate.

    Parameters
    ----------
    weight : (K, K) float64, 1/A^3
        Fraction of atoms of the first kind times the number density of the second.
    spread : (K, K) float64, A^2/fs^2
        Variance of the relative velocity of free atoms or centres of mass, along the line between them.
    derivatives : (3, K, K) float64
        First to third derivative of the energy at the cutoff, kcal/mol/A^n.
    cutoff : float, A
        Cutoff of the potential.
    turning : (K,) float64, A^2/fs^2
        Variance of the velocity around the centre of mass along each of two axes; 0 for atoms without a constraint.
    arm : (K,) float64, A
        Distance of the atoms from that centre.
    """

    weight: Floats
    spread: Floats
    derivatives: Floats
    cutoff: float
    turning: Floats
    arm: Floats

    @classmethod
    def of(cls, potential: PairPotential, atoms: Atoms, masses: Floats, volume: float,
           temperature: float = units.DEFAULT_TEMPERATURE, constraints: Constraints | None = None) -> AtomKinds:
        """Return the kinds of some atoms.

        Parameters
        ----------
        potential : PairPotential
            Potential with a cutoff.
        atoms : Atoms
        masses : (N,) float64, u
            Masses of the atoms.
        volume : float, A^3
            Volume that the atoms fill uniformly.
        temperature : float, K
            Temperature of the velocities.
        constraints : Constraints, optional
            Bonds with constrained lengths.

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
        masses = np.asarray(masses, np.float64)
        columns = [masses, *_bound(masses, constraints), *(atoms.parameters[n] for n in potential.atoms)]
        if atoms.types is not None:
            columns.append(atoms.types.astype(np.float64))
        rows, counts = np.unique(np.column_stack(columns), axis=0, return_counts=True)
        inputs = {f"{side}.{name}": rows[:, 3 + n][index] for n, name in enumerate(potential.atoms)
                  for side, index in (("i", (slice(None), None)), ("j", (None, slice(None))))}
        if atoms.types is not None:
            types = rows[:, -1].astype(np.int64)
            inputs |= {f"pair.{name}": table[types[:, None], types] for name, table in atoms.tables.items()}
        mass, partner, length = rows[:, :3].T
        inverse, share = 1 / (mass + partner), partner / (mass + partner)
        return cls(np.outer(counts, counts) / (counts.sum() * volume),
                   THERMAL * temperature * (inverse[:, None] + inverse),
                   _derivatives(potential, inputs, cutoff, len(rows)), cutoff,
                   THERMAL * temperature * share / mass, length * share)

    def missed_energy(self, buffer: float, age: float) -> float:
        """Return the energy per atom that a list of some age (fs) misses, kcal/mol, at most."""
        around = self._around(age)
        if not around.any():
            return self._missed(buffer, np.sqrt(self.spread) * age)
        # the angles of the two atoms' bonds are independent
        across = around * (1 - COSINES[:, None] ** 2)
        return float(sum(w * u * self._missed(buffer, np.sqrt(self.spread * age**2 + i[:, None] + j))
                         for w, i in zip(WEIGHTS, across, strict=True) for u, j in zip(WEIGHTS, across, strict=True)))

    def _around(self, age: float) -> Floats:
        """Return the variance (K,), A^2, of displacements around the centre of mass along each of two axes."""
        arm2 = np.maximum(self.arm, 1e-9) ** 2
        # a rational function with the Taylor series of the mean square chord of an arc; constant beyond its maximum
        angle2 = np.minimum(self.turning * age**2 / arm2, np.sqrt(22.5))
        around: Floats = arm2 * angle2 / (1 + angle2 / 3 + 2 * angle2**2 / 45)
        return around

    def _missed(self, buffer: float, sigma: Floats) -> float:
        """Return the missed energy per atom if changes of distances have standard deviations `sigma` (K, K), A."""
        from scipy import special

        b = buffer / sigma
        bell, tail = np.exp(-0.5 * b * b) / np.sqrt(2 * pi), 0.5 * special.erfc(b / np.sqrt(2))
        # moments of the distances by which pairs come within the cutoff
        second = sigma**2 * ((b * b + 1) * tail - b * bell)
        third = sigma**3 * ((b * b + 2) * bell - b * (b * b + 3) * tail)
        fourth = sigma**4 * ((b**4 + 6 * b * b + 3) * tail - b * (b * b + 5) * bell)
        d1, d2, d3 = self.derivatives
        energy = -d1 / 2 * second + d2 / 6 * third - d3 / 24 * fourth
        shell = 4 * pi * (self.cutoff + buffer + sigma) ** 2
        # each pair belongs to two atoms; energies of unlike charges could cancel, but magnitudes are an upper bound
        return float(0.5 * (self.weight * shell * np.abs(energy)).sum())


def _bound(masses: Floats, constraints: Constraints | None) -> tuple[Floats, Floats]:
    """Return the mass of the heaviest atom bound to each atom by a constraint, and the length of this bond."""
    partner, length = np.zeros(len(masses)), np.zeros(len(masses))
    if constraints is not None:
        for a, b in (constraints.pairs.T, constraints.pairs.T[::-1]):
            order = np.argsort(masses[b], kind="stable")  # the last assignment to an atom is by its heaviest partner
            a, b, long = a[order], b[order], constraints.lengths[order]
            heavier = masses[b] > partner[a]
            partner[a[heavier]], length[a[heavier]] = masses[b[heavier]], long[heavier].round(6)
    return partner, length


def _derivatives(potential: PairPotential, inputs: dict[str, Floats], cutoff: float, kinds: int) -> Floats:
    """Return the first three derivatives of the energy at the cutoff, by finite differences of the slope."""
    scaled = potential.scaled(("slope",))
    h = 1e-3 * cutoff
    first = []
    for k in (-2, -1, 0, 1, 2):
        r = cutoff + k * h
        values = inputs | dict(zip(scaled.program.parameters, scaled.values, strict=True))
        slope = evaluate_all(scaled.program, values | {"r2": np.float64(r * r), "rinv": np.float64(1 / r)})[0]
        first.append(np.broadcast_to(-r * slope, (kinds, kinds)))
    second = (first[0] - 8 * first[1] + 8 * first[3] - first[4]) / (12 * h)
    third = (-first[0] + 16 * first[1] - 30 * first[2] + 16 * first[3] - first[4]) / (12 * h * h)
    return np.stack([first[2], second, third])


def drift(kinds: AtomKinds, buffer: float, life: float) -> float:
    """Return an upper bound of the energy drift per atom, kcal/mol/ns, for a buffer (A) and lists used for `life` fs.

    The energy that a list misses at its end is assumed to be lost once per list.
    """
    return kinds.missed_energy(buffer, life) / (life * 1e-6)


def buffer_for(kinds: AtomKinds, tolerance: float, life: float) -> float:
    """Return the smallest buffer (A) that keeps the energy drift per atom below a tolerance (kcal/mol/ns).

    Parameters
    ----------
    kinds : AtomKinds
    tolerance : float, kcal/mol/ns
        Allowed drift per atom; 0.1 kT/ns is 0.06.
    life : float, fs
        Time for which a list is used: the number of steps times their length.

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
                        "update lists more often")
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if drift(kinds, middle, life) <= tolerance else (middle, high)
    return high
